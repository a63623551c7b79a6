"""Movement and creation: bits stay as they are in every storage dtype."""

import ml_dtypes
import numpy as np
import pytest

from graphir import Graph, ops
from graphir.conversions import convert
from graphir.dtypes import DType
from graphir.errors import ExecutionError
from graphir.passes import decompose
from graphir.runtime import Program, interpret
from graphir.semantics.kernels import KERNELS
from tests.support.evaluator import same
from tests.support.strategies import STRONG, pool
from tests.support.tables import every, sampled

DTYPES = sorted({d.storage for d in DType}, key=str)
NARROW_INTEGERS = [np.dtype(getattr(ml_dtypes, n)) for n in ("int2", "int4", "uint2", "uint4")]
INDEX_DTYPES = [np.dtype(f"{k}{n}") for k in "iu" for n in (1, 2, 4, 8)] + NARROW_INTEGERS


def bits(array):
    """Each element as bytes."""
    return [element.tobytes() for element in np.ascontiguousarray(array).reshape(-1)]


def patterns(dtype, *shape):
    """An array of random bit patterns of a dtype."""
    count = int(np.prod(shape))
    raw = np.random.default_rng(0).integers(0, 256, count * dtype.itemsize, np.uint8)
    if dtype.kind == "b":
        raw %= 2
    mask = {"int2": 3, "uint2": 3, "int4": 15, "uint4": 15, "float4_e2m1fn": 15}.get(str(dtype))
    raw = raw % 64 if "float6" in str(dtype) else raw & mask if mask else raw
    return raw.view(dtype).reshape(shape)


I64 = np.array([[2, 0, -1], [1, 1, 0]])
# Each case: attributes, and the flat position in x of each element of the result.
CASES = {
    "reshape": ({"shape": (3, 2)}, [[0, 1], [2, 3], [4, 5]]),
    "broadcast_to": ({"shape": (2, 2, 3)}, [[[0, 1, 2], [3, 4, 5]]] * 2),
    "rebind": ({"shape": (2, 3)}, [[0, 1, 2], [3, 4, 5]]),
    "transpose": ({"axis1": 0, "axis2": 1}, [[0, 3], [1, 4], [2, 5]]),
    "permute": ({"dims": (1, 0)}, [[0, 3], [1, 4], [2, 5]]),
    "unsqueeze": ({"axis": 1}, [[[0, 1, 2]], [[3, 4, 5]]]),
    "slice": ({"start": (1, 0), "stop": (2, 3), "step": (1, 2)}, [[3, 5]]),
    "item": ({"index": (1, 2)}, 5),
    "affine_view": (
        {"shape": (2, 2, 2), "origin": (0, 2), "steps": ((1, 0), (0, -1), (0, -1))},
        [[[2, 1], [1, 0]], [[5, 4], [4, 3]]],
    ),
    "flip": ({"axis": (0, 1)}, [[5, 4, 3], [2, 1, 0]]),
    "roll": ({"shift": -4, "axis": 1}, [[1, 2, 0], [4, 5, 3]]),
    "tile": ({"repeats": (1, 2)}, [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]]),
    "repeat": ({"repeats": 2, "axis": 1}, [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]]),
    "concat": ({"axis": 1}, [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]]),
    "stack": ({"axis": 1}, [[[0, 1, 2]] * 2, [[3, 4, 5]] * 2]),
    "gather": ({"axis": 1}, [[[2, 0, 2], [1, 1, 0]], [[5, 3, 5], [4, 4, 3]]]),
    "take_along": ({"axis": 1}, [[2, 0, 2], [4, 4, 3]]),
}


