"""Handwritten digits, recognised in five dtypes at once: every cast that takes, and its cost.

A small network is trained in float32 with NumPy, then deployed as such networks are: uint8 pixels,
int8 weights with float16 scales, bfloat16 activations, float32 biases and logits. You will see
each cast in the deployed graph with the line that it comes from, those that can lose something,
and what it all costs in accuracy.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from graphir import DType, Graph, Symbol, ops
from graphir.passes import cast_report
from graphir.runtime import execute

DATA = Path(__file__).parent / "data" / "digits.npz"
HIDDEN, CLASSES, INK = 32, 10, 16  # a pixel counts the inked ones of a 4x4 block


class Layer(NamedTuple):
    """x @ weights + bias, in float32."""

    weights: np.ndarray
    bias: np.ndarray


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images, uint8 (1797, 8, 8); the digits that they show; which to test with, every third."""
    with np.load(DATA, allow_pickle=False) as data:
        images, labels = data["images"], data["labels"]
    return images, labels, np.arange(len(images)) % 3 == 0


def network(images: np.ndarray, hidden: Layer, logits: Layer) -> tuple[np.ndarray, ...]:
    """The float32 network in NumPy: inputs, activations and logits."""
    x = images.reshape(-1, 64).astype(np.float32) / INK
    h = np.maximum(x @ hidden.weights + hidden.bias, 0)
    return x, h, h @ logits.weights + logits.bias


def train(images: np.ndarray, labels: np.ndarray) -> list[Layer]:
    """Gradient descent with momentum, on the cross-entropy of random batches of 64."""
    rng = np.random.default_rng(0)
    layers = [
        Layer(rng.normal(0, np.sqrt(2 / a), (a, b)).astype(np.float32), np.zeros(b, np.float32))
        for a, b in ((64, HIDDEN), (HIDDEN, CLASSES))
    ]
    values = [array for layer in layers for array in layer]
    momenta = [np.zeros_like(value) for value in values]
    truth = np.eye(CLASSES, dtype=np.float32)[labels]
    for _ in range(3000):
        chosen = rng.integers(len(images), size=64)
        x, h, z = network(images[chosen], *layers)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        dz = (p / p.sum(axis=1, keepdims=True) - truth[chosen]) / 64
        dh = (dz @ layers[1].weights.T) * (h > 0)
        gradients = (x.T @ dh, dh.sum(axis=0), h.T @ dz, dz.sum(axis=0))
        for value, momentum, gradient in zip(values, momenta, gradients, strict=True):
            momentum *= 0.9
            momentum -= 0.1 * gradient
            value += momentum
    return layers


def quantised(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 weights and a float16 scale for each column; their product is nearly the weights."""
    scale = (np.abs(weights).max(axis=0) / 127).astype(np.float16)
    rounded = np.rint(weights / scale.astype(np.float32))
    return rounded.clip(-127, 127).astype(np.int8), scale


def dense(g: Graph, x: Symbol, layer: Layer) -> Symbol:
    """The layer on bfloat16 activations: four dtypes meet in three lines, the result is float32."""
    weights, scale = quantised(layer.weights)
    y = x @ g.constant(weights)
    y = y * g.constant(scale)
    return y + g.constant(layer.bias)


def deployed(hidden: Layer, logits: Layer) -> Graph:
    """The graph from uint8 images, however many, to float32 logits and int64 digits."""
    g = Graph("digits")
    images = g.input(DType.uint8, ("n", 8, 8), name="images")
    # As bfloat16 before they meet the weights: uint8 @ int8 would be int16, and wrap.
    x = images.reshape("n", 64) * g.scalar[DType.bfloat16](1 / INK)
    with g.layer("hidden"):
        h = ops.relu(dense(g, x, hidden)).cast(DType.bfloat16)
    with g.layer("logits"):
        z = dense(g, h, logits)
    g.output(z, z.argmax(axis=-1))
    return g


def main() -> None:
    """Train, deploy, report the casts, compare."""
    images, labels, test = load()
    layers = train(images[~test], labels[~test])
    graph = deployed(*layers)
    report = cast_report(graph)
    print(f"{report}\n\nThose that can lose something:\n\n{report.only(exact=False)}\n")

    *_, expected = network(images[test], *layers)
    logits, digits = execute(graph, images=images[test])
    apart = np.abs(logits - expected).max()
    print(f"test images            {test.sum()}")
    print(f"accuracy in float32    {(expected.argmax(axis=-1) == labels[test]).mean():.4f}")
    print(f"accuracy as deployed   {(digits == labels[test]).mean():.4f}")
    print(f"logits apart, at most  {apart:.3f} of {np.abs(expected).max():.3f}")


if __name__ == "__main__":
    main()
