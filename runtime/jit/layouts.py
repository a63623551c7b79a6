"""Memory layouts of arguments: strides, alignment, writability and shared memory.

Strides decide the layouts of results, the order of additions, and whether a reshape is a view, so
they are part of each signature. Alignment decides whether NumPy's loops are buffered. For functions
that write to arguments, writability and shared memory are part of the signature too, and arguments
that share memory are views of one input of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from graphir.hints import Array, ArrayOrNumber
from graphir.numpy_api.arrays.memory import LayoutUse
from graphir.numpy_api.traced_layouts import ArgumentLayout
from graphir.numpy_api.view_layouts import ViewLayout, overlaps
from graphir.semantics.matrix_products import address


class MemoryGroup(NamedTuple):
    """Arguments that share memory: the array that owns the memory, and the arguments' positions.

    If `whole` is None, the arguments have several owners or dtypes. No graph can express such
    sharing, so the function cannot write to these arguments.
    """

    whole: Array | None
    places: list[int]


def memory_groups(arrays: Sequence[Any]) -> list[MemoryGroup]:
    """Return the groups of arguments that share memory."""
    groups: list[list[int]] = []
    if len(arrays) < 2:
        return []
    for place, array in enumerate(arrays):
        if not isinstance(array, np.ndarray):
            continue
        beside = [group for group in groups if _meets(arrays, group, cast("Array", array))]
        groups = [group for group in groups if group not in beside]
        groups.append(sorted([place, *chain.from_iterable(beside)]))
    return [MemoryGroup(_whole(arrays, group), group) for group in groups if len(group) > 1]


def _meets(arrays: Sequence[Any], group: Sequence[int], array: Array) -> bool:
    return any(np.may_share_memory(arrays[place], array) for place in group)


def _whole(arrays: Sequence[Any], places: Sequence[int]) -> Array | None:
    """Return the common owner of the arguments; None for several owners or dtypes."""
    owners = [_owner(arrays[place]) for place in places]
    whole = owners[0]
    same = all(owner is whole for owner in owners)
    return whole if same and all(arrays[i].dtype == whole.dtype for i in places) else None


def _owner(array: Array) -> Array:
    owner: Any = array
    while isinstance(owner.base, np.ndarray):
        owner = cast("Any", owner.base)
    return owner


def layout_key(arrays: Sequence[Any], sources: Sequence[Any], groups: Sequence[MemoryGroup]) -> Any:
    """Return the cache key of the arguments' layouts; None for usual layouts.

    Usual arrays are writable, C-contiguous and share no memory.
    """
    key: list[Any] = []
    usual = True
    for array, source in zip(arrays, sources, strict=True):
        writable = array is source and isinstance(array, np.ndarray) and array.flags.writeable
        in_order = writable and _is_plain(cast("Array", array))
        key.append(in_order or (_strides(array), writable))
        usual &= in_order
    for whole, places in groups:
        usual = False
        if whole is None:
            key.append(tuple(places))
            continue
        first = address(whole)
        at = [(i, arrays[i].strides, address(arrays[i]) - first) for i in places]
        key.append((whole.shape, whole.strides, tuple(at)))
    return None if usual else tuple(key)


def lie_usually(args: Sequence[Any]) -> bool:
    """Whether arrays are writable, aligned and C-contiguous and share no memory."""
    arrays = [arg for arg in args if type(arg) is np.ndarray]
    for at, array in enumerate(arrays):
        if not (_is_plain(array) and array.flags.writeable):
            return False
        for other in arrays[:at]:
            if np.may_share_memory(array, other):
                return False
    return True


def strides_key(arrays: Sequence[Any]) -> Any:
    """Return the cache key of the arguments' strides; None if all lie in order."""
    if lie_in_order(arrays):
        return None
    return tuple([_strides(array) for array in arrays])


def lie_in_order(args: Sequence[Any]) -> bool:
    """Whether all arrays among the arguments are C-contiguous and aligned."""
    for arg in args:  # noqa: SIM110 -- a generator would cost more than the loop
        if type(arg) is np.ndarray and arg.flags.num & _PLAIN != _PLAIN:
            return False
    return True


_PLAIN = 0x0001 | 0x0100
"""NumPy's flags of C-contiguous and aligned arrays."""


def _is_plain(array: Array) -> bool:
    return array.flags.num & _PLAIN == _PLAIN


def _strides(array: Any) -> Any:
    """Return the strides of an argument; those of an unaligned array with a mark."""
    if not isinstance(array, np.ndarray):
        return ()
    return array.strides if array.flags.aligned else ("unaligned", array.strides)


USUAL: Mapping[LayoutUse, Callable[[Sequence[Any]], bool]] = {
    LayoutUse.NONE: lambda args: True,
    LayoutUse.STRIDES: lie_in_order,
    LayoutUse.ALL: lie_usually,
}
"""Whether arguments lie in the usual layout, by what a trace depends on."""


def argument_layouts(
    arrays: Sequence[Any], sources: Sequence[Any], groups: Sequence[MemoryGroup]
) -> list[ArgumentLayout]:
    """Return the arguments' layouts as twin arrays: same strides and sharing, separate memory."""
    layouts = [
        _alone(array, array is source) for array, source in zip(arrays, sources, strict=True)
    ]
    for whole, places in groups:
        if whole is None:
            for place in places:
                layouts[place] = _alone(arrays[place], False)
            continue
        twin, memory, low = _twin(whole)
        for place in places:
            array = arrays[place]
            start = address(array) - low
            view: Any = np.ndarray(array.shape, array.dtype, memory, start, array.strides)
            view.setflags(write=bool(array.flags.writeable))
            layouts[place] = ArgumentLayout(view, twin)
    return layouts


def _alone(array: ArrayOrNumber, is_own: bool) -> ArgumentLayout:
    writable = is_own and isinstance(array, np.ndarray) and array.flags.writeable
    if writable and _is_plain(cast("Array", array)):
        return ArgumentLayout(None)
    plain: Any = np.asarray(cast("Any", array))
    twin = _twin(plain)[0]
    # A write would change all elements that share a place, of which the graph has copies.
    shares = overlaps(ViewLayout(twin.shape, twin.strides))
    twin.setflags(write=bool(writable and not shares))
    return ArgumentLayout(twin)


def _twin(array: Array) -> tuple[Array, Array, int]:
    """Return a twin of equal strides, its memory, and the address that the memory represents."""
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = np.empty(high - low, np.uint8)
    if not array.flags.aligned:
        room = np.empty(high - low + 32, np.uint8)
        first = (low - address(room)) % 16
        memory = room[first : first + high - low]
    start = address(array) - low if array.size else 0
    twin: Any = np.ndarray(array.shape, array.dtype, memory, start, array.strides)  # pyright: ignore
    return twin, memory, low