# Each case: operands after x from the flat positions of the updates, attributes, and the flat
# position of each element of the result; updates count on from the end of x.
UPDATES = {
    "slice_update": [
        (([[0], [1]],), {"start": (0, 0), "stop": (2, 3), "step": (1, 2)}, [6, 1, 6, 7, 4, 7]),
        ((0,), {"start": (1, 1), "stop": (2, 3), "step": (1, 1)}, [0, 1, 2, 3, 6, 6]),
        (([0, 1],), {"start": (0, 1), "stop": (0, 3), "step": (1, 1)}, [0, 1, 2, 3, 4, 5]),
    ],
    "index_update": [
        (([0, 1, 2], np.array([1])), {"axis": 0}, [0, 1, 2, 6, 7, 8]),
        (([[[0], [1]], [[2], [3]]], np.array([[0], [-1]])), {"axis": 1}, [6, 1, 7, 8, 4, 9]),
        (([0, 1, 2], np.array([4, 0, 4])), {"axis": None}, [7, 1, 2, 3, 8, 5]),
        ((0, np.zeros((0, 2), int)), {"axis": 1}, [0, 1, 2, 3, 4, 5]),
    ],
}


@every("dtype", DTYPES)
@every("name", UPDATES)
def test_updates_replace_elements(name, dtype):
    everything = patterns(dtype, 10)
    x = everything[:6].reshape(2, 3).copy()
    for (places, *indices), attrs, expected in UPDATES[name]:
        updates = np.asarray(everything[6:][np.array(places)])
        result = KERNELS[name](x, updates, *indices, **attrs)
        assert result.dtype == dtype and result.shape == (2, 3)
        assert bits(result) == [bits(everything)[i] for i in expected]
        assert bits(x) == bits(everything)[:6]
        graph = Graph(name)
        operands = [x, updates, *indices]
        inputs = [graph.input(DType.from_numpy(one.dtype), one.shape) for one in operands]
        graph.output(ops.CATALOGUE[name](*inputs, **attrs))
        parts = decompose(graph, frozenset(ops.CATALOGUE) - {name})
        assert all(symbol.op.name != name for symbol in parts)
        assert bits(interpret(parts, *operands)) == bits(result)


def ranged(dtype, **attrs):
    """What the kernel of range makes, in the dtype that its caller converts it to."""
    made = KERNELS["range"](dtype, **attrs)
    return convert(made, DType.from_numpy(made.dtype), dtype)


@every("dtype", DTYPES)
@every("name", CASES)
def test_elements_move(name, dtype):
    attrs, expected = CASES[name]
    x = patterns(dtype, 2, 3)
    more = {"concat": [x], "stack": [x], "gather": [I64], "take_along": [I64]}.get(name, [])
    result = KERNELS[name](x, *more, **attrs)
    assert type(result) is np.ndarray and result.dtype == dtype
    assert result.shape == np.array(expected).shape
    assert bits(result) == [bits(x)[i] for i in np.ravel(expected)]


@every("dtype", DTYPES)
def test_scatter_and_pad(dtype):
    x, updates = patterns(dtype, 2, 3), patterns(dtype, 4, 3)[2:]
    before = bits(x)
    result = KERNELS["scatter"](x, updates, I64, axis=1)
    expected = np.stack([x[0], x[1]])
    for row, place in np.ndindex(2, 3):
        expected[row, I64[row, place]] = updates[row, place]
    assert result.dtype == dtype and bits(result) == bits(expected) and bits(x) == before
    value = x[1, 2].reshape(()) if isinstance(x[1, 2], np.ndarray) else np.asarray(x[1, 2])
    result = KERNELS["pad"](x, padding=((1, 0), (0, 2)), value=value)
    p = bits(value)
    assert result.dtype == dtype and result.shape == (3, 5)
    assert bits(result) == p * 5 + bits(x[0]) + p * 2 + bits(x[1]) + p * 2
    assert bits(KERNELS["pad"](value, padding=(), value=value)) == p


@every("dtype", DTYPES)
def test_squeeze_shape_of_full_and_constant(dtype):
    x = patterns(dtype, 2, 1, 3)
    squeezed = KERNELS["squeeze"](x, axis=1)
    assert squeezed.shape == (2, 3) and bits(squeezed) == bits(x)
    sizes = KERNELS["shape_of"](x)
    assert sizes.dtype == np.int64 and sizes.tolist() == [2, 1, 3]
    value = np.asarray(x[0, 0, 1])
    for shape in ((), (0, 2), (2, 3)):
        full = KERNELS["full"](value=value, shape=shape)
        assert full.dtype == dtype and full.shape == shape and set(bits(full)) <= set(bits(value))
        assert not np.shares_memory(full, value)
    assert bits(KERNELS["constant"](value=x)) == bits(x)


