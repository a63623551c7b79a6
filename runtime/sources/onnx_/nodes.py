"""The nodes of a model: their order, the values that they use, and where they come from.

A node comes from a line of Python, from a layer, or from a pass of an exporter.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from graphir.public import GraphError, Location
from graphir.runtime.sources.onnx_.model import described, graphs_of, text_of
from graphir.runtime.sources.onnx_.wire_format import NodeProto

_TORCH = "pkg.torch.onnx."
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')

PASSES = {
    r"^Inserted(PrecisionFree)?Cast_|CastTransformer": "onnxruntime.InsertCastTransformer",
    r"(^graph|_)_?(in|out)put_cast_?\d*$": "onnxconverter_common.float16",
}
"""Passes of exporters and engines by the names that they give to their casts."""


def location_of(node: NodeProto, place: int, outer: str) -> Location:
    """Return the location of a node: its name, or its op and its place, and its layer.

    A node of PyTorch's exporter has the line of the program instead, which the model states.
    """
    metadata = {text_of(entry.key): text_of(entry.value) for entry in node.metadata_props}
    name = text_of(node.name) or f"{text_of(node.op_type)}_{place}"
    layer = name.strip("/").rpartition("/")[0]
    scopes = re.findall(r"'([^']*)'", metadata.get(f"{_TORCH}name_scopes", ""))
    layer = "/".join(part for part in (outer, scopes[-2] if len(scopes) > 1 else layer) if part)
    frames = _FRAME.findall(metadata.get(f"{_TORCH}stack_trace", ""))
    frames = [frame for frame in frames if "/site-packages/" not in frame[0]] or frames
    if frames:
        file, line = frames[-1]
        return Location.at(file, min(int(line[:9]), 10**8), layer=layer)
    return Location.at(name, 0, layer=layer)


def exporter_pass(node: NodeProto) -> str:
    """Return the pass that has inserted a cast, by the node's name; "" if it tells none."""
    name = text_of(node.name)
    return next((title for pattern, title in PASSES.items() if re.search(pattern, name)), "")


def outer_names(graphs: Iterable[Any]) -> list[str]:
    """Return the names of the values that graphs use from outside, in the order of their use."""
    names: dict[str, None] = {}
    for graph in graphs:
        inner = {x.name for x in (*graph.input, *graph.initializer)}
        inner |= {x.values.name for x in graph.sparse_initializer}
        for node in graph.node:
            used = [*node.input, *outer_names(graphs_of(node))]
            names.update(dict.fromkeys(name for name in used if name and name not in inner))
            inner.update(node.output)
        names.update(dict.fromkeys(x.name for x in graph.output if x.name not in inner))
    return [*names]


def result_names(node: NodeProto) -> Sequence[str]:
    """Return the names of the results of a node that have one."""
    return [name for name in node.output if name]


def in_order(nodes: Sequence[Any], is_known: Callable[[str], bool]) -> list[tuple[int, Any]]:
    """Return nodes with their places from 1 on, each after the nodes whose results it uses.

    The order stays where it can. `is_known` answers for the values from outside, which a later node
    does not make. Raises GraphError, with a node, for nodes that form a cycle.
    """
    order = [*enumerate(nodes, 1)]
    if _are_in_order(nodes, is_known):
        return order
    makers = {name: i for i, node in reversed([*enumerate(nodes)]) for name in node.output if name}
    needs = [
        {
            makers[name]
            for name in (*node.input, *outer_names(graphs_of(node)))
            if name in makers and (makers[name] < i or not is_known(text_of(name)))
        }
        for i, node in enumerate(nodes)
    ]
    ready, users = [], [list[int]() for _ in nodes]
    counts = [len(each) for each in needs]
    for i, each in enumerate(needs):
        for maker in each:
            users[maker].append(i)
        if not each:
            ready.append(i)
    order = []
    while ready:  # a heap: the first node that can come next
        i = heappop(ready)
        order.append((i + 1, nodes[i]))
        for user in users[i]:
            counts[user] -= 1
            if not counts[user]:
                heappush(ready, user)
    if len(order) < len(nodes):
        _refuse_cycle(nodes, needs, {i for i, count in enumerate(counts) if count})
    return order


def _are_in_order(nodes: Sequence[Any], is_known: Callable[[str], bool]) -> bool:
    """Whether each node uses values from outside, and results of nodes before it, alone."""
    results = set[str]()
    for node in nodes:
        names = [name for name in node.input if name and name not in results]
        if node.attribute and (graphs := [*graphs_of(node)]):
            names += [name for name in outer_names(graphs) if name not in results]
        if not all(is_known(text_of(name)) for name in names):
            return False
        results.update(node.output)
    return True


def _refuse_cycle(nodes: Sequence[Any], needs: Sequence[set[int]], stuck: set[int]) -> None:
    """Raise the GraphError of a cycle among the nodes that never have all their operands."""
    path, i = list[int](), min(stuck)
    while i not in path:
        path.append(i)
        i = min(needs[i] & stuck)
    cycle = path[path.index(i) :][::-1]
    texts = [described(nodes[i], i + 1) for i in (*cycle, cycle[0])]
    text = " -> ".join([*texts[:4], "..."] if len(texts) > 5 else texts)
    raise GraphError("the nodes form a cycle", got=text, context=(texts[0],))
