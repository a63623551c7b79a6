"""Each parameter of the installed NumPy's functions is named by its handler or refused by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter
from typing import Any

import numpy as np
import pytest
from numpy._core.overrides import array_function_dispatch  # type: ignore[attr-defined]

from graphir import GraphError
from graphir.numpy_api import dispatch, signatures
from graphir.numpy_api.arrays import boundary, element_access, makers
from graphir.numpy_api.arrays.array import SymbolicArray, SymbolicScalar, SymbolicSelection
from graphir.numpy_api.functions import FUNCTIONS
from graphir.numpy_api.signatures import bound, names_of, signature_of
from graphir.runtime import interpret, jit, record
from graphir.runtime.recording.numpy_ import (
    creation,
    functions,
    method_ops,
    methods,
    outside_data,
    ufunc_ops,
    ufuncs,
)
from tests.support.replays import identical

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])
FORWARDING = {
    makers._from_values,  # to NumPy's own function
    makers._of_list,
    makers._of_types,
    makers._by_python_code,
    makers._of_bytes,
    creation._record_array,
    outside_data.record_outside,
    outside_data._record_source,
    creation._record_of_list,
    outside_data._record_buffer,
    functions._einsum,
    functions._cross,
    functions._sliding_windows,
    method_ops.not_an_op,  # an input in any case
}
"""The handlers that hand every argument on to NumPy."""
FORWARDING_KINDS = {"in_ops.<locals>.enter", "method_of.<locals>.method"}
"""The functions that make such handlers, which call NumPy's function of symbols or arrays."""
Row = tuple[Any, Any, int]


def rows() -> Iterator[Row]:
    """Yield functions with their handlers, and how many parameters of a handler are not NumPy's."""
    yield from ((function, handler, 0) for function, handler in FUNCTIONS.items())
    yield np.copyto, element_access._copyto, 1
    yield from ((getattr(np, name), record, 2) for name, record in makers._RECORDS.items())
    yield from ((function, handler, 1) for function, handler in functions._HANDLERS.items())
    yield from ((function, handler, 2) for function, handler in functions._SYMBOLIC.items())
    yield from (
        (getattr(np.ndarray, name), handler, 3) for name, handler in methods._REORDERING.items()
    )
    for name, handler in dispatch._METHODS.items():
        yield np.add if name == "__call__" else getattr(np.add, name), handler, 3
    for name, handler in ufunc_ops._PARAMETERS.items():
        yield getattr(np.add, name), handler, 0
    yield np.add, ufuncs._settings, 0
    yield np.array, creation._array_parameters, 0
    for symbolic, names in (
        (functions.full_of, "full"),
        (functions.filling(0), "zeros"),
        (functions.filling(0, is_empty=True), "empty"),
        (creation._arange_symbol, "arange"),
        (creation._eye_symbol, "eye"),
    ):
        yield getattr(np, names), symbolic, 2
    for kind in (SymbolicArray, SymbolicScalar, SymbolicSelection):
        for name in dir(np.ndarray):
            method = inspect.getattr_static(kind, name, None)
            if name[0] != "_" and hasattr(method, "__wrapped__"):
                yield getattr(np.ndarray, name), method.__wrapped__, 0


def test_every_parameter_of_numpy_is_named_by_its_handler_or_refused() -> None:
    faults: list[str] = []
    for function, handler, leading in rows():
        installed = signature_of(function)
        assert installed is not None, function
        names = names_of(handler, leading)
        if names.all:
            is_forwarding = handler in FORWARDING or handler.__qualname__ in FORWARDING_KINDS
            if not is_forwarding:
                faults.append(f"{function}: {handler} takes any keyword")
            continue
        required = [
            0
            for parameter in installed.parameters.values()
            if parameter.default is Parameter.empty and parameter.kind not in (2, 4)
        ]
        for name, parameter in installed.parameters.items():
            if parameter.kind is not Parameter.KEYWORD_ONLY and parameter.kind != 1:
                continue
            if parameter.default is Parameter.empty:
                continue
            try:
                _, settings = bound(function, handler, required, {name: object()}, leading)
            except GraphError as error:
                named = name in names.settings or f"takes no {name}=" not in str(error)
            else:
                named = name not in settings
            if named:
                faults.append(f"{function}: {name}")
    assert not faults


# -- arguments that NumPy does not have

