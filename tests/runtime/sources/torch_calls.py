"""Calls of PyTorch's functions that have arguments of their own, for the sweep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


def _tensors(dtype: Any) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator).to(dtype)

    return {
        "x": normal(4, 5),
        "y": normal(4, 5),
        "v": normal(5),
        "a": normal(5, 5),
        "q": normal(2, 2, 4, 8),
        "b": normal(3, 4, 5),
        "image": normal(2, 4, 8, 8),
        "line": normal(2, 4, 9),
        "volume": normal(1, 2, 4, 4, 4),
        "i": torch.tensor([0, 3, 1]),
        "n": torch.tensor([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 1, 1, 1, 1], [0, 2, 4, 0, 2]]),
        "m": torch.tensor([[True, False, True, True, False]] * 4),
    }


_CALLS = Path(__file__).with_suffix(".txt")


def calls() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield the calls as functions with arguments, for dtypes of floats."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        tensors = _tensors(dtype)
        for source in _CALLS.read_text(encoding="utf-8").splitlines():
            yield _case(source, tensors, str(dtype).removeprefix("torch."))


def _case(source: str, tensors: dict[str, Any], dtype: str) -> tuple[str, Any, tuple[Any, ...]]:
    code = compile(f"lambda {', '.join(tensors)}: {source}", "torch_calls", "eval")
    function = eval(code, {"torch": torch, "F": F, "nn": nn})
    return f"{source} of {dtype}", function, tuple(tensors.values())
