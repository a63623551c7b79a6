"""Graphs of PyTorch functions: every dtype is the tensor's, and values are PyTorch's in bounds."""

from __future__ import annotations

import copy
import random
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from graphir import ExecutionError, Graph, GraphError, ops  # noqa: E402
from graphir.passes import cast_report, lower  # noqa: E402
from graphir.runtime import from_torch, interpret  # noqa: E402
from graphir.runtime.sources.torch_.tensors import array_of  # noqa: E402
from tests.runtime.sources.torch_programs import FUNCTIONS, MODULES, B, H, N, X, Y  # noqa: E402
from tests.support.evaluator import same  # noqa: E402
from tests.support.tables import every  # noqa: E402

nn, F = torch.nn, torch.nn.functional
BOUNDS = {2: 3e-2, 4: 1e-4, 8: 1e-4, 16: 1e-4}
WITHOUT_ROW = {"median0", "index by a mask"}


def leaves(value: Any) -> list[Any]:
    tree = torch.utils._pytree.tree_leaves(value)
    return [array_of(torch, x) for x in tree if isinstance(x, torch.Tensor)]


def inputs(graph: Graph, function: Any, args: Any) -> dict[str, Any]:
    """Return the arrays of a graph's inputs: parameters by their names, then the arguments."""
    arrays: dict[str, Any] = {}
    if isinstance(function, nn.Module):
        for name, tensor in (*function.named_parameters(), *function.named_buffers()):
            text = name.replace(".", "_")
            arrays[text if text.isidentifier() else f"x_{text}"] = array_of(torch, tensor)
    names = [name for name in graph.input_names if name not in arrays]
    return {**arrays, **dict(zip(names, leaves(args), strict=True))}


def assert_same(function: Any, args: Any, expected: list[Any], graph: Graph, bounds: Any) -> None:
    named = inputs(graph, function, args)
    for each in (graph.verify(), lower(graph, verify_each=True)):
        values = interpret(each, **named)
        several = values if isinstance(values, tuple) else (values,)
        for value, right in zip(several, expected, strict=True):
            assert (value.dtype, value.shape) == (right.dtype, right.shape)
            if right.dtype.kind in "bui":
                np.testing.assert_array_equal(value, right)
            else:
                wide = np.complex128 if right.dtype.kind == "c" else np.float64
                bound = bounds[right.dtype.itemsize]
                np.testing.assert_allclose(
                    value.astype(wide), right.astype(wide), rtol=bound, atol=bound
                )


def calls(graph: Graph) -> list[str]:
    return [each.attrs["callee"].name for each in graph.symbols if each.op is ops.control.call]


@every("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_graphs_have_the_values_of_torch(name: str) -> None:
    function, args = FUNCTIONS[name]
    expected = leaves(function(*args))
    graph = from_torch(function, *args)
    assert_same(function, args, expected, graph, BOUNDS)
    assert not calls(graph) or name.partition(" of ")[0] in WITHOUT_ROW


@every("autocast", [False, True])
@every("name", MODULES)
def test_modules_have_the_values_of_torch(name: str, autocast: bool) -> None:
    module, args = copy.deepcopy(MODULES[name])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
        try:
            expected = leaves(copy.deepcopy(module)(*args))
        except RuntimeError as error:  # oneDNN, on processors without AVX512
            if "primitive descriptor" in str(error):
                return
            raise
        graph = from_torch(copy.deepcopy(module), *args)
    bounds = dict.fromkeys(BOUNDS, 5e-2) if autocast else BOUNDS
    assert_same(module, args, expected, graph, bounds)
    assert len(calls(graph)) <= (autocast and name == "LSTM")


def test_implicit_written_and_autocast_casts_are_told_apart() -> None:
    def program(x: Any, n: Any, weight: Any) -> Any:
        y = x * n
        with torch.autocast("cpu", torch.bfloat16):
            z = F.linear(y, weight)
        z += y[:, :4].half()
        return F.softmax(z, -1, dtype=torch.float64)

    report = cast_report(from_torch(program, X, N, Y))
    line = program.__code__.co_firstlineno
    told = {
        (row.location.line - line, row.kind, row.operand, row.op, str(row.source), str(row.target))
        for row in report
    }
    assert told == {
        (1, "implicit", "rhs", "multiply", "int64", "float32"),
        (3, "autocast", "input", "torch.linear", "float32", "bfloat16"),
        (3, "autocast", "weight", "torch.linear", "float32", "bfloat16"),
        (4, "explicit", "x", "cast", "float32", "float16"),
        (4, "implicit", "lhs", "add", "bfloat16", "float32"),
        (4, "implicit", "rhs", "add", "float16", "float32"),
        (4, "assignment", "value", "add_", "float32", "bfloat16"),
        (5, "explicit", "x", "cast", "bfloat16", "float64"),
    }


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 4), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Any) -> Any:
        return self.body(x) * self.scale


