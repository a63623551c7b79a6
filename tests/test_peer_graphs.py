"""Random programs under each library's rules and in the library itself: dtypes and values.

Every intermediate has the same dtype and every value the same bits, but where `DEVIATIONS` says.
Each of its rows is asserted by itself, so that one which is no longer true fails.
"""

from __future__ import annotations

import platform
from functools import cache

import numpy as np
import pytest
from hypothesis import settings

from graphir import DType
from tests.evaluator import same
from tests.peers import deviations as at
from tests.peers.deviations import ANY, COMPUTING, EXTREMES, Deviation
from tests.peers.graphs import COMPARISONS, Library, Run, Step, Value, differences, program
from tests.peers.libraries import LIBRARIES

pytestmark = pytest.mark.filterwarnings("ignore")

JAX = "jax jax_x32 jax_strict"
F4, F16, F32 = DType.float4_e2m1fn, DType.float16, DType.float32
E4M3, E8M0 = DType.float8_e4m3fn, DType.float8_e8m0fnu
BOOL, INT8, C64 = DType.bool, DType.int8, DType.complex64
X, Y, NAN, INF = Value(0), Value(1), float("nan"), float("inf")
X86 = platform.machine() in ("x86_64", "AMD64")
NUMPY = tuple(map(int, np.__version__.split(".")[:2]))


