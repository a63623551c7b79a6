"""Cells of a large grid are addressed by a flat index, as a solver stores its sparse entries.

https://github.com/pasteurlabs/mosaic/issues/155
"""
import jax
import jax.numpy as jnp
import numpy as np

INDEX = jnp.int32


class Grid:
    def __init__(self, *resolution):
        self.resolution = resolution

    def strides(self):
        strides = np.cumprod((1,) + self.resolution[:0:-1])[::-1]
        return [int(s) for s in strides]

    def ravel(self, cells):
        flat = jnp.zeros(cells.shape[:-1], INDEX)
        for axis, stride in enumerate(self.strides()):
            flat = flat + cells[..., axis].astype(INDEX) * jnp.asarray(stride, INDEX)
        return flat

    def unravel(self, flat):
        cells = []
        for stride in self.strides():
            cells.append(flat // stride)
            flat = flat % stride
        return jnp.stack(cells, axis=-1)


class SparsityPattern:
    """Neighbours of the cells along one axis, as pairs of flat indices."""

    def __init__(self, grid, axis, offset):
        self.grid, self.axis, self.offset = grid, axis, offset

    def columns(self, cells):
        size = self.grid.resolution[self.axis]
        shifted = cells.at[..., self.axis].set((cells[..., self.axis] + self.offset) % size)
        return self.grid.ravel(shifted)


def neighbours(grid, cells):
    patterns = [SparsityPattern(grid, axis, o) for axis in range(3) for o in (-1, 1)]
    columns = jnp.stack([p.columns(cells) for p in patterns])
    return grid.unravel(columns)


def main(cells):
    return neighbours(Grid(2048, 2048, 1024), jnp.asarray(cells))


def inputs():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 1024, (20, 3)).astype(np.int32)
    cells[:, 0] += 1000
    return (cells,)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
