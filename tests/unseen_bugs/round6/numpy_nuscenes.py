"""Puts the points of a lidar into the image of a camera: sensor, vehicle, world, vehicle at the
time of the image, camera.

https://github.com/nutonomy/nuscenes-devkit/pull/1182
"""
import numpy as np


def rotation_matrix(yaw):
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def transform_matrix(translation, rotation, inverse=False):
    tm = np.eye(4)
    if inverse:
        tm[:3, :3] = rotation.T
        tm[:3, 3] = rotation.T.dot(-np.asarray(translation))
    else:
        tm[:3, :3] = rotation
        tm[:3, 3] = translation
    return tm


class LidarPointCloud:
    def __init__(self, points):
        assert points.shape[0] == self.nbr_dims()
        self.points = points

    @staticmethod
    def nbr_dims():
        return 4

    @classmethod
    def from_buffer(cls, scan):
        points = scan.reshape((-1, 5))[:, :cls.nbr_dims()]
        return cls(points.T.copy())

    def remove_close(self, radius):
        close = np.all(np.abs(self.points[:2]) < radius, axis=0)
        self.points = self.points[:, ~close]

    def translate(self, x):
        for i in range(3):
            self.points[i, :] = self.points[i, :] + x[i]

    def rotate(self, rot_matrix):
        self.points[:3, :] = np.dot(rot_matrix, self.points[:3, :])

    def transform(self, transf_matrix):
        homogeneous = np.vstack((self.points[:3, :], np.ones(self.points.shape[1])))
        self.points[:3, :] = transf_matrix.dot(homogeneous)[:3, :]


def view_points(points, view):
    projected = view @ points
    return projected[:2] / projected[2:3], projected[2]


def map_pointcloud_to_image(scan, lidar, ego, ego_camera, camera, min_dist=1.0):
    pc = LidarPointCloud.from_buffer(scan)
    pc.remove_close(1.0)

    pc.rotate(rotation_matrix(lidar["yaw"]))
    pc.translate(np.array(lidar["translation"]))

    pc.rotate(rotation_matrix(ego["yaw"]))
    pc.translate(np.array(ego["translation"]))
    pc.translate(-np.array(ego_camera["translation"]))
    pc.rotate(rotation_matrix(ego_camera["yaw"]).T)

    pc.translate(-np.array(camera["translation"]))
    pc.rotate(np.array(camera["axes"]))

    pixels, depth = view_points(pc.points[:3], np.array(camera["intrinsic"]))
    return pc.points[:3], pixels, depth > min_dist


def main(scan, east, north):
    lidar = {"yaw": -1.57, "translation": [0.94, 0.0, 1.84]}
    ego = {"yaw": 0.61, "translation": [east, north, 0.0]}
    ego_camera = {"yaw": 0.618, "translation": [east + 0.42, north + 0.28, 0.0]}
    camera = {"translation": [1.72, 0.0, 1.49],
              "axes": [[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]],
              "intrinsic": [[1252.8, 0.0, 826.6], [0.0, 1252.8, 469.9], [0.0, 0.0, 1.0]]}
    return map_pointcloud_to_image(scan, lidar, ego, ego_camera, camera)


def inputs():
    rng = np.random.default_rng(11)
    n = 90
    distance, angle = rng.uniform(4, 45, size=n), rng.uniform(-np.pi, np.pi, size=n)
    scan = np.stack([distance * np.cos(angle), distance * np.sin(angle), rng.uniform(-1.8, 2.5, size=n),
                     rng.integers(0, 255, size=n), rng.integers(0, 32, size=n)], axis=1)
    return scan.astype(np.float32).ravel(), 447825.25, 5411236.75


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