DEVIATIONS = [
    Deviation(
        "float to an integer that does not hold it, or of NaN: what the x86 instruction gives",
        "undefined in C: numpy/numpy#19881, pytorch/pytorch#107693",
        "numpy array_api torch",
        ("cast",),
        at.out_of_range,
        ((F32, [300.7, -1.5, NAN]),),
        (Step("cast", (X,), DType.uint8),),
        [255, 0, 0],
        [44, 255, 0],
        here=X86,
    ),
    Deviation(
        "to a float of 16 or 8 bits by way of float32, which rounds twice",
        "c10/util/Half.h and BFloat16.h are made from float; XLA on CPU",
        f"torch {JAX}",
        ANY,
        lambda case: at.over(case, at.through_float32),
        ((DType.int32, [2**24 + 2**16 + 1]),),
        (Step("cast", (X,), DType.bfloat16),),
        [2**24 + 2**17],
        [2**24],
    ),
    Deviation(
        "what overflows float8_e4m3fn saturates",
        "torch/headeronly/util/Float8_e4m3fn.h, fp8e4m3fn_from_fp32_value",
        "torch",
        ANY,
        at.made_nan(E4M3),
        ((F32, [500.0, -INF]),),
        (Step("cast", (X,), E4M3),),
        [NAN, NAN],
        [448.0, -448.0],
    ),
    Deviation(
        "float8_e8m0fnu drops signs, and takes zero for its least value",
        "torch/headeronly/util/Float8_e8m0fnu.h, fp8e8m0fnu_from_fp32_value",
        "torch",
        ANY,
        at.made_nan(E8M0),
        ((F32, [0.0, -2.0]),),
        (Step("cast", (X,), E8M0),),
        [NAN, NAN],
        [2.0**-127, 2.0],
    ),
    Deviation(
        "a half times a number or 0-d tensor that it does not hold takes that in float32",
        "aten/src/ATen/native/cpu/BinaryOpsKernel.cpp, mul_kernel: opmath_t",
        "torch",
        ("multiply",),
        lambda case: at.over(case, at.inexact_half),
        ((F16, [3.0]),),
        (Step("multiply", (X, 2049)),),
        [6144.0],
        [6148.0],
    ),
    Deviation(
        "subnormal operands and results of arithmetic are zero",
        "jax-ml/jax#16200 and #26658",
        JAX,
        ANY,
        at.flushed,
        ((F32, [2.0**-126, 2.0**-127]),),
        (Step("multiply", (X, 0.5)),),
        [2.0**-127, 2.0**-128],
        [0.0, 0.0],
    ),
    Deviation(
        "-0.0 is less than 0.0",
        "IEEE 754-2019, 9.6; XLA on CPU",
        JAX,
        EXTREMES,
        at.equal_numbers,
        ((F32, [0.0, -0.0]), (F32, [-0.0, 0.0])),
        (Step("maximum", (X, Y)),),
        [-0.0, 0.0],
        [0.0, 0.0],
    ),
    Deviation(
        "of zeros the first is taken, here the second; NumPy does so in float16",
        "aten/src/ATen/native/cpu/BinaryOpsKernel.cpp; numpy loops.c.src, HALF_maximum",
        "numpy torch",
        EXTREMES,
        at.equal_numbers,
        ((F16, [0.0, -0.0]), (F16, [-0.0, 0.0])),
        (Step("maximum", (X, Y)),),
        [-0.0, 0.0],
        [0.0, -0.0],
    ),
    Deviation(
        "complex numbers compare by real at.parts, then by imaginary ones, whatever is NaN",
        "jax/_src/numpy/ufuncs.py, _complex_comparison; mlir.py, _minmax_hlo",
        JAX,
        (*COMPARISONS, *EXTREMES),
        lambda case: at.part(case, np.isnan),
        ((C64, [complex(-1, NAN)]), (C64, [1])),
        (Step("less", (X, Y)),),
        [False],
        [True],
    ),
    Deviation(
        "complex scalars compare by real at.parts, then by imaginary ones, whatever is NaN",
        "numpy/_core/src/umath/scalarmath.c.src",
        "numpy",
        COMPARISONS,
        lambda case: not case.values[0].shape and at.part(case, np.isnan),
        ((C64, complex(-1, NAN)),),
        (Step("less_equal", (X, 1)),),
        False,
        True,
    ),
    Deviation(
        "products and |x| of complex scalars and strided arrays are not fused",
        "numpy/_core/src/umath: scalarmath.c.src, loops_arithm_fp.dispatch.c.src",
        "numpy array_api",
        ("multiply", "abs"),
        at.near,
        ((C64, [-2.33 - 0.73j] * 2), (C64, [0.41 + 1.37j] * 2)),
        (Step("flip", (X,)), Step("multiply", (Y, Value(2)))),
        [0.044800058 - 3.4913998j] * 2,
        [0.044800043 - 3.4913998j] * 2,
        here=X86 and NUMPY >= (2, 4),
    ),
    Deviation(
        "|x| is not hypot; products of vectors are fused otherwise",
        "aten/src/ATen/cpu/vec/vec256/vec256_complex_float.h; pytorch/pytorch#41246",
        "torch",
        ("multiply", "abs"),
        at.near,
        ((C64, [1.5 + 257j]),),
        (Step("abs", (X,)),),
        [257.0044],
        [257.00436],
        here=X86,
    ),
    Deviation(
        "products of complex numbers are not fused, or otherwise",
        "XLA on LLVM",
        JAX,
        ("multiply", "abs"),
        at.near,
        ((C64, [-1.05 + 0.91j]), (C64, [1.23 - 1.35j])),
        (Step("multiply", (X, Y)),),
        [-0.06299996 + 2.5368j],
        [-0.06299996 + 2.5368001j],
        here=X86,
    ),
    Deviation(
        "x + y of complex numbers is x + 1 * y, which changes infinities and signs of zeros",
        "pytorch/pytorch#82510",
        "torch",
        ("add", "subtract"),
        at.multiplied_by_1,
        ((C64, [1]), (C64, [complex(INF, 1)])),
        (Step("add", (X, Y)),),
        [complex(INF, 1)],
        [complex(INF, NAN)],
    ),
    Deviation(
        "-x of a vector of complex numbers is 0 - x, which loses the sign of zero",
        "aten/src/ATen/cpu/vec/vec256/vec256_complex_float.h, neg",
        "torch",
        ("negative",),
        at.equal_numbers,
        ((C64, [1 + 0j] * 8),),
        (Step("negative", (X,)),),
        [complex(-1, -0.0)] * 8,
        [-1 + 0j] * 8,
        here=X86,
    ),
    Deviation(
        "an array of bool times x selects x or 0: of NaN, infinities and signs nothing is left",
        "seen in compiled HLO: select(pred, x, 0)",
        "jax jax_x32",
        ("multiply",),
        lambda case: at.over(case, lambda one: one.source is BOOL and ~one.before),
        ((F32, [NAN, -1.0]), (BOOL, [False, False])),
        (Step("multiply", (X, Y)),),
        [NAN, -0.0],
        [0.0, 0.0],
    ),
    Deviation(
        "the greatest float4 saturates in any integer, as if it were out of range there",
        "jaxlib 0.10.2 on CPU; not reported",
        JAX,
        ("cast",),
        lambda case: case.given[0] is F4 and abs(at.parts(case.conversions[0].before))[..., 0] == 6,
        ((F4, [6.0, -6.0, 4.0]),),
        (Step("cast", (X,), DType.int32),),
        [6, -6, 4],
        [2**31 - 1, -(2**31), 4],
    ),
    Deviation(
        "a NumPy scalar of 64 bits loses the upper ones before it meets anything",
        "jax/_src/dtypes.py, canonicalize_dtype",
        "jax_x32",
        COMPUTING,
        at.given(lambda x: isinstance(x, np.generic) and x.itemsize == 8),
        ((F32, [1.0]),),
        (Step("add", (X, np.int64(2**40))),),
        [2.0**40],
        [1.0],
    ),
    Deviation(
        "a complex number becomes real without its imaginary part",
        "numpy.exceptions.ComplexWarning; torch.Tensor.to; jax.lax.convert_element_type",
        f"numpy torch {JAX}",
        ("cast",),
        lambda case: case.given[0].is_complex and not case.step.to.is_complex,
        ((C64, [1 + 2j]),),
        (Step("cast", (X,), F32),),
        None,
        F32,
    ),
    Deviation(
        "a complex number does not become bool",
        "data-apis.org/array-api, astype",
        "array_api",
        ("cast",),
        lambda case: case.given[0].is_complex and case.step.to is BOOL,
        ((C64, [1 + 2j]),),
        (Step("cast", (X,), BOOL),),
        BOOL,
        None,
    ),
    Deviation(
        "an int beyond 64 bits, here beyond int64, becomes a float and compares exactly",
        "NEP 50; numpy/_core/src/umath/special_integer_comparisons.cpp",
        "numpy array_api",
        COMPUTING,
        at.given(lambda x: type(x) is int and x >= 2**63),
        ((F32, [1.0]),),
        (Step("add", (X, 2**64)),),
        None,
        F32,
    ),
    Deviation(
        "where wraps an int that does not fit",
        "numpy/numpy#30803",
        "numpy",
        ("where",),
        at.misfits,
        ((BOOL, [True]), (INT8, [1])),
        (Step("where", (X, Y, 300)),),
        None,
        INT8,
        here=NUMPY < (2, 5),
    ),
    Deviation(
        "a real array meets a complex number where complex arrays are refused",
        "array_api_strict/_array_object.py, _check_allowed_dtypes",
        "array_api",
        (*COMPARISONS, *EXTREMES),
        at.given(lambda x: type(x) is complex),
        ((F32, [1.0]),),
        (Step("less", (X, 1j)),),
        None,
        BOOL,
    ),
    Deviation(
        "maximum and minimum take tensors alone",
        "pytorch.org/docs, torch.maximum",
        "torch",
        EXTREMES,
        at.given(lambda x: not isinstance(x, DType)),
        ((F32, [1.0]),),
        (Step("maximum", (X, 2)),),
        F32,
        None,
    ),
    Deviation(
        "a 0-d tensor meets True, and ints from 2**63 on, as numbers; here as 0-d bool and uint64",
        "aten/src/ATen/native/TypeProperties.cpp, update_result_type_state; c10/core/Scalar.h",
        "torch",
        COMPUTING,
        at.number_beside_0d,
        ((DType.uint16, 3),),
        (Step("multiply", (X, True)),),
        None,
        DType.uint16,
    ),
    Deviation(
        "float16 and a complex number compare in complex32, which graphir does not have",
        "c10/core/ScalarType.cpp, toComplexType",
        "torch",
        ("equal", "not_equal"),
        lambda case: F16 in case.given and at.with_complex(case),
        ((F16, [1.0]),),
        (Step("equal", (X, 1j)),),
        None,
        BOOL,
    ),
    Deviation(
        "compiled, a product that is added to is not rounded first",
        "jax-ml/jax#18507, openxla/xla#41579",
        "jitted",
        ANY,
        lambda case: at.after(case, ("add", "subtract"), ("multiply",)),
        ((F32, [1 + 2.0**-12]), (F32, [-1 - 2.0**-11])),
        (Step("multiply", (X, X)), Step("add", (Value(2), Y))),
        [0.0],
        [2.0**-24],
    ),
    Deviation(
        "compiled, sums and products with constants are combined, x + 0 and x * 1 left out",
        "jax-ml/jax#6566 and #8022",
        "jitted",
        ANY,
        lambda case: at.literally(case) or at.after(case, at.ARITHMETIC, at.ARITHMETIC),
        ((F32, [1.0]),),
        (Step("subtract", (X, 2.0**25)), Step("add", (Value(1), 2.0**25))),
        [0.0],
        [1.0],
    ),
]