@every("dtype", DTYPES)
def test_movement_of_scalars_and_of_nothing(dtype):
    x, nothing = patterns(dtype, 1).reshape(()), patterns(dtype, 0, 3)
    zero = np.asarray(patterns(dtype, 1)[0])
    for name, attrs in {
        "reshape": {"shape": ()},
        "broadcast_to": {"shape": ()},
        "rebind": {"shape": ()},
        "permute": {"dims": ()},
        "slice": {"start": (), "stop": (), "step": ()},
        "flip": {"axis": ()},
        "affine_view": {"shape": (), "origin": (), "steps": ()},
        "tile": {"repeats": ()},
        "pad": {"padding": (), "value": zero},
    }.items():
        result = KERNELS[name](x, **attrs)
        assert type(result) is np.ndarray and result.shape == () and bits(result) == bits(x)
    for name, attrs, shape in [
        ("roll", {"shift": 5, "axis": 0}, (0, 3)),
        ("repeat", {"repeats": 2, "axis": 0}, (0, 3)),
        ("tile", {"repeats": (2, 0)}, (0, 0)),
        ("flip", {"axis": (0,)}, (0, 3)),
        ("affine_view", {"shape": (0, 2), "origin": (9, 9), "steps": ((1, 0), (0, 0))}, (0, 2)),
        ("pad", {"padding": ((1, 1), (0, 0)), "value": zero}, (2, 3)),
        ("slice", {"start": (0, 1), "stop": (0, 3), "step": (1, 1)}, (0, 2)),
    ]:
        result = KERNELS[name](nothing, **attrs)
        assert result.dtype == dtype and result.shape == shape
    assert KERNELS["shape_of"](x).shape == (0,)
    assert KERNELS["stack"](x, x, axis=0).shape == (2,)
    assert KERNELS["gather"](patterns(dtype, 3), np.array(2), axis=0).shape == ()
    assert KERNELS["gather"](nothing, np.zeros((0, 4), int), axis=0).shape == (0, 4, 3)


def test_big_shifts_and_offsets():
    assert KERNELS["roll"](np.arange(5), shift=10**30 + 1, axis=0).tolist() == [4, 0, 1, 2, 3]
    for offset in (10**30, -(10**30)):
        assert not KERNELS["eye"](DType.int8, rows=2, columns=3, offset=offset).any()


# -- indices


@every("dtype", INDEX_DTYPES)
def test_indices_of_every_dtype(dtype):
    x, indices = np.arange(10, 14), np.array([1, 0, 1]).astype(dtype)
    assert KERNELS["gather"](x, indices, axis=0).tolist() == [11, 10, 11]
    assert KERNELS["take_along"](x, indices, axis=0).tolist() == [11, 10, 11]
    assert KERNELS["scatter"](x, x[:3], indices, axis=0).tolist() == [11, 12, 12, 13]
    if not str(dtype).startswith("u"):
        assert KERNELS["gather"](x, np.array([-1]).astype(dtype), axis=0).tolist() == [13]


@every(
    ("index", "dtype"),
    [
        *((3, "i8"), (-4, "i8"), (3, "u1"), (-4, "i1"), (2**32, "i8"), (-(2**63), "i8")),
        *((2**63, "u8"), (2**64 - 1, "u8")),
    ],
)
def test_indices_out_of_range(index, dtype):
    x = np.zeros((2, 3), np.float32)
    indices = np.array([[0, index]], dtype)
    message = rf"index {index} is out of range for axis 1, whose size is 3"
    with pytest.raises(ExecutionError, match=f"gather: {message}"):
        KERNELS["gather"](x, indices, axis=1)
    with pytest.raises(ExecutionError, match=f"take_along: {message}"):
        KERNELS["take_along"](x[:1], indices, axis=1)
    with pytest.raises(ExecutionError, match=f"scatter: {message}"):
        KERNELS["scatter"](x[:1], x[:1, :2], indices, axis=1)
    for name in ("index_update", "index_add"):
        with pytest.raises(ExecutionError, match=f"{name}: {message}"):
            KERNELS[name](x, x[0, 0], indices, axis=1)