def test_parameters_are_inputs_and_modules_are_layers() -> None:
    net = Net()
    graph = from_torch(net, X)
    assert graph.input_names == ["x", "scale", "body_0_weight", "body_0_bias"]
    layers = {symbol.op.name: symbol.location.layer for symbol in graph.symbols}
    assert layers["matmul"] == "body/0" and layers["relu"] == "body/1"
    product = graph.outputs[0]
    assert product.location.layer == ""
    assert product.location.line == Net.forward.__code__.co_firstlineno + 1
    inside = from_torch(lambda x: net(x).sum(), X)  # a module that the function has from elsewhere
    assert set(inside.input_names) == {*graph.input_names}
    as_argument = from_torch(lambda model, x: model(x), net, X)
    assert as_argument.input_names == [
        "x",
        "model_scale",
        "model_body_0_weight",
        "model_body_0_bias",
    ]
    assert as_argument.inputs[2].location.layer == "body/0"
    for each in (graph, inside, as_argument):
        right = net(X) if each is not inside else net(X).sum()
        np.testing.assert_allclose(interpret(each, X.numpy()), right.detach(), rtol=1e-5)


def test_a_buffer_that_the_run_writes_to_keeps_its_value_from_before() -> None:
    net = nn.BatchNorm1d(5)
    graph = from_torch(net, X)
    assert not graph.defaults["running_mean"].any() and net.running_mean.any()


def test_a_tensor_that_is_an_argument_and_a_parameter_is_one_input() -> None:
    net = nn.Linear(5, 2)
    graph = from_torch(lambda w, model, x: model(x) + w.sum(), net.weight, net, X)
    assert graph.input_names == ["w", "x", "model_bias"]


def test_an_exported_program_keeps_lines_and_layers() -> None:
    net = Net()
    graph = from_torch(torch.export.export(net, (X,)))
    right = net(X).detach().numpy()
    (value,) = [interpret(graph, **inputs(graph, net, (X,)))]
    np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-5)
    product = graph.outputs[0]
    assert product.location.line == Net.forward.__code__.co_firstlineno + 1
    assert {symbol.location.layer for symbol in graph.symbols} >= {"body/0", "body/1"}


def test_a_random_op_is_a_call() -> None:
    graph = from_torch(lambda x: F.dropout(x, 0.5) + torch.rand(5), X)
    assert len(calls(graph)) == 2
    text = str(graph)
    assert str(Graph.parse(text)) == text
    values = interpret(graph, array_of(torch, X))
    assert values.shape == (4, 5) and values.dtype == np.float32


@every("function", [lambda x: x * x.sum().item(), lambda x: x if x.sum() > 0 else -x, np.asarray])
def test_a_value_that_leaves_the_graph_is_refused(function: Any) -> None:
    with pytest.raises(GraphError, match="leaves the graph"):
        from_torch(function, X)


def test_signs_and_steps_of_nan_are_zero() -> None:
    x = torch.tensor([float("nan"), -2.0, 0.0, 3.0])
    graph = from_torch(lambda x, y: (torch.sign(x), torch.heaviside(x, y)), x, x[1:2])
    values = interpret(graph, array_of(torch, x), array_of(torch, x[1:2]))
    assert [v.tolist() for v in values] == [[0, -1, 0, 1], [0, 0, -2, 1]]


