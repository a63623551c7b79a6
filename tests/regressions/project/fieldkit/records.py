"""Records of instruments: structured headers, float16 grids, observations."""

from dataclasses import dataclass

import numpy as np

HEADER = np.dtype([("lines", "<u2"), ("centre", "<u2"), ("gain", "<f4")])


@dataclass
class Scan:
    header: np.ndarray
    data: np.ndarray

    def offset(self):
        return self.header["lines"].astype(np.int32) - 2 * self.header["centre"]

    def calibrated(self):
        return self.data * self.header["gain"]


def read(blob, count):
    header = np.frombuffer(blob, HEADER, count=1)
    data = np.frombuffer(blob, np.float32, count=count, offset=HEADER.itemsize)
    return Scan(header, data)


def daily_means(grid):
    return grid.mean(axis=0, dtype=np.float32).astype(grid.dtype)


def observation(positions, velocities, phase):
    angle = np.array([np.sin(phase), np.cos(phase)], dtype=positions.dtype)
    return np.concatenate([positions, velocities, angle])
