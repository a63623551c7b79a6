"""Graphs that tests of pictures draw."""

from __future__ import annotations

import numpy as np

from graphir import Graph, ops

EVIL = '<script>alert("x")</script> & \'q\' \\ \n ]]> --> %%{init}%% "] end; \x00\x1b \u202e\ud800'
"""What means something to XML, HTML, DOT or Mermaid, and what cannot be written at all."""


def mixed() -> Graph:
    """Each level of loss, and casts that are implied and that the user wrote."""
    g = Graph("mixed")
    x = g.input("int16", ("n",), name="x")
    w = g.input("float16", ("n",), name="w")
    with g.layer("encoder"):
        y = x * w + g.input("float32", ("n",), name="y")
        with g.layer("attention"):
            z = y * 0.5
    g.output(z.cast("float16"), z.cast("uint8"), ops.sum(z))
    return g


def hostile() -> Graph:
    g = Graph(EVIL)
    x = g.input("int16", ("n",), name="x")
    y = g.input("float16", ("n",), name="y" * 10_000)
    with g.layer(EVIL), g.layer("z" * 10_000):
        a = x * y
    with g.layer("end"):
        b = a * 2
    with g.layer("subgraph"):
        g.output(b + g.constant(np.float16("nan")))
    return g
