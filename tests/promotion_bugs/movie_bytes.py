"""The size of a movie in bytes is negative: a product in int32.

https://github.com/nel-lab/mesmerize-core/pull/279
"""

import numpy as np


class LazyMovie:
    def __init__(self, header):
        shape = np.frombuffer(header, dtype="<i4", count=3)
        self.shape = shape.astype(np.int32)
        self.itemsize = np.array([8], np.int32)

    @property
    def nbytes(self):
        return np.prod(np.concatenate([self.shape, self.itemsize]), dtype=np.int32)  # guilty

    @property
    def nbytes_gb(self):
        return self.nbytes / 1e9


def chunks_needed(movie, memory_gb=4):
    return np.ceil(movie.nbytes_gb / memory_gb)


def program(header):
    return chunks_needed(LazyMovie(header))


def inputs(folder):
    return (np.array([26191, 512, 512], "<i4").tobytes(),)


def shows_fault(result):
    return result != 14
