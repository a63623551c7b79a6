"""The sentences of reports on PyTorch programs: line, operand, rule, and a fix in torch's words."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphir.ir.inlining import inlined  # noqa: E402
from graphir.passes import CastReport, cast_report  # noqa: E402
from graphir.runtime import audit, from_torch  # noqa: E402
from tests.support.dtype_walks import unedited  # noqa: E402

nn, F = torch.nn, torch.nn.functional
X = torch.ones(4, 8)


def line_of(function: Any, offset: int) -> str:
    return f"line {function.__code__.co_firstlineno + offset}"


def audited(function: Any, *args: Any) -> CastReport:
    with torch.no_grad():
        return audit(from_torch(function, *args), *(x.numpy() for x in args))


def test_kernels_that_compute_in_float32_are_no_entries_of_a_fix() -> None:
    weight = torch.ones(8)

    def program(x: Any) -> Any:
        layer = nn.Linear(8, 8, dtype=torch.bfloat16)
        with torch.no_grad():
            return layer(x) * weight

    graph = from_torch(program, X.to(torch.bfloat16))
    unedited(inlined(graph))
    (cause,) = cast_report(graph).dtype_causes
    assert cause.fix is not None
    assert [x.text for x in cause.fix.edits] == ["layer(x) * weight.to(torch.bfloat16)"]


def test_a_number_of_float64_is_named_with_torchs_cast() -> None:
    scale = torch.full((8,), 0.5, dtype=torch.float64)

    def scaled(x: Any) -> Any:
        return x * scale

    (sentence,) = cast_report(from_torch(scaled, X)).sentences
    assert f"{line_of(scaled, 1)} multiplies by `scale`, a float64" in sentence
    assert sentence.endswith("write x * scale.to(torch.float32) (inferred: float32)")


class Projection(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 8))
        self.gain = nn.Parameter(torch.ones(8))

    def forward(self, x: Any) -> Any:
        y = x @ self.weight
        return y * self.gain


def test_a_parameter_that_widens_behind_autocast_is_named() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        (sentence,) = cast_report(from_torch(Projection(), X)).sentences
    assert f"{line_of(Projection.forward, 2)} multiplies by `self.gain`, a float32" in sentence
    assert sentence.endswith("write y * self.gain.to(torch.bfloat16) (inferred: bfloat16)")


def test_a_residual_behind_autocast_is_no_fault() -> None:
    layer = nn.Linear(8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        report = cast_report(from_torch(lambda x: F.softmax(x + layer(x), -1), X))
    assert report.sentences == []


def test_ops_of_a_gradient_are_not_those_that_the_line_writes() -> None:
    weight = torch.ones(8, dtype=torch.float64)

    def program(x: Any) -> Any:
        x = x.requires_grad_()
        loss = (x.double() * weight).sum() * x.mean()
        (gradient,) = torch.autograd.grad(loss, x)
        return gradient * 2.0, loss.detach().float()

    with torch.enable_grad():
        graph = from_torch(program, X)
    inner = [x for x in graph.symbols if x.location.line == program.__code__.co_firstlineno + 3]
    assert inner and all(x.location.compound for x in inner)
    assert not graph.outputs[0].location.compound


def test_casts_of_autocast_name_their_list() -> None:
    def program(x: Any) -> Any:
        y = F.linear(x, x)
        return torch.cat([y, x[:, :4]]), F.mse_loss(y, y)

    with torch.autocast("cpu", torch.bfloat16):
        report = cast_report(from_torch(program, X))
    lists = {row.op.removeprefix("torch."): row.rule for row in report if row.kind == "autocast"}
    assert lists == {
        "linear": "autocast_lower_precision_fp",
        "cat": "autocast_promote",
        "mse_loss": "autocast_fp32",
    }


def test_what_autocast_loses_is_kept_outside_of_it() -> None:
    places = (torch.arange(8.0) + 60000).reshape(1, 8)
    rate = torch.ones(4, 1)

    def program(places: Any, rate: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            angles = rate @ places
        return angles.float() - 60000

    sentence, *_ = audited(program, places, rate).sentences
    assert f"{line_of(program, 2)} changes" in sentence
    fix = 'with torch.autocast("cpu", enabled=False): angles = rate @ places'
    assert f"write {fix}" in sentence


def test_integers_in_a_half_are_kept_in_float32() -> None:
    def program(table: Any) -> Any:
        return torch.arange(300).type_as(table) - 256

    table = torch.zeros(1, dtype=torch.float16)

    def wide(table: Any) -> Any:
        return (torch.arange(500, 512).to(torch.bfloat16) - 500) * table

    assert audited(program, table).sentences == []
    (sentence,) = audited(wide, torch.ones(1)).sentences
    assert sentence.endswith("write torch.arange(500, 512).to(torch.float32) (measured: error 0)")


def test_an_overflow_names_its_op_and_a_float32() -> None:
    def energy(x: Any) -> Any:
        squares = x * x
        return squares.float().sqrt()

    sentence, *_ = audited(energy, X.half() * 300).sentences
    assert (
        f"{line_of(energy, 1)} overflows" in sentence and "float16 multiply: 300 * 300" in sentence
    )
    assert "write x.to(torch.float32) * x.to(torch.float32) (measured: " in sentence


def test_a_sum_beyond_the_least_value_is_clamped() -> None:
    def masked(scores: Any) -> Any:
        lowest = torch.full((4, 8), torch.finfo(torch.float16).min, dtype=torch.float16)
        return scores + lowest

    sentence, *_ = audited(masked, -X.half() * 64).sentences
    assert sentence.endswith(
        "write torch.clamp(scores + lowest, min=torch.finfo(torch.float16).min) (not tried)"
    )