@every("axis", [0, 1, 2])
def test_the_last_of_many_updates_wins(axis):
    rng = np.random.default_rng(axis)
    x = np.zeros((5, 6, 7), np.int64)
    shape = [40 if i == axis else n for i, n in enumerate(x.shape)]
    indices = rng.integers(-x.shape[axis], x.shape[axis], shape)
    updates = rng.permutation(np.arange(indices.size)).reshape(shape)
    expected = x.copy()
    for place in np.ndindex(*shape):
        target = list(place)
        target[axis] = indices[place]
        expected[tuple(target)] = updates[place]
    assert np.array_equal(KERNELS["scatter"](x, updates, indices, axis=axis), expected)


# Each case: the shapes of x, of the updates and of the indices, and the axis.
SUMS = [
    ((5,), (40,), (40,), 0),
    ((5,), (), (2, 20), None),
    ((2, 3), (8,), (4, 8), None),
    ((2, 5, 3), (2, 4, 6, 3), (4, 6), 1),
    ((2, 5, 300), (300,), (7,), 1),
    ((3, 2), (0, 2), (0,), 0),
    ((0, 2), (0, 2), (0,), 0),
    ((3, 0), (4, 0), (4,), 0),
    ((), (6,), (6,), None),
]


@sampled(2)
@every("dtype", [dtype for dtype in STRONG if not dtype.emulated])
@np.errstate(all="ignore")
def test_sums_at_indices_are_rounded_one_by_one(dtype):
    """As the op `add`, applied to one update after another."""
    scalars = Graph("sum", rules="explicit")
    scalars.output(ops.add(scalars.input(dtype, ()), scalars.input(dtype, ())))
    rng, values = np.random.default_rng(0), pool(dtype)
    add = Program(scalars, native="off")
    for case, (shape, new, places, axis) in enumerate(SUMS):
        x, updates = (rng.choice(values, size) for size in (shape, new))
        size = x.size if axis is None else x.shape[axis]
        indices = rng.integers(-size, size, places) if size else np.zeros(places, int)
        graph = Graph("sums", rules="explicit")
        inputs = [graph.input(dtype, shape), graph.input(dtype, new), graph.input("int64", places)]
        graph.output(ops.index_add(*inputs, axis=axis))
        result = interpret(graph, x, updates, indices)
        assert same(result, Program(graph, native="off")(x, updates, indices)), case
        if x.size > 100:
            first = x[:, :, :1], updates[:1], indices
            assert same(result[:, :, :1], KERNELS["index_add"](*first, axis=axis))
            continue
        expected = x.reshape(-1) if axis is None else x
        expected = expected.copy()
        before, after = ((), ()) if axis is None else (shape[:axis], shape[axis + 1 :])
        spread = np.broadcast_to(updates, (*before, *places, *after))
        for place in np.ndindex(spread.shape):
            at = place[len(before) : len(before) + len(places)]
            target = (*place[: len(before)], indices[at], *place[len(before) + len(places) :])
            expected[target] = add(np.asarray(expected[target]), np.asarray(spread[place]))
        assert same(result, expected.reshape(shape)), case


# -- asserted shapes and dtypes


def test_a_padding_value_of_another_dtype():
    with pytest.raises(TypeError, match="pad of int8, int16: a cast"):
        KERNELS["pad"](np.int8([1]), padding=((1, 1),), value=np.array(0, np.int16))


