"""Telemetry frames with an 8-bit counter and a 16-bit checksum."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(309)
    lost = np.sort(rng.choice(np.arange(5, 395), size=14, replace=False))
    serial = np.delete(np.arange(230, 630), lost)
    counter = (serial % 256).astype(np.uint8)
    payload = rng.integers(0, 256, size=(serial.size, 20), dtype=np.uint8)
    return counter, payload


def checksum(payload):
    """Fletcher's sums, modulo 255."""
    low = np.zeros(len(payload), dtype=np.uint16)
    high = np.zeros(len(payload), dtype=np.uint16)
    for column in payload.T:
        low = (low + column) % 255
        high = (high + low) % 255
    return (high << 8) | low


def run(counter, payload):
    # the counter rolls over at 256 by design: step is taken modulo 256
    step = counter[1:] - counter[:-1]
    dropped = int(np.count_nonzero(step != 1))
    check = checksum(payload)
    mean_byte = payload.mean(axis=0)
    print("%d frames, %d gaps in the counter" % (len(counter), dropped))
    return {
        "step": step,
        "check": check,
        "n_frames": len(counter),
        "payload_bytes": payload.size,
        "mean_byte": mean_byte,
        "byte_total": payload.sum(axis=1),
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "check": {"differ": 0},
        "n_frames": {"differ": 0},
        "payload_bytes": {"differ": 0},
        "mean_byte": {"differ": 0},
        "byte_total": {"differ": 0},
    },
    "why": "the uint8 step wraps by design and is not listed; the checksum is reduced at each step",
}
