"""Firewall log: number of packets and bytes by destination port."""
import numpy as np

PORTS = np.array([22, 25, 53, 80, 123, 443, 3389, 8080])


def make_inputs():
    rng = np.random.default_rng(19)
    share = np.array([0.09, 0.02, 0.17, 0.21, 0.03, 0.38, 0.04, 0.06])
    port = rng.choice(PORTS, size=2400, p=share)
    size = rng.integers(40, 1500, size=2400).astype(np.int32)
    return port, size


def run(port, size):
    slot = np.searchsorted(PORTS, port)
    hits = np.zeros(PORTS.size, dtype=np.uint8)
    np.add.at(hits, slot, 1)
    volume = np.zeros(PORTS.size, dtype=np.int64)
    np.add.at(volume, slot, size)
    mean_size = volume / hits
    for p, v in zip(PORTS, volume):
        print(f"{p:>5d} {v:>9,d} bytes")
    return {
        "hits": hits,
        "volume": volume,
        "mean_size": mean_size,
        "largest": int(size.max()),
    }


ANSWER = {
    "line": 18,
    "fix_line": 17,
    "outputs": {
        "hits": {"differ": 3},
        "volume": {"differ": 0},
        "mean_size": {"differ": 3},
        "largest": {"differ": 0},
    },
    "why": "uint8 counters wrap at 256",
}
