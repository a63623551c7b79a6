# Video frames carry a hardware sync stamp (ns since 1970) only every tenth
# frame; the stamps in between are interpolated.
import numpy as np


def make_inputs():
    rng = np.random.default_rng(25)
    sync_frame = np.arange(0, 301, 10)
    period = 10 * (4_000_000 + rng.integers(-300, 300, size=sync_frame.size - 1))
    start = 1_690_000_000_123_456_789
    sync_ns = start + np.concatenate(([0], np.cumsum(period)))
    frames = np.arange(301)
    return frames, sync_frame, sync_ns


def run(frames, sync_frame, sync_ns):
    if np.any(np.diff(sync_ns) <= 0):
        raise ValueError("sync stamps must increase")

    stamps = np.rint(np.interp(frames, sync_frame, sync_ns)).astype(np.int64)
    period = np.diff(stamps)
    dropped = frames[1:][period > 6_000_000]

    np.savez("frame_times.npz", frames=frames, stamps=stamps, period=period)
    return {"dropped": dropped.size, "mean_period": (stamps[-1] - stamps[0]) / period.size}


def exact(frames, sync_frame, sync_ns):
    ns, sf = sync_ns.tolist(), sync_frame.tolist()
    out = []
    for f in frames.tolist():
        k = min(f // 10, len(sf) - 2)
        num = (ns[k + 1] - ns[k]) * (f - sf[k])
        assert num % 10 == 0
        out.append(ns[k] + num // 10)
    per = [b - a for a, b in zip(out, out[1:])]
    return (sum(p > 6_000_000 for p in per), [(out[-1] - out[0]) / len(per)],
            frames.tolist(), out, per)


ANSWER = {
    "line": 20,
    "kind": "rounding",
    "operation": "np.interp converts int64 nanoseconds (1.7e18) to float64, spacing 256 ns",
    "outputs": {
        "dropped (dict entry)": {"size": 1, "differ": 0},
        "mean_period (dict entry)": {"size": 1, "differ": 0},
        "frame_times.npz frames": {"size": 301, "differ": 0},
        "frame_times.npz stamps": {"size": 301, "differ": 297},
        "frame_times.npz period": {"size": 300, "differ": 300},
    },
    "fix": "stamps = sync_ns[0] + np.rint(np.interp(frames, sync_frame, sync_ns - sync_ns[0])).astype(np.int64)",
}
