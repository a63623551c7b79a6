"""Core ATen's ops have rows; samples of the sweep's functions, and modules in several modes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphir.runtime.sources.torch_.decompositions import decomposition, name_of  # noqa: E402
from graphir.runtime.sources.torch_.op_symbols import ROWS  # noqa: E402
from tests.runtime.sources.torch_models import MODES, models  # noqa: E402
from tests.runtime.sources.torch_sweep import Case, cases, outcome  # noqa: E402
from tests.support.tables import every  # noqa: E402

CALLS = {
    "rand randperm": "random values",
    "nonzero masked_scatter": "places or sizes that depend on values",
    "_adaptive_avg_pool3d _adaptive_avg_pool2d_backward": "windows of many sizes",
    "avg_pool2d_backward": "windows that overlap",
    "_fft_c2r _fft_r2c": "no op computes a Fourier transform",
    "_cdist_forward _pdist_forward": "a loop over pairs in C++",
    "_embedding_bag": "bags of many sizes",
}
"""The ops of Core ATen that are calls, with the reason."""
CONVERSIONS = {"_to_copy"}
NUMBERS = {"sym_numel", "sym_size", "sym_storage_offset", "sym_stride", "_local_scalar_dense"}
VIEWS = {"as_strided", "resize_"}
"""The views that the recorder reads from their base."""

EXPECTED = (
    "the graph leaves out the check",  # of F.one_hot and F.gaussian_nll_loss
    "are no outputs of the graph",  # running statistics
    "is a fraction, which no integer is",  # a power of integers, which PyTorch makes 0
    "graphir has no dtype complex32",
    "torch.ldexp",  # of which PyTorch and its FakeTensor give different dtypes
    "aten.ldexp",
    "pow.Tensor_Scalar",  # of bools, likewise
)
REFUSED = ("allclose", "one_hot")


def core() -> list[Any]:
    packets = (getattr(torch.ops.aten, name) for name in dir(torch.ops.aten))
    overloads = (
        getattr(x, name) for x in packets if hasattr(x, "overloads") for name in x.overloads()
    )
    return [op for op in overloads if torch.Tag.core in op.tags]


def test_core_aten_has_rows() -> None:
    ops = core()
    assert len(ops) > 150
    calls = {name for names in CALLS for name in names.split()}
    lacking: set[str] = set()
    for op in ops:
        name = name_of(op)
        has_row = name in ROWS or name.removesuffix("_") in ROWS or name in CONVERSIONS
        if not (has_row or name in NUMBERS | VIEWS or decomposition(torch, op) is not None):
            lacking.add(name)
    assert lacking == calls


def problems(case: Case, bound: float | None = None) -> list[str]:
    result = outcome(case, bound)
    if result is None:
        return []
    return [text for text in result.problems if not any(x in text for x in EXPECTED)]


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_the_sweep() -> None:
    sample = list(cases())[::61]
    wrong = {x.name: problems(x) for x in sample if not any(name in x.name for name in REFUSED)}
    assert len(sample) > 100
    assert not {name: texts for name, texts in wrong.items() if texts}


MODELS = models()
PAIRS = [(name, [*MODES][i % len(MODES)]) for i, name in enumerate(MODELS)]
FUSED = "encoder layer in evaluation"  # PyTorch's fused kernel has other dtypes under autocast


@every(("name", "mode"), PAIRS)
@pytest.mark.filterwarnings("ignore")
def test_modules_in_modes(name: str, mode: str) -> None:
    module, args = copy.deepcopy(MODELS[name])
    parameters = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    parameters = {key: x.detach() for key, x in parameters.items()}
    case = Case(name, MODES[mode](module), (parameters, *args))
    if name != FUSED or "autocast" not in mode:
        assert problems(case, 5e-2 if "autocast" in mode else 2e-3) == []
    result = outcome(case)
    older = torch.__version__ < "2.13" and mode == "inference"  # whose lstm runs oneDNN there
    calls = [] if result is None else [x for x in result.calls if "upsample" not in x]
    assert calls == [] or (older and "LSTM" in name)