def test_a_slice_past_the_end():
    x = np.arange(6).reshape(2, 3)
    for start, stop in ((0, 4), (2, 1)):
        with pytest.raises(
            ExecutionError, match=f"the range {start}:{stop} exceeds axis 1 of size 3"
        ):
            KERNELS["slice"](x, start=(0, start), stop=(2, stop), step=(1, 2))


def test_rebind_checks():
    with pytest.raises(ExecutionError, match=r"is \[3, 2\]; got .* shape \[2, 3\]"):
        KERNELS["rebind"](np.zeros((2, 3)), shape=(3, 2))


# -- creation

INTEGERS = [d for d in DType if d.is_integer]


@every("dtype", INTEGERS)
def test_ranges_of_integers_reach_both_ends(dtype):
    low, high = int(dtype.min), int(dtype.max)
    third = (high - low) // 3
    for start, step, size in [(low, third, 4), (high, -third, 4), (low, 1, 2), (high, 5, 1)]:
        result = ranged(dtype, start=start, step=step, size=size)
        assert result.dtype == dtype.storage
        expected = [start + i * step for i in range(size)]
        assert [int(v) for v in result] == expected
    for start, step, size in [(high, 1, 2), (low, -1, 2), (high + 1, -1, 2), (0, 2**70, 2)]:
        with pytest.raises(ExecutionError, match=f"does not fit {dtype}; .* wider"):
            ranged(dtype, start=start, step=step, size=size)
    assert ranged(dtype, start=2**80, step=1, size=0).shape == (0,)


def test_ranges_of_floats_are_rounded_once():
    result = ranged(DType.float32, start=0.1, step=0.1, size=1000)
    assert result.dtype == np.float32
    assert result.tolist() == [float(np.float32(0.1 + i * 0.1)) for i in range(1000)]
    result = ranged(DType.bfloat16, start=1, step=2, size=300)
    assert result.dtype == ml_dtypes.bfloat16
    assert result[128:131].astype(float).tolist() == [256, 260, 260]  # 257, 259, 261
    tf32 = ranged(DType.tensor_float32, start=2049, step=1, size=2)
    assert tf32.tolist() == [2048, 2050]


def test_ranges_of_complex_numbers():
    result = ranged(DType.complex64, start=1, step=0.5 - 1j, size=3)
    assert result.dtype == np.complex64
    assert result.tolist() == [1, 1.5 - 1j, 2 - 2j]


def test_ranges_of_bools():
    assert ranged(DType.bool, start=False, step=True, size=2).tolist() == [False, True]


@every(
    ("dtype", "start", "step"),
    [
        (DType.int8, 0.5, 1),
        (DType.int8, 0, 1j),
        (DType.float32, 1j, 1),
        (DType.float64, 10**400, 1),
    ],
)
def test_ranges_of_the_wrong_kind(dtype, start, step):
    with pytest.raises(ExecutionError, match=f"range: .* {dtype}"):
        ranged(dtype, start=start, step=step, size=3)


@every("dtype", list(DType))
@every("offset", [-3, -1, 0, 1, 2, 7])
def test_eye(dtype, offset):
    result = KERNELS["eye"](dtype, rows=2, columns=3, offset=offset)
    assert result.dtype == dtype.storage and result.shape == (2, 3)
    zero = np.nan if dtype is DType.float8_e8m0fnu else 0
    expected = [1 if j - i == offset else zero for i in range(2) for j in range(3)]
    assert np.array_equal(result.astype(np.complex128).ravel(), expected, equal_nan=True)


def test_every_movement_op_is_tested_here():
    moving = {name for name, op in ops.CATALOGUE.items() if op.kind == "movement"}
    assert moving == set(CASES) | {"scatter", *UPDATES, "pad", "squeeze", "shape_of"}


def test_the_error_for_an_index_of_a_vector_names_the_range():
    message = "index -6 is out of range for an array of 5 elements; use indices from -5 to 4"
    with pytest.raises(ExecutionError, match=f"index_update: {message}"):
        KERNELS["index_update"](np.zeros(5), np.ones(2), np.array([4, -6]), axis=None)
