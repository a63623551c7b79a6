"""Programs of PyTorch that write, alias, check, draw or hide values: right, noted or refused."""

from __future__ import annotations

import copy
import logging
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from graphir import GraphError  # noqa: E402
from graphir.passes import cast_report  # noqa: E402
from graphir.runtime import from_torch, interpret, record_torch  # noqa: E402
from graphir.runtime.sources.op_rows import OpRows  # noqa: E402
from graphir.runtime.sources.torch_ import op_symbols  # noqa: E402
from tests.runtime.sources.torch_sweep import Case, outcome, tensor  # noqa: E402
from tests.support.tables import every  # noqa: E402

nn, F = torch.nn, torch.nn.functional
X, Y = tensor("f32", (4, 5)), tensor("f32", (4, 5), 3)


def writes(x: Any) -> Any:
    y = x.clone()
    y[1:3] += 2
    y[y > 0] *= 3
    y.T[0] = 7
    y[:, 1].mul_(y[:, 0])
    return y


def outs(x: Any, y: Any) -> Any:
    sums, values, order = torch.empty(4, 5), torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.add(x, y, out=sums)
    torch.sort(sums, out=(values, order))
    return sums, values, order


def aliases(x: Any) -> Any:
    y = x.clone()
    flat, turned = y.view(-1), y.T
    flat[3] = 9
    turned.add_(1)
    return y, flat * 1, turned * 2


def geometries(x: Any) -> Any:
    y = x.clone()
    y.unsqueeze_(0).transpose_(1, 2).squeeze_(0)
    y.t_()
    return y.add_(1)


def many(x: Any) -> Any:
    y = x.clone()
    y.copy_(x.double()).masked_fill_(x > 0, 2)
    y.index_add_(0, torch.tensor([0, 0]), x[:2]).clamp_(-1, 1)
    y.scatter_add_(0, torch.zeros(1, 5, dtype=torch.int64), x[:1])
    return y.index_put_((torch.tensor([0, -1, 0]),), x[:3], accumulate=True)


def integers(x: Any) -> Any:
    counts = torch.zeros(4, 5, dtype=torch.int32)
    counts += 3
    counts[0] = x[0]
    return counts


@every("function", [writes, outs, aliases, geometries, many, integers])
def test_writes_become_values(function: Any) -> None:
    args = (X, Y)[: function.__code__.co_argcount]
    result = outcome(Case("", function, args))
    assert result is not None and result.problems == []


def test_a_write_to_integers_is_an_assignment() -> None:
    report = cast_report(from_torch(integers, X))
    (row,) = [row for row in report if row.source.is_float and row.target.is_integer]
    assert (row.kind, row.op, row.operand) == ("assignment", "copy_", "value")


def formatted(x: Any) -> Any:
    text = f"{x.sum():.3f}"
    return x if text else -x


@every(
    ("function", "fix"),
    [
        (lambda x: x.sum().item() * x, "torch.where"),
        (lambda x: x if (x > 0).all() else -x, "torch.where"),
        (lambda x: x.tolist() and x, "PyTorch's functions"),
        (lambda x: x.numpy() and x, "PyTorch's functions"),
        (formatted, "leave the text out"),
        (lambda x: x[int(x.argmax()) :], "pass the number"),
        (lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), "torch.where"),
    ],
)
def test_a_value_that_leaves_is_refused_with_line_and_fix(function: Any, fix: str) -> None:
    with pytest.raises(GraphError) as error:
        from_torch(function, X)
    assert fix in str(error.value) and "test_torch_programs.py:" in str(error.value)


@every("function", [lambda x: x * len(str(x)), lambda x: x * float(f"{x[0]}"[8]), repr])
def test_the_text_of_a_tensor_is_no_value_of_the_graph(function: Any) -> None:
    with pytest.raises(GraphError, match="leave the text out, or print"):
        from_torch(function, X)


def prints(x: Any) -> Any:
    print(f"{x.sum():.3f}", x.mean().item(), nn.Parameter(x))
    _LOGGER.info("%s", x[0])
    return x * 2


_LOGGER = logging.getLogger(__name__)