def _through_shared_memory(x: Any) -> Any:
    shared = torch.zeros(5)
    array = shared.numpy()
    shared.copy_(x[0])
    return x * float(array[0])


@every(
    "function",
    [
        lambda x: torch.tensor([x[0, 0], 1.0]),
        lambda x: torch.as_tensor(data=[[x[0, 0]], [x[0, 1]]]),
        lambda x: x.new_tensor([x[0, 0]]),
        lambda x: torch.Tensor([x[0, 0]]),
        lambda x: np.from_dlpack(x).sum() * x,
        lambda x: x[:, [x[0, 0].long(), x[0, 1].long()]],
        lambda x: x.tensor_split(x[0, :2].abs().long()),
    ],
)
def test_a_value_that_pytorch_reads_without_an_op_is_refused(function: Any) -> None:
    with pytest.raises(GraphError, match="leaves the graph"):
        from_torch(function, X)


@every(
    ("function", "note"),
    [
        (lambda x: x * torch.unique(x > 0).shape[0], "the sizes of unique depend on values"),
        (lambda x: x * random.random(), "draws from random are constants"),
        (lambda x: x + float(np.random.rand()), "draws from numpy.random are constants"),
        (_through_shared_memory, "NumPy shares the memory"),
    ],
)
def test_what_the_graph_holds_constant_is_a_note(function: Any, note: str) -> None:
    (text,) = from_torch(function, X).notes
    assert note in text


def test_a_write_through_other_dtypes_is_refused() -> None:
    def program(x: Any) -> Any:
        y = x.clone()
        words = y.view(torch.int32)
        y.add_(1)
        return words + 1

    with pytest.raises(GraphError, match="shares memory"):
        from_torch(program, X)


def test_a_function_without_result_gives_what_it_writes() -> None:
    def step(weight: Any, gradient: Any) -> None:
        weight -= gradient * 0.5

    weight = X.clone()
    graph = from_torch(step, weight, Y)
    np.testing.assert_allclose(interpret(graph, X.numpy(), Y.numpy()), (X - Y * 0.5).numpy())


def test_halves_stay_halves() -> None:
    graph = from_torch(lambda b, h: (b + 1.5, h * torch.tensor(2.0)), B, H)
    assert [str(x.dtype) for x in graph.outputs] == ["bfloat16", "float16"]


# -- indices that are tensors, packed sequences, copies


def _assigned(x: Any, index: Any, value: Any) -> Any:
    y = x.clone()
    y[index] = value
    return y


_INDEXED: dict[str, Any] = {
    "first": lambda x, i: x[i],
    "second": lambda x, i: x[:, i],
    "both": lambda x, i: x[i, i],
    "with a slice": lambda x, i: x[i, 1:3],
    "new axis": lambda x, i: x[None, i],
    "ellipsis": lambda x, i: x[..., i],
    "with a list": lambda x, i: x[[0, 1], i],
    "select": lambda x, i: torch.select(x, 1, i),
    "narrow": lambda x, i: torch.narrow(x, 0, i, 2),
    "assigned": lambda x, i: _assigned(x, i, 0.0),
    "assigned in a column": lambda x, i: _assigned(x, (slice(None), i), x[:, 0]),
    "assigned in an element": lambda x, i: _assigned(x, (i, i), 9.0),
    "assigned by a list": lambda x, i: _assigned(x, ([0, 2], i), x[:2, 1]),
}


@pytest.mark.parametrize("name", _INDEXED)
def test_an_index_may_be_an_argument(name: str) -> None:
    """It is no int of the graph: the graph holds for its other values."""
    x = torch.arange(12.0).reshape(3, 4)
    for dtype in (torch.int64, torch.int32):
        graph = from_torch(_INDEXED[name], x, torch.tensor(1, dtype=dtype))
        assert calls(graph) == []
        for place in (0, 1) if name == "narrow" else (0, 1, 2, -1):
            i = torch.tensor(place, dtype=dtype)
            for each in (graph.verify(), lower(graph)):
                value = interpret(each, array_of(torch, x), array_of(torch, i))
                np.testing.assert_array_equal(value, array_of(torch, _INDEXED[name](x, i)))


