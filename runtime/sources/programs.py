"""Programs of any library as graphs: the source of the library, and the values of the inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from graphir.import_names import optional
from graphir.numpy_api.trace import trace
from graphir.promotion import RulesLike
from graphir.public import DType, Graph, GraphError, Location, TensorType
from graphir.runtime.recording.recording import Recording, record
from graphir.runtime.sources.folding import Folding
from graphir.runtime.sources.jax_.source import from_jax
from graphir.runtime.sources.libraries import Library
from graphir.runtime.sources.torch_.source import from_torch, record_torch, tensors_of
from graphir.runtime.sources.torch_.tensors import array_of, tensor_of
from graphir.runtime.user_code import PROJECT
from graphir.source_text import displayed_path


class ImportedProgram(NamedTuple):
    """The graph of a program, and the values of its first inputs; None for those of a type alone.

    The other inputs have defaults.
    """

    graph: Graph
    values: list[Any]


def import_program(
    program: Callable[..., Any],
    library: Library,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    rules: RulesLike | None = None,
) -> ImportedProgram:
    """Return the graph of a program of a library for arguments like these, and their values.

    An argument is an array, a Python value, or a TensorType; also inside of tuples, lists and
    dicts. `rules` are those of a NumPy program; the others have the rules of their libraries.
    """
    if library == "jax":
        imported = _import_jax(program, args, keywords)
    elif library == "torch":
        imported = _import_torch(program, args, keywords)
    else:
        imported = _import_numpy(program, args, keywords, rules)
    _locate_inputs(imported.graph, program)
    return imported


def record_program(
    program: Callable[..., Any],
    library: Library,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    rules: RulesLike | None = None,
) -> Recording:
    """Return the recording of one run of a program of NumPy or torch; see `import_program`."""
    if library == "numpy":
        return record(program, *args, rules=rules or "numpy", **keywords)
    (args, keywords), _ = _torch_arguments(args, keywords)
    recording = record_torch(program, *args, **keywords)
    _locate_inputs(recording.graph, program)
    return recording


def _locate_inputs(graph: Graph, program: Callable[..., Any]) -> None:
    """Give the inputs the line of the program's function in place of one of this project."""
    function = inspect.unwrap(getattr(program, "forward", program))
    function = getattr(function, "__func__", function)
    if not inspect.isfunction(function):
        return
    code = function.__code__
    for symbol in graph.inputs:
        if not symbol.location.source or symbol.location.source.startswith(PROJECT):
            file, layer = code.co_filename, symbol.location.layer
            line = displayed_path(file), code.co_firstlineno
            symbol.source = Location.at(*line, layer=layer, source=file)


def _import_numpy(
    program: Callable[..., Any],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    rules: RulesLike | None,
) -> ImportedProgram:
    trace_ = trace(program, *args, rules=rules or "numpy", **keywords)
    graph = trace_.graph
    graph.describe(unseen=Folding(np.ndarray).unseen(graph, program, scalars=True))
    leaves = _leaves((args, keywords))
    is_known = not any(isinstance(leaf, TensorType) for leaf in leaves)
    values = trace_.inputs(*args, **keywords) if is_known else [None] * len(trace_.graph.inputs)
    return ImportedProgram(trace_.graph, values)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return _leaves([*cast("Mapping[Any, Any]", value).values()])
    if isinstance(value, (list, tuple)):
        return [leaf for each in cast("Sequence[Any]", value) for leaf in _leaves(each)]
    return [value]


def _import_jax(program: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> ImportedProgram:
    """Import a program of JAX; texts among the keywords are constants of the function."""
    jax = optional("jax", "jax", "a program of JAX")
    texts = {name: value for name, value in keywords.items() if isinstance(value, str)}
    if texts:
        name = getattr(program, "__name__", "traced")
        program = partial(program, **texts)
        program.__name__ = name
    arrays = {name: value for name, value in keywords.items() if name not in texts}

    def argument(leaf: Any) -> Any:
        if isinstance(leaf, TensorType):
            return jax.ShapeDtypeStruct(sizes_of(leaf), leaf.dtype.storage)
        return leaf

    arguments = jax.tree.map(argument, (tuple(args), arrays))
    graph = from_jax(program, *arguments[0], **arguments[1])
    return ImportedProgram(graph, [_jax_value(jax, leaf) for leaf in jax.tree.leaves(arguments)])


def _jax_value(jax: Any, leaf: Any) -> Any:
    """Return the value of an argument as JAX takes it: without 64 bits, in 32."""
    if isinstance(leaf, (jax.ShapeDtypeStruct, bool, int, float, complex)):
        return None if isinstance(leaf, jax.ShapeDtypeStruct) else leaf
    array = jax.numpy.asarray(leaf)
    is_key = jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(array) if is_key else array)


def _import_torch(
    program: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> ImportedProgram:
    """Import a program of torch."""
    torch = optional("torch", "torch", "a program of torch")
    (args, keywords), stand_ins = _torch_arguments(args, keywords)
    tensors = tensors_of(torch, program, args, keywords)
    values = [None if id(x) in stand_ins else array_of(torch, x) for x in tensors]  # before the run
    return ImportedProgram(from_torch(program, *args, **keywords), values)


def _torch_arguments(
    args: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, Any], dict[int, Any]]:
    """Return arguments with tensors for arrays and types, and the tensors of types by their ids."""
    torch = optional("torch", "torch", "a program of torch")
    stand_ins: dict[int, Any] = {}

    def argument(leaf: Any) -> Any:
        if isinstance(leaf, TensorType):
            fill = torch.ones if leaf.dtype.is_inexact else torch.zeros
            tensor = fill(sizes_of(leaf), dtype=getattr(torch, str(leaf.dtype)))
            return stand_ins.setdefault(id(tensor), tensor)
        return tensor_of(torch, leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf

    tree_map = torch.utils._pytree.tree_map
    return tree_map(argument, (tuple(args), dict(keywords))), stand_ins


def module_instance(module: type) -> Any:
    """Return an instance of a class of modules, made without arguments; else GraphError."""
    try:
        return module()
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise  # inside of the constructor
        raise GraphError(
            f"{module.__name__} is a class of modules whose constructor takes arguments",
            got=str(error),
            fix=f"name an instance: net = {module.__name__}(...)",
        ) from None


def sizes_of(type_: TensorType) -> tuple[int, ...]:
    """Return the shape of a type as ints; GraphError for a named dim, which only NumPy's have."""
    if all(isinstance(dim, int) for dim in type_.shape):
        return cast("tuple[int, ...]", type_.shape)
    raise GraphError(
        "the shape of an argument of JAX or torch is of numbers",
        got=str(type_),
        fix=f"write sizes, as in {DType(type_.dtype)}[8, 3]",
    )
