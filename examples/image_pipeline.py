"""An image blurred in linear light, in float32 and in tensor_float32: how far apart they end.

The pipeline takes uint8 pixels, evens out the lens's shading, removes the gamma, blurs by slices,
puts the gamma back and rounds to uint8. You will see which casts can lose something (under MAX's
rules float32 meets tensor_float32 in tensor_float32, so thirteen bits go without a word), and how
far apart the two results are.
"""

from __future__ import annotations

import numpy as np

from graphir import DType, Graph, ops
from graphir.passes import cast_report
from graphir.runtime import execute

SIZE = 256
GAMMA = 2.2


def photograph() -> tuple[np.ndarray, np.ndarray]:
    """A disc on a gradient, noisy and dark at the corners; and the gains that undo the darkness."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
    scene = np.where(np.hypot(x - 0.2, y + 0.1) < 0.5, 0.9, 0.3 + 0.2 * (x + y))
    gains = 1 + 0.3 * (x * x + y * y)
    noisy = 255 * scene.clip(0, 1) / gains + rng.normal(0, 4, scene.shape)
    return np.rint(noisy).clip(0, 255).astype(np.uint8), gains.astype(np.float32)


def pipeline(dtype: DType) -> Graph:
    """The graph for images of any size, from uint8 through `dtype` back to uint8."""
    g = Graph(f"pipeline_{dtype}")
    image = g.input(DType.uint8, ("h", "w"), name="image")
    gains = g.input(DType.float32, ("h", "w"), name="gains")
    with g.layer("normalise"):
        x = image * gains
        x = x * g.scalar[dtype](1 / 255)
    with g.layer("linear"):
        x = x.clip(0.0, 1.0) ** GAMMA
    with g.layer("blur"):
        x = (x[:-2] + 2 * x[1:-1] + x[2:]) / 4
        x = (x[:, :-2] + 2 * x[:, 1:-1] + x[:, 2:]) / 4
    with g.layer("display"):
        x = x ** (1 / GAMMA) * 255
        pixels = ops.round(x.clip(0, 255)).cast(DType.uint8)
    g.output(x, pixels)
    return g


def main() -> None:
    """Run both, compare them, and show where they can lose something."""
    image, gains = photograph()
    graphs = [pipeline(dtype) for dtype in (DType.float32, DType.tensor_float32)]
    results = [execute(g, image=image, gains=gains) for g in graphs]
    (floats, pixels), (tf32_floats, tf32_pixels) = results
    for g in graphs:
        print(f"{cast_report(g).only(exact=False)}\n")

    apart = np.abs(pixels.astype(np.int16) - tf32_pixels)
    print(f"result                 {graphs[0].outputs[1].type}, here {pixels.shape}")
    print(f"floats apart, at most  {np.abs(floats - tf32_floats).max():.3f} of 255")
    print(f"pixels apart, at most  {apart.max()} of 255")
    print(f"pixels that differ     {np.count_nonzero(apart)} of {apart.size}")


if __name__ == "__main__":
    main()
