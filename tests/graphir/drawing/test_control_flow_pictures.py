"""Pictures of control flow: frames for the graphs, folded where they are large."""

import numpy as np

from graphir import DType, Graph, Symbol
from graphir import control as cf
from graphir.drawing.formats import graph_dot, graph_mermaid, graph_svg
from graphir.passes import draw
from tests.support.tables import every


def program(steps: int = 1) -> Graph:
    g = Graph("p", rules="jax")
    x = g.input(DType.float32, (3,), name="x")
    scale = g.constant(np.float64(2.5))

    def body(v: Symbol) -> Symbol:
        for _ in range(steps):
            v = v + x
        return cf.cond(v[0] > 2, lambda: (v * scale).cast("float32"), lambda: v)

    g.output(cf.while_loop(lambda v: v.sum() < 5, body, x))
    return g


@every("picture", [graph_svg, graph_dot, graph_mermaid, draw])
def test_graphs_are_frames(picture: object) -> None:
    assert callable(picture)
    text = picture(program())
    for name in ("condition of while_loop", "body of while_loop", "true branch of cond"):
        assert name in text.replace("#95;", "_")
    assert text.count("multiply") >= 1


def test_a_value_enters_and_leaves_by_one_box() -> None:
    lines = graph_mermaid(program()).splitlines()
    for name in ("operands#91;0#93; of while#95;loop", "result#91;0#93; of while#95;loop"):
        assert sum(name in line for line in lines) == 1
    boxes = {line.split("(")[0].split("[")[0].strip() for line in lines if "<br/>" in line}
    linked = {word for line in lines if "-->" in line for word in line.split() if word[0] == "n"}
    assert linked <= {box.split("{")[0] for box in boxes}


def test_large_bodies_are_folded() -> None:
    text = graph_mermaid(program(steps=400)).replace("#95;", "_")
    boxes = [line for line in text.splitlines() if "<br/>" in line]
    assert "body of while_loop" in text and "symbols" in text and len(boxes) < 50


def test_casts_in_bodies_have_their_loss() -> None:
    assert "f64 → f32" in draw(program(), "dot") and "f32 → f64" in draw(program(), "dot")