CALLS: list[Callable[[Any], Any]] = [
    lambda x: x.sort(bar=1),
    lambda x: x.sum(bar=1),
    lambda x: x.sum(0, None, None, False, 5, 6, 7),
    lambda x: x.reshape(3, 2, bar=1),
    lambda x: x.copy(bar=1),
    lambda x: x.astype("f4", bar=1),
    lambda x: x.take([0], bar=1),
    lambda x: x.put(0, 1.0, bar=1),
    lambda x: x.fill(0, bar=1),
    lambda x: x.argsort(bar=1),
    lambda x: x.argpartition(1, bar=1),
    lambda x: x.transpose(1, 0, bar=1),
    lambda x: x.sum().astype("f4", bar=1),
    lambda x: x.sum().copy(bar=1),
    lambda x: x.sum().squeeze(bar=1),
    lambda x: np.array(x, bar=1),
    lambda x: np.asarray(x, bar=1),
    lambda x: np.zeros(3, bar=1) + x[:, :1],
    lambda x: np.full(3, x[0, 0], bar=1),
    lambda x: np.sort(x, bar=1),
    lambda x: np.add.reduce(x, bar=1),
    lambda x: np.add(x, x, bar=1),
    lambda x: np.add.at(x, 0, 1.0, bar=1),
]


def test_arguments_that_numpy_does_not_have_raise_its_type_error() -> None:
    wrong: list[str] = []
    for call in CALLS:
        with pytest.raises(TypeError):
            call(X.copy())
        for run in (lambda call: jit(call)(X.copy()), lambda call: record(call, X.copy())):
            try:
                run(call)
                wrong.append(inspect.getsource(call))
            except TypeError as error:
                if isinstance(error, GraphError):
                    wrong.append(f"{inspect.getsource(call)}: {error}")
    assert not wrong


def test_arguments_that_no_op_takes_are_refused_or_followed() -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda x: np.asarray(x, None, "F").copy("K"),
        lambda x: np.asarray(x, None, "F"),
        lambda x: np.array(x, "f4", ndmin=3),
        lambda x: np.array(x, copy=False),
        lambda x: np.array(x, order="F", copy=None),
        lambda x: np.add(x, 1, casting="no"),
        lambda x: np.add(x, x.astype("f4"), casting="safe"),
        lambda x: np.add(x[:, 0].astype("i8"), x[:, 1], dtype="f8", casting="unsafe"),
        lambda x: np.add(x.astype("f4"), x.astype("f4"), dtype="f8", casting="safe"),
        lambda x: np.std(x, mean=np.mean(x)),
        lambda x: x.std(1, mean=np.mean(x, 1, keepdims=True)),
        lambda x: x.var(mean=0.5),
        lambda x: np.vecdot(x[:, :2], x[:, 1:], axis=0),
        lambda x: np.matmul(x[:, :2], x[:, 1:], axes=[(1, 0), (0, 1), (0, 1)]),
        lambda x: np.vecdot(x[:, :2], x[:, 1:], keepdims=True),
        lambda x: x.sum().astype("f4", casting="same_kind"),
        lambda x: np.full_like(x, x[0, 0], "f4", "F"),
        lambda x: np.cross(x, x[::-1], axis=1),
        lambda x: np.astype(x, "f4", copy=False),
        lambda x: np.interp(x, [0.0, 1.0], [1.0, 2.0], period=2.0),
        lambda x: np.sum(x, where=x > 0, initial=1.0),
        lambda x: np.sort(x, 0, "stable"),
    ]
    refused: list[str] = []
    for call in calls:
        expected = call(X)
        recording = record(call, X)
        assert identical(recording.result, expected)
        if recording.outputs:
            assert np.array_equal(interpret(recording.graph, *recording.inputs), expected)
        try:
            result = jit(call)(X)
        except GraphError as error:
            refused.append(str(error))
            continue
        assert identical(np.asarray(result), np.asarray(expected)), inspect.getsource(call)
        assert result.strides == expected.strides or result.size < 2, inspect.getsource(call)
    assert len(refused) <= 7, refused
    for call in (lambda x: np.add(x, np.float32(1), casting="no"),):
        with pytest.raises(TypeError):
            call(X)
        with pytest.raises(TypeError):
            jit(call)(X)
    added = jit(lambda x, k: np.add(x, k, casting="safe"))
    assert identical(added(X, 2), X + 2)
    with pytest.raises(ValueError, match="copy"):
        jit(lambda x: np.array(x, "f4", copy=False))(X)


# -- a newer NumPy