_LIMITS: dict[str, Any] = {
    "x[i:]": lambda x, i: x[i:],
    "x[:i]": lambda x, i: x[:i],
    "x[i:i+2]": lambda x, i: x[i : i + 2],
    "x[..., i:]": lambda x, i: x[..., i:],
    "x[i::2]": lambda x, i: x[i::2],
    "x[i, i:]": lambda x, i: x[i, i:],
    "x[None, i:]": lambda x, i: x[None, i:],
    "x[None, ..., i]": lambda x, i: x[None, ..., i],
    "x[i:, [0, 1]]": lambda x, i: x[i:, [0, 1]],
    "x[i:] = 5": lambda x, i: _written(x, slice(i, None), 5.0),
    "x[:, i:] = y": lambda x, i: _written(x, (slice(None), slice(i, None)), x[0, 0]),
    "x[m]": lambda x, i: x[i > 0],
    "x[m, 0]": lambda x, i: x[i > 0, 0],
    "x[:, m]": lambda x, i: x[:, i > 0],
    "x[m, 1:]": lambda x, i: x[i > 0, 1:],
    "x[0, 0][m]": lambda x, i: x[0, 0][i > 0],
    "x[u]": lambda x, i: x[i.to(torch.uint8)],
    "x[m] = 5": lambda x, i: _written(x, i > 0, True),
    "x[m, 0] = y": lambda x, i: _written(x, (i > 0, 0), x[1, 1]),
    "unbind": lambda x, i: _written_after(x.unbind(), x),
}


def _written(x: Any, index: Any, value: Any) -> Any:
    y = x.clone()
    y[index] = value
    return y


def _written_after(rows: Any, x: Any) -> Any:
    element = rows[0].unbind()[0]
    x[torch.tensor([0])] = 2
    return element


@pytest.mark.filterwarnings("ignore")
@every("name", _LIMITS)
def test_limits_and_masks_that_are_arguments(name: str) -> None:
    """The sizes are those of the recording; a run of which they differ is refused."""
    for place in (1, -2, 0):
        x, i = torch.arange(12.0).reshape(3, 4), torch.tensor(place)
        wanted = array_of(torch, _LIMITS[name](x.clone(), i))
        arrays = array_of(torch, x), array_of(torch, i)
        value = interpret(from_torch(_LIMITS[name], x, i), *arrays)
        assert value.shape == wanted.shape
        np.testing.assert_array_equal(value, wanted)


def test_a_size_that_an_argument_decides_is_checked_at_run_time() -> None:
    graph = from_torch(lambda x, i: x[i:], torch.arange(5.0), torch.tensor(2))
    with pytest.raises(ExecutionError, match=r"must give float32\[3\]; got float32\[2\]"):
        interpret(graph, np.arange(5, dtype="float32"), np.int64(3))


def test_a_factor_alpha_that_is_a_tensor() -> None:
    """PyTorch reads its value; the graph multiplies by it."""
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        x, y = torch.linspace(-3, 5, 33).to(dtype), torch.linspace(4, -1, 33).to(dtype)
        for alpha in (torch.tensor(3), torch.tensor(0.9), torch.tensor(True)):
            for name in ("add", "sub", "rsub", "add_"):
                take = torch.rsub if name == "rsub" else getattr(torch.Tensor, name)
                function = lambda x, y, a, take=take: take(x.clone(), y, alpha=a)  # noqa: E731
                try:
                    wanted = function(x, y, alpha)
                except RuntimeError:
                    with pytest.raises(RuntimeError):
                        from_torch(function, x, y, alpha)
                    continue
                arrays = [array_of(torch, z) for z in (x, y, alpha)]
                value = interpret(from_torch(function, x, y, alpha), *arrays)
                np.testing.assert_array_equal(value, array_of(torch, wanted))


