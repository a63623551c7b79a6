"""Eight-bit coding of a small layer's weights, one scale for each row."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(305)
    weights = rng.normal(0.0, 0.2, size=(16, 24)) * rng.uniform(0.5, 2.0, size=(16, 1))
    signal = rng.normal(0.0, 1.0, size=24)
    return weights, signal


def encode(weights):
    scale = np.abs(weights).max(axis=1, keepdims=True) / 127.0
    code = np.clip(np.rint(weights / scale), -127, 127).astype(np.int8)
    return code, scale


def decode(code, scale):
    return code.astype(np.float64) * scale


def run(weights, signal):
    code, scale = encode(weights)
    restored = decode(code, scale)
    within = np.all(np.abs(restored - weights) <= 0.5 * scale * (1 + 1e-9), axis=1)
    code_sum = code.sum(axis=1, dtype=np.int32)
    energy = np.einsum("ij,ij->i", code, code, dtype=np.int64)
    if not within.all():
        raise ValueError("coding error above half a step")
    return {
        "code": code,
        "scale": scale,
        "code_sum": code_sum,
        "energy": energy,
        "within": within,
        "response": restored @ signal,
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "code": {"differ": 0},
        "scale": {"differ": 0},
        "code_sum": {"differ": 0},
        "energy": {"differ": 0},
        "within": {"differ": 0},
        "response": {"differ": 0},
    },
    "why": "codes are rounded and clipped before the cast, sums are taken in wide ints",
}
