"""Turns the slices a caller gives into closed ranges within the domain of each dimension,
and returns the ranges with the cells that they select.

https://github.com/TileDB-Inc/TileDB-Py/pull/2000
"""
import numpy as np


class Dim:
    def __init__(self, name, domain, tile):
        self.name = name
        self.dtype = domain.dtype
        self.domain = (domain[0].item(), domain[1].item())
        self.tile = tile


class Domain:
    def __init__(self, *dims):
        self._dims = dims

    @property
    def ndim(self):
        return len(self._dims)

    def dim(self, i):
        return self._dims[i]


def _index_as_tuple(idx):
    return idx if isinstance(idx, tuple) else (idx,)


def replace_ellipsis(ndim, idx):
    if Ellipsis not in idx:
        return idx + (slice(None),) * (ndim - len(idx))
    at = idx.index(Ellipsis)
    return idx[:at] + (slice(None),) * (ndim - len(idx) + 1) + idx[at + 1:]


def replace_scalars_slice(dom, idx):
    new_idx = []
    for i in range(dom.ndim):
        dim_idx = idx[i]
        if np.isscalar(dim_idx):
            start = int(dim_idx)
            new_idx.append(slice(start, start + 1, None))
        else:
            new_idx.append(dim_idx)
    return tuple(new_idx)


def index_domain_subarray(dom, idx):
    subarray = []
    for r in range(dom.ndim):
        dim = dom.dim(r)
        dim_lb, dim_ub = dim.domain
        start, stop, step = idx[r].start, idx[r].stop, idx[r].step
        if step is not None and step < 0:
            raise IndexError("only positive slice steps are supported")
        if start is None:
            start = dim_lb
        if stop is None:
            stop = dim_ub + 1
        if np.issubdtype(dim.dtype, np.integer):
            start = np.int64(start)
            stop = np.int64(stop)
        start = max(start, dim_lb)
        stop = min(stop, dim_ub + 1)
        if start >= stop:
            raise IndexError("empty selection on " + dim.name)
        subarray.append((start, stop - 1))
    return subarray


def main(domain, coords, values):
    dom = Domain(Dim("cell_id", domain, tile=1000))
    idx = replace_ellipsis(dom.ndim, _index_as_tuple(Ellipsis))
    idx = replace_scalars_slice(dom, idx)
    (lo, hi), = index_domain_subarray(dom, idx)
    ranges = np.array([lo, hi], dtype=dom.dim(0).dtype)
    inside = (coords >= ranges[0]) & (coords <= ranges[1])
    return ranges, values[inside]


def inputs():
    rng = np.random.default_rng(3)
    top = np.iinfo(np.uint64).max
    coords = np.sort(rng.integers(0, top, 12, dtype=np.uint64, endpoint=True))
    return np.array([0, top - 1000], np.uint64), coords, rng.random(12)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