def newer(function: Any) -> Any:
    """Return a function of a newer NumPy, with a keyword that changes the result."""
    parameters = [*signature_of(function).parameters.values()]  # type: ignore[union-attr]
    extra = Parameter("reverse", Parameter.KEYWORD_ONLY, default=False)
    at = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_KEYWORD), len(parameters))

    def implementation(*args: Any, reverse: bool = False, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return -result if reverse else result

    def dispatcher(*args: Any, reverse: Any = None, **kwargs: Any) -> Any:
        return [*args, *kwargs.values()]

    new = array_function_dispatch(dispatcher)(implementation)
    signature = inspect.Signature([*parameters[:at], extra, *parameters[at:]])
    new.__signature__, new.__name__ = signature, function.__name__
    return new


NEWER: dict[str, tuple[Any, ...]] = {
    "sum": (X, 0),
    "std": (X, 0),
    "sort": (X, 0),
    "argsort": (X, 0),
    "clip": (X, -1.0, 1.0),
    "trace": (X,),
    "where": (X > 0, X, X),
    "concatenate": ([X, X], 0),
    "take": (X, [0, 1]),
    "dot": (X, X.T),
    "einsum": ("ij->ji", X),
    "nanstd": (X, 0),
    "allclose": (X, X),
    "full_like": (X, 2.0),
    "diff": (X,),
    "pad": (X, 1),
}
TABLES = (FUNCTIONS, functions._SYMBOLIC, functions._HANDLERS)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Return a function that registers a newer function with the handlers of the installed one."""

    def register(function: Any) -> Any:
        new = newer(function)
        for table in TABLES:
            if function in table:
                monkeypatch.setitem(table, new, table[function])
        return new

    return register


@pytest.mark.parametrize(
    "names",
    [[*NEWER][::4], pytest.param([*NEWER], marks=pytest.mark.exhaustive)],
    ids=["some", "all"],
)
def test_a_keyword_of_a_newer_numpy_is_followed_or_refused(
    names: Sequence[str], registered: Any
) -> None:
    wrong, refused = list[str](), 0
    for name in names:
        args = NEWER[name]
        function = registered(getattr(np, name))
        for settings in ({"reverse": False}, {"reverse": True}):

            def call(
                x: Any, *, args: Any = args, function: Any = function, s: Any = settings
            ) -> Any:
                return function(*[x if arg is X else arg for arg in args], **s)

            expected = call(X)
            recording = record(call, X)
            again = interpret(recording.graph, *recording.inputs) if recording.outputs else expected
            if not (identical(recording.result, expected) and np.array_equal(again, expected)):
                wrong.append(f"record {name} {settings}")
            try:
                result = jit(call)(X)
            except GraphError:
                refused += bool(settings.get("reverse"))
                wrong += [] if settings.get("reverse") else [f"jit refuses {name} {settings}"]
                continue
            if not np.array_equal(result, expected):
                wrong.append(f"jit {name} {settings}")
    assert not wrong
    assert refused < len(names) // 2  # NumPy's own code does the others


def test_a_keyword_of_a_newer_method_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def newest(of_numpy: Any, real: Any = signature_of) -> Any:
        signature = real(of_numpy)
        extra = Parameter("reverse", Parameter.KEYWORD_ONLY, default=False)
        parameters = [*signature.parameters.values()]
        at = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_KEYWORD), len(parameters))
        return inspect.Signature([*parameters[:at], extra, *parameters[at:]])

    monkeypatch.setattr(signatures, "signature_of", newest)
    # The methods of that NumPy accept the argument, which the installed ones do not.
    monkeypatch.setattr(boundary, "_error_of_arguments", lambda *_: None)
    arguments: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(("sort", "argsort", "sum", "max", "mean", "copy", "ravel", "clip"), ()),
        "take": ([0],),
        "reshape": (3, 2),
        "astype": ("f4",),
        "put": (0, 1.0),
        "fill": (0.0,),
    }
    for name, args in arguments.items():
        with pytest.raises(GraphError, match="takes no reverse="):
            jit(lambda x, name=name, args=args: getattr(x, name)(*args, reverse=True))(X.copy())
        jit(lambda x, name=name, args=args: getattr(x, name)(*args, reverse=False) is x)(X.copy())
    for name in ("array", "zeros", "full"):
        make = makers._maker(getattr(np, name), makers._RECORDS[name])
        args = {"array": (X,), "full": (2, 1.0)}.get(name, (3,))
        with pytest.raises(GraphError, match="takes no reverse="):
            jit(lambda x, make=make, args=args: make(*args, reverse=True) + x[0, 0])(X)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.5.0", reason="since NumPy 2.5")
def test_descending_sorts() -> None:
    values = [X, np.array([[1, 3, 2, 3]]), np.array([[np.nan, 1.0, -0.0, np.inf]])]
    values += [np.array([[True, False, True]]), np.array([[3, 1, 200]], np.uint8)]

    def in_place(x: Any) -> Any:
        y = x.copy()
        y.sort(descending=True)
        return y

    calls: list[Callable[[Any], Any]] = [
        lambda x: np.sort(x, descending=True),
        lambda x: np.sort(x, axis=None, descending=True),
        lambda x: np.argsort(x, descending=True, stable=True),
        lambda x: x.argsort(descending=True, stable=True),
        lambda x: np.sort(x, descending=False),
        in_place,
    ]
    for x in values:
        for call in calls:
            expected, recording = call(x), record(call, x)
            assert identical(jit(call)(x), expected), (x, call)
            assert identical(recording.result, expected)
            assert identical(np.asarray(interpret(recording.graph, *recording.inputs)), expected)