@cache
def _library(name: str) -> Library:
    module, make = LIBRARIES[name]
    pytest.importorskip(module, reason=f"{module} is not installed: nothing to compare with")
    return make()


PROGRAMS = {
    "numpy": 40,
    "array_api": 40,
    "torch": 40,
    "jax": 0.6,
    "jax_x32": 0.4,
    "jax_strict": 0.3,
}
"""How many, for every example of the hypothesis profile: JAX compiles each op for each shape."""


@pytest.mark.parametrize("name", LIBRARIES)
def test_random_programs(name: str):
    library, found, compared = _library(name), [], 0
    for seed in range(int(PROGRAMS[name] * settings().max_examples)):
        with library.settings():
            run = Run(program(seed, library), library)
            jitted = run.jitted() if library.jit and not seed % 2 else ()
            found += differences([*run.cases, *jitted], at.explained(DEVIATIONS))
        compared += len(run.computed)
    assert not found, found[:20]
    assert compared > 3 * PROGRAMS[name] * settings().max_examples


CLAIMS = [(row, name) for row in DEVIATIONS for name in row.names]


@pytest.mark.parametrize("row, name", CLAIMS, ids=[f"{row.what}-{name}" for row, name in CLAIMS])
def test_deviations_are_as_claimed(row: Deviation, name: str):
    library = _library(name)
    if not row.here:
        pytest.skip(f"not on {platform.machine()}, or not in this version of {name}")
    with library.settings():
        case = row.example(library)
    for claim, dtype, value in zip((row.ours, row.theirs), case.dtypes, case.values, strict=True):
        if isinstance(claim, (DType, type(None))):
            assert dtype is claim
        else:
            assert same(value, np.array(claim).astype(value.dtype)), value
    assert [*differences([case], at.explained([row]))] == []
