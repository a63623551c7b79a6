"""A pixel grid for warping: the ramp of pixel coordinates in the precision of the model.

https://github.com/kornia/kornia/pull/4036
"""
import numpy as np
import torch


def create_meshgrid(height, width, normalized_coordinates=True, device=None, dtype=None):
    xs = pixel_ramp(width, device, dtype)
    ys = pixel_ramp(height, device, dtype)
    if normalized_coordinates:
        xs = (xs / (width - 1) - 0.5) * 2
        ys = (ys / (height - 1) - 0.5) * 2
    base_grid = torch.stack(torch.meshgrid([xs, ys], indexing="ij"), dim=-1)
    return base_grid.permute(1, 0, 2).unsqueeze(0)


def pixel_ramp(size, device, dtype):
    return torch.linspace(0, size - 1, size, device=device, dtype=dtype)


class DepthWarper:
    """Points of a depth map, unprojected by the intrinsics of a pinhole camera."""

    def __init__(self, height, width, focal, dtype):
        self.height, self.width, self.focal = height, width, focal
        self.dtype = dtype
        self.grid = None

    def _grid(self, device):
        if self.grid is None:
            self.grid = create_meshgrid(self.height, self.width, False, device, self.dtype)
        return self.grid

    def unproject(self, depth):
        grid = self._grid(depth.device).expand(depth.shape[0], -1, -1, -1)
        centre = torch.tensor([(self.width - 1) / 2, (self.height - 1) / 2], dtype=torch.float32)
        rays = (grid.float() - centre) / self.focal
        return torch.cat([rays * depth[..., None].float(), depth[..., None].float()], dim=-1)


def main(depth):
    warper = DepthWarper(depth.shape[1], depth.shape[2], 250.0, depth.dtype)
    points = warper.unproject(depth)
    return warper.grid[0, 0, :, 0], points[0, 0]


def inputs():
    rng = np.random.default_rng(0)
    depth = 1 + rng.uniform(size=(1, 4, 300)).astype(np.float32)
    return (torch.from_numpy(depth).bfloat16(),)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