def test_numbers_that_vmap_gives_for_tensors() -> None:
    for function in (lambda a: a - 0.1, lambda a: torch.relu(a) * (a / 3)):
        mapped = lambda x, f=function: torch.func.vmap(f)(x)  # noqa: E731
        for x in (torch.linspace(-1, 1, 5), torch.linspace(-1, 1, 5, dtype=torch.float16)):
            value = interpret(from_torch(mapped, x), array_of(torch, x))
            np.testing.assert_array_equal(value, array_of(torch, mapped(x)))


def test_lengths_that_torch_writes_without_an_op() -> None:
    """pad_packed_sequence fills a tensor of torch.empty through its address."""
    rnn = nn.utils.rnn

    def means(x: Any) -> Any:
        packed = rnn.pack_padded_sequence(x, [3, 5, 2], batch_first=True, enforce_sorted=False)
        padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
        return padded.sum(1) / lengths[:, None], lengths

    x = torch.randn(3, 5, 2)
    graph = from_torch(means, x)
    assert "written to an empty tensor is constant" in " ".join(graph.notes)
    for value, wanted in zip(interpret(graph, array_of(torch, x)), means(x), strict=True):
        np.testing.assert_allclose(value, array_of(torch, wanted), rtol=1e-6)


def test_places_of_a_grid_that_are_not_finite() -> None:
    for place in (float("nan"), float("inf"), -float("inf"), 6e4):
        grid = torch.tensor([[[[place, 0.2], [0.1, place]]]])
        for mode in ("bicubic", "bilinear", "nearest"):
            image = torch.randn(1, 2, 3, 3, generator=torch.Generator().manual_seed(1))
            if mode != "bicubic":
                image[0, 0, 0, 0] = float("nan")  # which a place outside does not read
            for padding in ("zeros", "border", "reflection"):
                function = partial(
                    F.grid_sample, mode=mode, padding_mode=padding, align_corners=False
                )
                graph = from_torch(lambda x, g, f=function: f(x, g), image, grid)
                value = interpret(graph, array_of(torch, image), array_of(torch, grid))
                np.testing.assert_allclose(value, function(image, grid), rtol=1e-4, atol=1e-5)


def test_a_bilinear_form_under_autocast() -> None:
    """Its op multiplies matrices inside, which autocast narrows."""
    torch.manual_seed(0)
    module, x, y = nn.Bilinear(3, 4, 2), torch.randn(5, 3), torch.randn(5, 4)
    run = lambda x, y: module(x, y).view(torch.int16)  # noqa: E731 -- of contiguous elements
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        graph, wanted = from_torch(run, x, y), run(x, y)
    np.testing.assert_array_equal(interpret(graph, x.numpy(), y.numpy()), wanted)


def test_an_empty_tensor_of_another_dtype() -> None:
    x = torch.tensor([], dtype=torch.bfloat16)
    graph = from_torch(lambda x: x.view(torch.float32), x)
    assert interpret(graph, array_of(torch, x)).shape == (0,)


def _out(name: str, dtype: Any) -> Any:
    def run(x: Any) -> Any:
        return getattr(torch, name)(x, 0, out=torch.empty(0, dtype=dtype))

    return run


def _number_copied(x: Any) -> Any:
    y = x.double()
    y[0].copy_(1e-3)
    return y


_STORED: dict[str, Any] = {
    **{f"{name} out": _out(name, torch.float64) for name in ("sum", "prod", "cumsum", "mean")},
    **{f"{name} into integers": _out(name, torch.int16) for name in ("sum", "prod", "cumsum")},
    "a number copied": _number_copied,
    "index_add": lambda x: x.index_add(0, torch.tensor([0]), x[:1]),
    "scatter_add": lambda x: x.scatter_add(0, torch.tensor([[0, 0, 0]]), x[:1]),
    "cumsum": lambda x: x.cumsum(0),
    "linspace out": lambda x: x + torch.linspace(0, 1, 3, out=torch.empty(0, dtype=torch.float64)),
    "vjp of clamp": lambda x: torch.func.vjp(
        lambda a: torch.clamp(a * a, -1, torch.tensor(0.7)), x
    )[1](torch.ones_like(x))[0],
}


