"""Building, promoting and planning graphs: nodes a second, bytes a node, beside the peers.

    python -m tests.benchmarks.compile [--nodes 100000 ...] [--rounds 5]

The graph is mixed: `r = a + b` on int16 and uint16, then r cast back to each, so that both operands
of every sum need a fresh cast: half of all operands. Peers build what their API makes of the same
program, interleaved with graphir in one process; those that are not installed are named.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from graphir import DType, Graph
from graphir.passes import Policy, implicit_cast, lower
from graphir.runtime import Program


def mixed(nodes: int, **policy: Any) -> Graph:
    g = Graph("mixed", policy=Policy(**policy))
    a, b = g.input("int16", ("n",), name="a"), g.input("uint16", ("n",), name="b")
    int16, uint16 = DType.int16, DType.uint16
    for _ in range(nodes // 3):
        r = a + b
        a = r.cast(int16)
        b = r.cast(uint16)
    g.output(a, b)
    return g


def jax_trace(nodes: int) -> Callable[[], int]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    types = jax.ShapeDtypeStruct((8,), jnp.int16), jax.ShapeDtypeStruct((8,), jnp.uint16)

    def run() -> int:
        def program(a: Any, b: Any) -> Any:  # a new one each time: jax remembers what it traced
            for _ in range(nodes // 3):
                r = a + b
                a, b = r.astype(jnp.int16), r.astype(jnp.uint16)
            return a, b

        jax.make_jaxpr(program)(*types)
        return nodes

    return run


def torch_fx(nodes: int) -> Callable[[], int]:
    import operator

    import torch
    import torch.fx

    def run() -> int:
        g = torch.fx.Graph()
        a, b = g.placeholder("a"), g.placeholder("b")
        for _ in range(nodes // 3):
            r = g.call_function(operator.add, (a, b))
            a = g.call_method("to", (r, torch.int16))
            b = g.call_method("to", (r, torch.uint16))
        g.output((a, b))
        return nodes

    return run


def max_graph(nodes: int) -> Callable[[], int]:
    from max.dtype import DType as MaxDType  # pyright: ignore
    from max.graph import DeviceRef, TensorType  # pyright: ignore
    from max.graph import Graph as MaxGraph  # pyright: ignore

    def run() -> int:
        cpu = DeviceRef.CPU()
        types = [TensorType(MaxDType.int16, (8,), cpu), TensorType(MaxDType.float32, (8,), cpu)]
        with MaxGraph("mixed", input_types=types) as g:
            a, b = (x.tensor for x in g.inputs)
            c = b
            for _ in range(nodes // 3):  # MAX refuses int16 + uint16, so int16 meets float32
                r = a + c
                a, c = r.cast(MaxDType.int16), r.cast(MaxDType.float32)
            g.output(a, c)
        return nodes

    return run


def graphir_build(nodes: int) -> Callable[[], int]:
    return lambda: len(mixed(nodes))


def graphir_cast(nodes: int) -> Callable[[], int]:
    graph = mixed(nodes)
    return lambda: len(graph) if len(implicit_cast(graph)) else 0


def graphir_lower(nodes: int) -> Callable[[], int]:
    def run() -> int:
        graph = mixed(nodes)
        lower(graph)
        return len(graph)

    return run


def graphir_plan(nodes: int) -> Callable[[], int]:
    def run() -> int:
        graph = mixed(nodes)
        Program(graph).bound({"n": 1000})
        return len(graph)

    return run


SUBJECTS: dict[str, tuple[Callable[[int], Callable[[], int]], int]] = {
    "graphir: build, infer, locate": (graphir_build, 10**7),
    "graphir: implicit_cast": (graphir_cast, 10**7),
    "graphir: build and lower": (graphir_lower, 10**7),
    "graphir: build, lower and plan": (graphir_plan, 10**7),
    "torch.fx: record, nothing inferred": (torch_fx, 10**5),
    "jax: trace": (jax_trace, 3 * 10**4),
    "MAX: build": (max_graph, 3 * 10**3),
}


def rates(nodes: int, rounds: int) -> dict[str, tuple[int, list[float]]]:
    """Nodes a second of each subject, interleaved; a slow peer gets a smaller graph."""
    runs: dict[str, tuple[int, Callable[[], int]]] = {}
    for name, (make, most) in SUBJECTS.items():
        try:
            size = min(nodes, most)
            runs[name] = size, make(size)
        except ImportError as error:
            print(f"{name}: not measured, {error.name} is not installed", file=sys.stderr)
    found: dict[str, tuple[int, list[float]]] = {name: (n, []) for name, (n, _) in runs.items()}
    for _ in range(rounds):
        for name, (_, run) in runs.items():
            gc.collect()
            start = time.perf_counter()
            done = run()
            found[name][1].append(done / (time.perf_counter() - start))
    return found


def bytes_per_node(nodes: int) -> tuple[float, float]:
    """What a built graph and its explicit form hold, each by its own number of nodes."""
    tracemalloc.start()
    graph = mixed(nodes)
    built = tracemalloc.get_traced_memory()[0]
    explicit = implicit_cast(graph)
    both = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return built / len(graph), (both - built) / len(explicit)


def import_ratio(rounds: int) -> tuple[float, float]:
    """Medians of the imports of numpy and of the public names in fresh processes, in seconds."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    times: dict[str, list[float]] = {"numpy": [], "graphir.public": []}
    for _ in range(rounds):
        for name, taken in times.items():
            done = subprocess.run(
                [sys.executable, "-c", code.format(name)],
                capture_output=True,
                text=True,
                check=True,
            )
            taken.append(float(done.stdout))
    return statistics.median(times["numpy"]), statistics.median(times["graphir.public"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.processor() or platform.machine()}")
    for nodes in args.nodes:
        found = rates(nodes, args.rounds if nodes <= 100_000 else min(3, args.rounds))
        base = statistics.median(found["graphir: build, infer, locate"][1])
        print(f"\n{nodes:,} nodes{'':27}nodes/s (median)   of graphir's   graph")
        for name, (size, measured) in found.items():
            rate = statistics.median(measured)
            print(f"  {name:36} {rate:14,.0f}   {rate / base:8.2f}       {size:,} nodes")
    built, explicit = bytes_per_node(args.nodes[0])
    print(f"\nbytes a node: {built:.0f} built, {explicit:.0f} explicit (origins included)")
    numpy, graphir = import_ratio(9)
    print(f"import: numpy {numpy * 1e3:.0f} ms, graphir {graphir * 1e3:.0f} ms", end="")
    print(f", {graphir / numpy:.2f} times numpy")


if __name__ == "__main__":
    main()
