"""The pose of a marker from a depth image: the pixels inside its corners become points in the
frame of the camera, their centre is the position and the plane through them the orientation.

https://github.com/AIRLab-POLIMI/ros2-aruco-pose-estimation/issues/3
"""
import numpy as np


class CameraInfo:
    def __init__(self, k):
        self.fx, self.fy, self.cx, self.cy = k[0, 0], k[1, 1], k[0, 2], k[1, 2]

    def ray(self, u, v):
        return (u - self.cx) / self.fx, (v - self.cy) / self.fy


def inside(corners, u, v):
    signs = []
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0)):
        signs.append((x1 - x0) * (v - y0) - (y1 - y0) * (u - x0) >= 0)
    return all(signs) or not any(signs)


def depth_to_pointcloud_centroid(depth_image, camera, corners):
    x_min, y_min = np.floor(corners.min(axis=0)).astype(int)
    x_max, y_max = np.ceil(corners.max(axis=0)).astype(int)
    pointcloud = []
    for v in range(y_min, y_max + 1):
        for u in range(x_min, x_max + 1):
            z = depth_image[v, u]
            if z == 0 or not inside(corners, u, v):
                continue
            x, y = camera.ray(u, v)
            pointcloud.append((x * z, y * z, float(z)))
    centroid = np.mean(np.array(pointcloud, dtype=np.uint16), axis=0)
    return centroid, np.array(pointcloud)


def plane_normal(points):
    centred = points - points.mean(axis=0)
    _, _, vt = np.linalg.svd(centred, full_matrices=False)
    normal = vt[2]
    return normal if normal[2] < 0 else -normal


class MarkerPoseEstimator:
    def __init__(self, camera, smoothing=0.5):
        self.camera, self.smoothing = camera, smoothing
        self.tracked = {}

    def update(self, marker, depth_image, corners):
        centroid, points = depth_to_pointcloud_centroid(depth_image, self.camera, corners)
        normal = plane_normal(points)
        if marker in self.tracked:
            old_position, old_normal = self.tracked[marker]
            s = self.smoothing
            centroid, normal = s * old_position + (1 - s) * centroid, s * old_normal + (1 - s) * normal
            normal = normal / np.linalg.norm(normal)
        self.tracked[marker] = centroid, normal
        return centroid, normal


def main(depth_images, k, corners):
    estimator = MarkerPoseEstimator(CameraInfo(k))
    poses = [estimator.update(23, image, c) for image, c in zip(depth_images, corners)]
    return np.stack([p for p, _ in poses]), np.stack([n for _, n in poses])


def inputs():
    rng = np.random.default_rng(2)
    k = np.array([[58.0, 0, 31.5], [0, 58.0, 23.5], [0, 0, 1]])
    v, u = np.mgrid[:48, :64]
    depth = [420 + 0.6 * (u - 44) + 0.3 * (v - 32) + 2.0 * t for t in range(3)]
    images = np.stack([np.rint(d + rng.normal(0, 0.6, d.shape)) for d in depth]).astype(np.uint16)
    corners = np.array([[38.0, 27.0], [51.0, 28.0], [50.0, 39.0], [37.0, 38.0]])
    return images, k, np.stack([corners + 0.5 * t for t in range(3)])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
