"""Integer random walks: displacement, first passage and diffusion estimate."""
import numpy as np

STEPS = 200


def walk(rng, start):
    moves = 2 * rng.integers(0, 2, size=(len(start), STEPS), dtype=np.int8) - 1
    return start[:, None] + np.cumsum(moves, axis=1, dtype=np.int64)


def first_passage(paths, level):
    """Index of the first visit to +-level, or -1."""
    hit = np.abs(paths) >= level
    return np.where(hit.any(axis=1), hit.argmax(axis=1), -1)


def main(start):
    rng = np.random.default_rng(2024)
    paths = walk(rng, start)
    displacement = paths - start[:, None]
    msd = np.mean(displacement ** 2, axis=0)
    t = np.arange(1, STEPS + 1)
    diffusion = np.dot(t, msd) / (2 * np.dot(t, t))
    return paths[:, -1], first_passage(displacement, 10), msd, diffusion


def inputs():
    return (np.arange(-25, 25, dtype=np.int64),)
