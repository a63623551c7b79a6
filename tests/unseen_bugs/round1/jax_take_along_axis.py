"""take_along_axis written with a gather: picks, for every row of an array, the columns
that an index array names; used here for the k largest entries of every row.

https://github.com/jax-ml/jax/pull/5089
"""
import jax
import jax.numpy as jnp
from jax import lax


def _canonicalize_axis(axis, num_dims):
    if not -num_dims <= axis < num_dims:
        raise ValueError("axis %d is out of bounds" % axis)
    return axis + num_dims if axis < 0 else axis


def _normalize_index(index, axis_size):
    return jnp.where(index < 0, index + axis_size, index)


def take_along_axis(arr, indices, axis):
    if not jnp.issubdtype(indices.dtype, jnp.integer):
        raise TypeError("indices must be of an integer type, got %s" % indices.dtype)
    axis = _canonicalize_axis(axis, arr.ndim)
    rank = arr.ndim
    idx_shape = indices.shape
    out_shape = tuple(1 if i == axis else n for i, n in enumerate(arr.shape))
    out_shape = lax.broadcast_shapes(idx_shape, out_shape)
    index_dims = [i for i, n in enumerate(idx_shape) if i == axis or n != 1]
    gather_index_shape = tuple(out_shape[i] for i in index_dims) + (1,)

    gather_indices = []
    slice_sizes = []
    offset_dims = []
    start_index_map = []
    collapsed_slice_dims = []
    j = 0
    for i in range(rank):
        if i == axis:
            indices = _normalize_index(indices, arr.shape[axis])
            gather_indices.append(lax.reshape(indices, gather_index_shape))
            slice_sizes.append(1)
            start_index_map.append(i)
            collapsed_slice_dims.append(i)
            j += 1
        elif idx_shape[i] != 1:
            iota = lax.iota(indices.dtype, out_shape[i])
            iota = lax.broadcast_in_dim(iota, gather_index_shape, (j,))
            gather_indices.append(iota)
            slice_sizes.append(1)
            start_index_map.append(i)
            collapsed_slice_dims.append(i)
            j += 1
        else:
            offset_dims.append(i)
            slice_sizes.append(arr.shape[i])
    gather_indices = lax.concatenate(gather_indices, dimension=j)
    dnums = lax.GatherDimensionNumbers(
        offset_dims=tuple(offset_dims), collapsed_slice_dims=tuple(collapsed_slice_dims),
        start_index_map=tuple(start_index_map))
    return lax.gather(arr, gather_indices, dnums, tuple(slice_sizes))


def top_columns(scores, k):
    order = jnp.argsort(-scores, axis=1)[:, :k]
    return order.astype(jnp.int8)


def main(scores, values):
    columns = top_columns(scores, 3)
    picked = take_along_axis(values, columns, axis=1)
    return picked, columns


def inputs():
    k = jax.random.split(jax.random.key(3), 2)
    return jax.random.normal(k[0], (200, 7)), jax.random.normal(k[1], (200, 7))


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