@every("name", _STORED)
def test_stored_values_have_the_bits_of_torch(name: str) -> None:
    x = torch.tensor([[0.6, 0.7, -0.0], [2.6, -0.3, -0.0]])
    value = interpret(from_torch(_STORED[name], x), array_of(torch, x))
    right = array_of(torch, _STORED[name](x))
    assert value.dtype == right.dtype
    np.testing.assert_array_equal(value, right)
    np.testing.assert_array_equal(np.signbit(value), np.signbit(right))


ROWS, SLOTS = torch.arange(60) * 7 % 5 % 4, (torch.arange(180) * 7 % 11 % 4).reshape(60, 3)
_SUMS: dict[str, Any] = {
    "index_add": lambda x, u: x.index_add(0, ROWS, u),
    "index_add by int32": lambda x, u: x.index_add(0, ROWS.int(), u),
    "index_add of a vector": lambda x, u: x[:, 0].index_add(0, ROWS, u[:, 0]),
    "index_add in the middle": lambda x, u: x[None, :, None].index_add(1, ROWS, u[None, :, None]),
    "scatter_add": lambda x, u: x.scatter_add(0, SLOTS, u),
    "scatter_add to columns": lambda x, u: x.T.scatter_add(1, SLOTS.T[:2, :40], u.T),
    "expanded": lambda x, u: x.scatter_add(0, ROWS[:, None].expand(60, 3), u),
    "sum": lambda x, u: x.scatter_reduce(0, SLOTS[:9], u, "sum", include_self=False),
    "mean": lambda x, u: x.scatter_reduce(0, SLOTS, u, "mean"),
    "mean of updates": lambda x, u: x.scatter_reduce(0, SLOTS, u, "mean", include_self=False),
    "index_put": lambda x, u: x.index_put((ROWS - 4, ROWS % 3), u[:, 0], accumulate=True),
    "rows put": lambda x, u: x.index_put((ROWS,), u, accumulate=True),
    "embedding": lambda x, u: torch.ops.aten.embedding_dense_backward(u, ROWS, 4, 2, False) + x,
}


@every("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8])
@every("name", _SUMS)
def test_sums_at_places_have_the_bits_of_torch(name: str, dtype: Any) -> None:
    torch.manual_seed(0)
    x, u = (torch.randn(4, 3) * 9).to(dtype), (torch.randn(60, 3) * 9).to(dtype)
    try:
        right = array_of(torch, _SUMS[name](x, u))
    except RuntimeError:
        return  # PyTorch has no gradient of embeddings of integers
    graph = from_torch(_SUMS[name], x, u)
    assert ("mean" in name and dtype is torch.int8) or calls(graph) == []
    assert same(interpret(graph, array_of(torch, x), array_of(torch, u)), right)


def test_a_write_to_elements_that_share_memory_is_refused() -> None:
    def run(x: Any) -> Any:
        y = x.clone()
        y.unfold(0, 2, 1).tril_()
        return y

    with pytest.raises(GraphError, match="elements of a tensor that is written to share memory"):
        from_torch(run, torch.arange(12.0).reshape(4, 3))


def _packed(layer: Any, lengths: Any, **settings: Any) -> Any:
    rnn = nn.utils.rnn

    def run(x: Any) -> Any:
        packed = rnn.pack_padded_sequence(x, lengths, **settings)
        batch_first = settings.get("batch_first", False)
        return rnn.pad_packed_sequence(layer(packed)[0], batch_first=batch_first)[0]

    return run


def test_packed_sequences() -> None:
    torch.manual_seed(0)
    lstm, gru = nn.LSTM(4, 5, batch_first=True, bidirectional=True), nn.GRU(4, 5, num_layers=2)
    x = torch.randn(3, 6, 4)
    programs = {
        "lstm": (_packed(lstm, torch.tensor([6, 4, 2]), batch_first=True), x),
        "in any order": (_packed(lstm, [2, 6, 4], batch_first=True, enforce_sorted=False), x),
        "gru": (_packed(gru, torch.tensor([6, 6, 1])), x.transpose(0, 1).contiguous()),
    }
    for name, (function, x) in programs.items():
        graph = from_torch(function, x)
        assert calls(graph) == [], name
        right = array_of(torch, function(x))
        np.testing.assert_allclose(interpret(graph, array_of(torch, x)), right, 1e-5, 1e-6)
    with pytest.raises(GraphError, match="the lengths of a packed sequence depend on the inputs"):
        from_torch(lambda x, n: _packed(gru, n)(x), x, torch.tensor([6, 6, 1]))
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([6, 4, 2]))
    graph = from_torch(lambda packed: gru(packed)[1], packed)
    assert graph.input_names[0] == "packed_data"
    assert any("batch sizes of the packed sequence" in note for note in graph.notes)
    value = interpret(graph, array_of(torch, packed.data))
    np.testing.assert_allclose(value, array_of(torch, gru(packed)[1]), 1e-5, 1e-6)


