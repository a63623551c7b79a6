"""Programs that grow in one direction: uses of one cast, steps, lines, files, names, layers."""

from __future__ import annotations

from collections.abc import Callable

from graphir import Graph, Symbol, ops
from tests.support.reports import program


def _inputs(graph: Graph) -> tuple[Symbol, Symbol]:
    return graph.input("int16", ("k",), name="x"), graph.input("float32", ("k",), name="f")


def uses(n: int) -> Graph:
    """One cast with n uses on one line, each in the next sum."""
    graph = Graph("uses")
    x, total = _inputs(graph)
    for _ in range(n):
        total = total + x
    graph.output(total)
    return graph


def lines(n: int) -> Graph:
    """One cast with n uses, each on a line of its own in one large file."""
    text = "def build(x, total):\n" + "    total = total + x\n" * n + "    return total\n"
    graph = Graph("lines")
    graph.output(program(text, f"lines_{n}.py")["build"](*_inputs(graph)))
    return graph


def chain(n: int) -> Graph:
    """N casts in a chain, each of the result of the one before."""
    graph = Graph("chain")
    x, f = _inputs(graph)
    for _ in range(n):
        x = (x + f).cast("int16")
    graph.output(x)
    return graph


def fan_out(n: int) -> Graph:
    """One value with n users, all of them outputs."""
    graph = Graph("fan_out")
    x, f = _inputs(graph)
    graph.output(*[x * f for _ in range(n)])
    return graph


def inputs(n: int) -> Graph:
    """N inputs of an op that takes any number of operands, each cast."""
    graph = Graph("inputs")
    parts = [graph.input("int16", (2,), name=f"x{i}") for i in range(n)]
    graph.output(ops.concat([*parts, graph.input("float32", (2,), name="f")]))
    return graph


def long_names(n: int) -> Graph:
    """Names of n characters, of graph, inputs, dims and layers."""
    graph = Graph("g" * n)
    x = graph.input("int16", ("d" * n,), name="x" * n)
    f = graph.input("float32", ("d" * n,), name="f" * n)
    with graph.layer("l" * n):
        graph.output(x + f, x * f, f - x)
    return graph


def layers(n: int) -> Graph:
    """N layers, each with a cast of its own on the same line."""
    graph = Graph("layers")
    x, f = _inputs(graph)
    for i in range(n):
        with graph.layer(f"layer{i}"):
            f = f + x.cast("int32")
    graph.output(f)
    return graph


def files(n: int) -> Graph:
    """N files of two functions, each with a cast of its own."""
    graph = Graph("files")
    x, f = _inputs(graph)
    text = "def first(x, f):\n    return x + f\n\n\ndef second(x, f):\n    return f - x * f\n"
    for i in range(n):
        names = program(text, f"file_{i}.py")
        f = names["second"](x, names["first"](x, f))
    graph.output(f)
    return graph


def long_line(n: int) -> Graph:
    """One expression of n operands on one line."""
    text = f"def build(x, f):\n    return f{' + x' * n}\n"
    graph = Graph("long_line")
    graph.output(program(text, f"long_line_{n}.py")["build"](*_inputs(graph)))
    return graph


def long_call(n: int) -> Graph:
    """One call of n operands, each written on the same line."""
    text = f"def build(x, f):\n    return concat([{'x, ' * n}f])\n"
    graph = Graph("long_call")
    names = program(text, f"long_call_{n}.py", concat=ops.concat)
    graph.output(names["build"](graph.input("int16", (2,)), graph.input("float32", (2,))))
    return graph


def parsed(n: int) -> Graph:
    """A graph from text whose symbols and casts all have locations of their own."""
    return Graph.parse(str(lines(n)))


PROGRAMS: dict[str, Callable[[int], Graph]] = {
    build.__name__: build
    for build in (
        *(uses, lines, chain, fan_out, inputs, long_names, layers, files, long_line, long_call),
        parsed,
    )
}
"""The programs by name: each takes its size and gives a graph with casts."""
