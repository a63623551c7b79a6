"""Handwritten digits, recognised in five dtypes at once: every cast that this takes, and its cost.

A small network is trained in float32 with NumPy, then deployed as people deploy them: uint8
pixels, int8 weights with float16 scales, bfloat16 activations, float32 biases and logits. You will
see each cast that the deployed graph implies with the line it comes from, those that can lose
something, and what all of them together cost in accuracy.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from graphir import DType, Graph, Symbol, ops
from passes import cast_report
from runtime import execute

DATA = Path(__file__).parent / "data" / "digits.npz"
HIDDEN, CLASSES, INK = 32, 10, 16  # a pixel counts the inked ones of a 4x4 block


class Layer(NamedTuple):
    """x @ weights + bias, in float32."""

    weights: np.ndarray
    bias: np.ndarray


class Split(NamedTuple):
    """Images, uint8 (n, 8, 8), and the digits that they show."""

    images: np.ndarray
    labels: np.ndarray


def load() -> tuple[Split, Split]:
    """Two thirds of the images to train with, every third one to test with."""
    with np.load(DATA, allow_pickle=False) as data:
        images, labels = data["images"], data["labels"]
    test = np.arange(len(images)) % 3 == 0
    return Split(images[~test], labels[~test]), Split(images[test], labels[test])


def network(images: np.ndarray, hidden: Layer, logits: Layer) -> tuple[np.ndarray, ...]:
    """The float32 network in NumPy: inputs, activations and logits."""
    x = images.reshape(-1, 64).astype(np.float32) / INK
    h = np.maximum(x @ hidden.weights + hidden.bias, 0)
    return x, h, h @ logits.weights + logits.bias


def train(data: Split, steps: int = 3000, rate: float = 0.1, batch: int = 64) -> tuple[Layer, Layer]:
    """Gradient descent with momentum on the cross-entropy of random batches."""
    rng = np.random.default_rng(0)
    layers = tuple(
        Layer(rng.normal(0, np.sqrt(2 / a), (a, b)).astype(np.float32), np.zeros(b, np.float32))
        for a, b in ((64, HIDDEN), (HIDDEN, CLASSES))
    )
    momenta = [np.zeros_like(values) for layer in layers for values in layer]
    for _ in range(steps):
        chosen = rng.integers(len(data.images), size=batch)
        x, h, z = network(data.images[chosen], *layers)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        dz = (p / p.sum(axis=1, keepdims=True) - np.eye(CLASSES)[data.labels[chosen]]) / batch
        dh = (dz @ layers[1].weights.T) * (h > 0)
        gradients = (x.T @ dh, dh.sum(axis=0), h.T @ dz, dz.sum(axis=0))
        values = (values for layer in layers for values in layer)
        for value, momentum, gradient in zip(values, momenta, gradients, strict=True):
            momentum *= 0.9
            momentum -= rate * gradient
            value += momentum
    return layers


def quantised(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 weights and a float16 scale for each column, so that weights * scale is nearly it."""
    scale = (np.abs(weights).max(axis=0) / 127).astype(np.float16)
    rounded = np.rint(weights / scale.astype(np.float32))
    return rounded.clip(-127, 127).astype(np.int8), scale


def dense(g: Graph, x: Symbol, layer: Layer) -> Symbol:
    """The layer on bfloat16 activations, its result float32; four dtypes meet in three lines."""
    weights, scale = quantised(layer.weights)
    y = x @ g.constant(weights)
    y = y * g.constant(scale)
    return y + g.constant(layer.bias)


def deployed(hidden: Layer, logits: Layer) -> Graph:
    """The graph from uint8 images, any number of them, to int64 digits."""
    g = Graph("digits")
    images = g.input(DType.uint8, ("n", 8, 8), name="images")
    x = images.reshape("n", 64) * g.scalar[DType.bfloat16](1 / INK)
    with g.layer("hidden"):
        h = ops.relu(dense(g, x, hidden)).cast(DType.bfloat16)
    with g.layer("logits"):
        z = dense(g, h, logits)
    g.output(z.argmax(axis=-1))
    return g


def main() -> None:
    """Train, deploy, report the casts, compare the accuracy."""
    training, test = load()
    layers = train(training)
    graph = deployed(*layers)
    report = cast_report(graph)
    print(f"{report}\n\nThose that can lose something:\n\n{report.only(exact=False)}\n")

    found, expected = execute(graph, test.images), network(test.images, *layers)[-1].argmax(axis=-1)
    print(f"test images         {len(found)}, of which {(found != expected).sum()} differ")
    print(f"float32 accuracy    {(expected == test.labels).mean():.4f}")
    print(f"deployed accuracy   {(found == test.labels).mean():.4f}")


if __name__ == "__main__":
    main()