def test_deep_copies_of_modules_and_tensors() -> None:
    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("counts", torch.arange(4))

        def forward(self, x: Any) -> Any:
            return self.linear(x) * self.counts

    torch.manual_seed(0)
    module, x = Counted(), torch.randn(3, 4)
    for function in (
        lambda x: copy.deepcopy(module)(x),
        lambda x: nn.ModuleList([copy.deepcopy(module) for _ in range(2)])[1](x),
        lambda x: copy.deepcopy(x).mul_(2) + x,
    ):
        right = array_of(torch, function(x))
        value = interpret(from_torch(function, x), array_of(torch, x))
        np.testing.assert_allclose(value, right, 1e-5, 1e-6)


def test_a_clamp_between_a_number_and_a_tensor() -> None:
    """PyTorch makes a number of a 0-d tensor, which then counts by its category."""
    for dtype in (torch.int8, torch.int64, torch.bfloat16, torch.float64):
        for other in (torch.int64, torch.bfloat16, torch.float64):
            for x in (torch.arange(3).to(dtype), torch.tensor(2).to(dtype)):
                bound = torch.tensor(1, dtype=other)
                for function in (
                    lambda x, bound: x.clamp(0.5, bound),
                    lambda x, bound: torch.clip(x, min=bound, max=2),
                ):
                    right = array_of(torch, function(x, bound))
                    graph = from_torch(function, x, bound)
                    value = interpret(graph, array_of(torch, x), array_of(torch, bound))
                    assert value.dtype == right.dtype
                    np.testing.assert_array_equal(value.astype(float), right.astype(float))


@pytest.mark.parametrize("name", ["int1", "int2", "int4", "uint3", "complex32", "float4_e2m1fn_x2"])
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_dtypes_that_torch_only_stores_are_refused_by_name(name: str) -> None:
    if not hasattr(torch, name):
        pytest.skip(f"this PyTorch has no {name}")
    with pytest.raises(GraphError, match=f"graphir has no dtype {name} of PyTorch"):
        from_torch(lambda x: x.clone(), torch.empty(3, dtype=getattr(torch, name)))


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("to", [torch.float32, torch.bfloat16, torch.int16, torch.bool])
def test_complex_numbers_become_real_as_in_torch(to: Any) -> None:
    z = torch.tensor([1 + 2j, 0, 2j, 3.5])
    for function in (lambda z: z.to(to), lambda z: torch.zeros(4, dtype=to).copy_(z)):
        graph, right = from_torch(function, z), array_of(torch, function(z))
        value = interpret(graph, array_of(torch, z))
        assert value.dtype == right.dtype
        np.testing.assert_array_equal(value.astype(float), right.astype(float))
        assert bool(graph.notes) == (to is not torch.bool)