def test_a_value_that_is_only_printed_stays_out_of_the_graph(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        graph = from_torch(prints, X)
    assert len(graph.symbols) == 3 and all("leaves out the print" in x for x in graph.notes)
    for text in (
        "print(y := x.sum().item())",
        "print(); y = x.sum().item()",
        "values.append(x.sum().item())",
    ):
        program = {"values": []}
        exec(f"def read(x):\n    {text}\n    return x", program)
        with pytest.raises(GraphError, match="leaves the graph"):
            from_torch(program["read"], X)


def _scaled_step(fused: bool) -> Any:
    torch.manual_seed(0)
    net, scaler = nn.Linear(5, 2), torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, fused=fused)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        scaler.scale(net(x).pow(2).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        return [p.detach().clone() for p in net.parameters()], scaler._scale.clone()

    return step


def test_the_step_of_a_scaler_needs_an_optimizer_whose_op_decides() -> None:
    with pytest.raises(GraphError) as error:
        from_torch(_scaled_step(False), X)
    text = str(error.value)
    assert re.search(
        r"test_torch_programs.py:\d+:9: item: .* torch/amp/grad_scaler.py:\d+ reads", text
    )
    assert "fused=True" in text and "outside of the graph" in text
    graph = from_torch(_scaled_step(True), X)
    for x in (X, X * 3, X * torch.inf):  # the last is not stepped
        parameters, scale = _scaled_step(True)(x)
        for value, right in zip(interpret(graph, x.numpy()), (*parameters, scale), strict=True):
            np.testing.assert_allclose(value, right.numpy(), atol=1e-6)


def test_a_program_of_an_installed_package_has_the_line_of_its_own() -> None:
    path = Path(torch.__file__).parents[1] / "some_package.py"  # no file is read or written
    program = dict[str, Any]()
    exec(compile("def read(x):\n    y = x * 2\n    return y.item()", str(path), "exec"), program)
    errors: list[BaseException | None] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", lambda hook: errors.append(hook.exc_value))
        thread = threading.Thread(target=from_torch, args=(program["read"], X.sum()))
        thread.start()
        thread.join()
    assert "some_package.py:3:12: item: " in str(errors[0])


FLAT = torch.linspace(-1, 1, 15)
ROWS = FLAT.view(3, 5)


class OfOneMemory(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(FLAT[:5]), nn.Parameter(FLAT[5:10])

    def forward(self, x: Any) -> Any:
        return x * self.weight + self.bias


def test_tensors_from_outside_may_be_parts_of_one_memory() -> None:
    weight, bias, _ = ROWS
    graph = from_torch(lambda x: x * weight + bias, X)
    np.testing.assert_array_equal(interpret(graph, X.numpy()), (X * weight + bias).numpy())
    graph = from_torch(OfOneMemory(), X)
    assert graph.input_names == ["x", "weight", "bias"]
    np.testing.assert_array_equal(interpret(graph, X.numpy()), (X * weight + bias).numpy())

    def overlaps(x: Any) -> Any:
        return x * weight + FLAT[4:9]

    def writes_to_one(x: Any) -> Any:
        y = x * weight
        weight.mul_(1.0)
        return y + bias

    for function in (overlaps, writes_to_one):
        with pytest.raises(GraphError, match="shares memory"):
            from_torch(function, X)


def returns_written_memory(x: Any) -> Any:
    y = x * 2
    whole = y.view(torch.int32)
    y.sqrt_()
    return whole


def test_a_result_that_cannot_be_read_is_refused_at_the_last_line_that_computes() -> None:
    with pytest.raises(GraphError, match="in another dtype") as error:
        from_torch(returns_written_memory, X)
    line = returns_written_memory.__code__.co_firstlineno + 3
    assert f"test_torch_programs.py:{line}:5: return: " in str(error.value)


class Plain(torch.Tensor):
    pass


@pytest.mark.filterwarnings("ignore")
def test_tensors_without_plain_values_are_refused_by_name() -> None:
    fake = torch._subclasses.fake_tensor.FakeTensorMode().from_tensor(X)
    tensors = {
        "sparse_coo": X.to_sparse(),
        "quantized": torch.quantize_per_tensor(X, 0.1, 0, torch.qint8),
        "meta": X.to("meta"),
        "FakeTensor": fake,
        "complex32": torch.zeros(3, dtype=torch.complex32),
    }
    for name, x in tensors.items():
        with pytest.raises(GraphError, match=name):
            from_torch(lambda x: x + 1, x)
    with pytest.raises(GraphError, match="run the lazy module once"):
        from_torch(nn.LazyLinear(3), X)
    assert from_torch(lambda x: x + 1, X.as_subclass(Plain)).input_names == ["x"]


def test_checks_are_left_out_and_noted() -> None:
    def checked(x: Any) -> Any:
        assert (x == x).all(), "nan"
        if x.isinf().any():
            raise ValueError("infinite")
        return F.one_hot(x.long().clamp(0, 3), 4)

    graph = from_torch(checked, X)
    line = checked.__code__.co_firstlineno
    assert [note.partition(":")[0] for note in graph.notes] == [
        f"line {line + i}" for i in (1, 2, 4)
    ]
    assert all("leaves out the check" in note for note in cast_report(graph).sentences)


def test_a_random_op_is_noted() -> None:
    (note,) = from_torch(lambda x: F.dropout(x, 0.5), X).notes
    assert "bernoulli_ is random" in note
    assert from_torch(nn.Dropout(0.5).eval(), X).notes == []


@dataclass
class Batch:
    values: Any
    masks: dict[str, Any]


class Pair(NamedTuple):
    first: Any
    second: Any


def test_arguments_and_results_are_trees() -> None:
    graph = from_torch(
        lambda batch, *, scale: Batch(batch.values * scale["s"], {"m": batch.masks["k"] + 1}),
        Batch(X, {"k": Y}),
        scale={"s": X + 1},
    )
    assert graph.input_names == ["batch_values", "batch_masks_k", "scale_s"]
    assert len(graph.outputs) == 2
    graph = from_torch(lambda pair: Pair(pair.second, pair.first), Pair(X, Y))
    assert graph.input_names == ["pair_first", "pair_second"] and len(graph.outputs) == 2


def test_arguments_that_share_memory_are_inputs_of_their_own() -> None:
    graph = from_torch(lambda x, y, part: x + y + part, X, X, X[:1])
    value = interpret(graph, X.numpy(), Y.numpy(), Y[1:2].numpy())
    np.testing.assert_array_equal(value, X + Y + Y[1:2])


def test_an_array_argument_is_noted() -> None:
    graph = from_torch(lambda x, table: x + torch.from_numpy(table), X, Y.numpy())
    assert "NumPy array table" in graph.notes[0]


def test_tied_and_parametrized_parameters() -> None:
    first, second = nn.Linear(5, 5, bias=False), nn.Linear(5, 5, bias=False)
    second.weight = first.weight
    assert from_torch(nn.Sequential(first, second), X).input_names == ["input", "x_0_weight"]
    graph = from_torch(nn.utils.parametrizations.weight_norm(nn.Linear(5, 3)), X)
    assert graph.input_names[2:] == [f"parametrizations_weight_original{i}" for i in (0, 1)]


def test_a_recording_leaves_no_trace_beyond_the_call() -> None:
    module = nn.Sequential(nn.BatchNorm1d(5), nn.Dropout(0.5))
    twin, calls = copy.deepcopy(module), list[int]()
    module[0].register_forward_hook(lambda *_: calls.append(1))
    hooks = torch.nn.modules.module
    torch.manual_seed(1)
    right = twin(X), torch.rand(1)
    torch.manual_seed(1)
    graph = from_torch(module, X)
    assert torch.equal(right[1], torch.rand(1)) and calls == [1]
    for (name, x), (_, y) in zip(module.named_buffers(), twin.named_buffers(), strict=True):
        assert torch.equal(x, y), name
    assert not hooks._global_forward_hooks and not hooks._global_forward_pre_hooks
    assert "running_mean" in graph.notes[-1] and "no outputs" in graph.notes[-1]


def test_earlier_casts_of_autocast_are_no_constants() -> None:
    net = nn.Linear(5, 3)
    with torch.autocast("cpu", torch.bfloat16):
        net(X)
        graph = from_torch(net, X)
    assert set(graph.input_names) == {"weight", "bias", "input"}
    assert len([row for row in cast_report(graph) if row.kind == "autocast"]) == 3


@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_run_as_written() -> None:
    pytest.importorskip("torch._dynamo")
    net = torch.compile(nn.Linear(5, 3))
    assert from_torch(net, X).input_names == ["input", "weight", "bias"]
    graph = from_torch(lambda x: net(x) + torch.compile(torch.sin)(x[:, :3]), X)
    assert "matmul" in [symbol.op.name for symbol in graph.symbols]


def test_a_fault_in_a_row_fails_tests_and_leaves_users_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fault(e: Any, x: Any) -> Any:
        raise TypeError("a fault of the row")

    monkeypatch.setitem(op_symbols.ROWS, "sin", fault)
    with pytest.raises(AssertionError, match="a row has a fault: TypeError"):
        from_torch(lambda x: x.sin(), X)
    monkeypatch.setattr(OpRows, "raises_faults", False)
    note = from_torch(lambda x: x.sin(), X).notes[0]
    assert "the row of aten.sin.default failed" in note and "a fault of the row" in note


def test_a_refusal_of_unlike_dtypes_has_a_note_with_the_operands() -> None:
    def caught(x: Any, y: Any) -> Any:
        try:
            return x.half() @ y.T
        except RuntimeError:
            return x @ y.T

    def program(x: Any, y: Any) -> Any:
        return x.half() @ y.T

    assert str(from_torch(caught, X, Y).outputs[0].dtype) == "float32"
    with pytest.raises(RuntimeError, match="dtype") as error:
        from_torch(program, X, Y)
    (note,) = error.value.__notes__
    line = program.__code__.co_firstlineno + 1
    assert note.startswith(f"line {line}: x.half() @ y.T: y is float32[4, 5]; ")
    assert note.endswith("x.half() is float16[4, 5]; y.T is float32[5, 4]")


def test_a_note_names_the_step_that_wrapped_before_an_error() -> None:
    table = torch.nn.Embedding(200, 4)

    def program(ids: Any) -> Any:
        rows = ids.to(torch.int8) * 2
        return table(rows.long())

    with pytest.raises(IndexError) as error:
        from_torch(program, torch.tensor([3, 70]))
    (note,) = error.value.__notes__
    line = program.__code__.co_firstlineno + 1
    assert f"rows is wrong by 183 % because line {line} wraps 1 of 2 elements" in note


def test_an_op_of_another_library_is_a_call() -> None:
    @torch.library.custom_op("graphir_test::sin", mutates_args=())
    def other_sin(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    graph = from_torch(lambda x: torch.ops.graphir_test.sin(x) + 1, X)
    assert "call" in [symbol.op.name for symbol in graph.symbols]
    np.testing.assert_allclose(interpret(graph, X.numpy()), X * 3 + 1)


def test_the_default_dtype_is_float32() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(GraphError, match="default dtype float32"):
            from_torch(lambda x: x * 2.5, X)
    finally:
        torch.set_default_dtype(torch.float32)


# -- values that leave for Python and NumPy: the graph of one run


def _reads(x: Any) -> Any:
    total, y = x[0, 0].item(), x * 1
    for _ in range(int(x.shape[0] - (x > 9).sum())):
        y = y * 0.5
    return y + total if y.max() < 9 else y


def _through_numpy(x: Any) -> Any:
    array = np.sqrt(np.abs(x.numpy())).astype(np.float64)
    return torch.from_numpy(array) * x, torch.Tensor(array.astype(np.int64)), np.asarray(x[0])


def _written_by_numpy(x: Any) -> Any:
    y, buffer = x * 2, np.zeros(5, np.float32)
    shared, rows = torch.from_numpy(buffer), y[1:].numpy()
    before = shared + x
    buffer += 1
    rows[0] = 7
    y[0] = 3
    return before, shared + x, y * 1


def _gives_numbers(x: Any) -> list[float]:
    values: list[float] = []
    for scale in (1, 300):
        values.append((x.half() * scale).sum().item())
    return values


def _gives_an_array(x: Any) -> Any:
    return {"doubled": (x * 2).numpy()}


@every(
    ("function", "reads"),
    [
        (_reads, ["item", "int", "bool"]),
        (_through_numpy, ["numpy", "array"]),
        (_written_by_numpy, ["numpy"]),
        (_gives_an_array, []),
        (_gives_numbers, []),
        (lambda x: [x, x * 2][(x > 9).sum()], ["index"]),
        (lambda x: x * {0: 2.0}[(x > 9).sum().item()], ["item"]),
        (lambda x: torch.tensor(x.tolist()) if torch.equal(x, x) else x, ["equal", "tolist"]),
        (
            lambda x: nn.utils.rnn.pack_padded_sequence(x, (x[:, 0] > 9) + 5, True).data * 1,
            ["pack_padded_sequence"],
        ),
    ],
)
def test_the_recording_of_one_run_has_its_values_and_names_what_left(
    function: Any, reads: list[str]
) -> None:
    recording = record_torch(function, X)
    values = interpret(recording.graph, *recording.inputs)
    values = values if isinstance(values, tuple) else (values,)
    plain = torch.utils._pytree.tree_leaves(recording.result)
    rounds = recording.rounds or (1,) * len(values)
    each = [
        x
        for value, count in zip(values, rounds, strict=True)
        for x in (value if count > 1 else [value])
    ]
    for value, expected in zip(each, plain, strict=True):
        assert np.allclose(value, np.asarray(expected))
    for part in recording.graph.provenance.unseen:
        assert part.location.file.endswith("test_torch_programs.py")
    assert [step.what for step in recording.beyond.steps] == reads
    unseen = recording.report().unseen
    assert sorted(x.what for x in unseen if x.decides) == sorted(reads)


def test_an_audit_of_one_run_says_whether_what_left_has_an_error() -> None:
    def by_float(x: Any) -> Any:
        return x - (x.half() * 3).mean().item()

    def by_integer(x: Any) -> Any:
        return x * int((x.half() * 0 + 2049).long().max())

    report = record_torch(by_float, X).audit()
    (part,) = report.unseen
    assert part.decides and "has errors" not in part.reason and "have errors" in part.reason
    assert report.outputs[0].is_known
    report = record_torch(by_integer, X).audit()
    assert report.hidden and not report.outputs[0].is_known
    assert "the error of 1 of 1 output is unknown" in str(report).splitlines()[0]
    assert not record_torch(_reads, X).audit().outputs[0].broken


def test_arrays_and_numbers_that_enter_have_their_lines_and_rounding() -> None:
    def stamps(x: Any, ids: Any) -> Any:
        seconds = torch.zeros(1)
        seconds[0] = 1625000000.9965 + int(ids[0])
        return x * 0 + seconds, torch.Tensor(ids.numpy()).long()

    ids = torch.tensor([2**24 + 1, 3])
    report = record_torch(stamps, X, ids).audit()
    first = stamps.__code__.co_firstlineno
    assert 1 < (report.outputs[0].largest or 0) < 128 and report.outputs[1].largest == 1
    (text,) = (x for x in report.sentences if x.startswith("output1"))
    assert f"line {first + 3} " in text and "; write" not in text
    stores = {row.location.line: row for row in report if row.kind == "assignment"}
    measured = stores[first + 2].measured
    assert measured is not None and measured.changed == 1


def test_of_many_tensors_that_one_line_casts_the_one_that_matters_is_named() -> None:
    class Rotary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("frequencies", 1.0 / (100 ** (torch.arange(8) / 8)))
            self.linear = nn.Linear(8, 8)

        def forward(self, t: Any) -> Any:
            return torch.cos(t[:, None] * self.frequencies.float()) + 0 * self.linear.weight[0]

    rotary, times = Rotary(), torch.arange(2000, 2004)

    def narrowed(t: Any) -> Any:
        rotary.to(torch.bfloat16)
        return rotary(t)

    def made(t: Any) -> Any:
        return Rotary().half()(t)

    first = Rotary.__init__.__code__.co_firstlineno
    for function, name in (
        (narrowed, " of frequencies"),
        (made, f" of the value of line {first + 2}"),
    ):
        (text, *_) = record_torch(function, times).audit().sentences
        assert f"changes 7 of 8 elements{name}" in text


def test_the_error_of_a_value_that_leaves_names_the_recording_of_one_run() -> None:
    with pytest.raises(GraphError, match=r"record_torch\(f, \*args\)"):
        from_torch(_reads, X)
