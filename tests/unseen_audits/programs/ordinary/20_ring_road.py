"""Traffic on a ring road: Nagel-Schreckenberg automaton and a toll queue.

The automaton gives flow and speed as functions of density and a space-time picture; the cars that pass a
detector then queue at a toll plaza with three booths, whose waiting times are summarised.
"""
# outputs: 48
# (4 returned, 42 numbers printed, 2 arrays written)
import numpy as np

LENGTH = 100
V_MAX = 5


def step(position, speed, p_slow, rng):
    """Parallel update; positions are sorted along the ring."""
    gap = (np.roll(position, -1) - position - 1) % LENGTH
    speed = np.minimum(speed + 1, V_MAX)
    speed = np.minimum(speed, gap)
    slow = rng.random(speed.size) < p_slow
    speed = np.where(slow, np.maximum(speed - 1, 0), speed)
    return (position + speed) % LENGTH, speed


def run(density, rng, warm=60, keep=50, p_slow=0.25):
    n = int(round(density * LENGTH))
    position = np.sort(rng.choice(LENGTH, size=n, replace=False))
    speed = np.zeros(n, dtype=np.int64)
    crossed, mean_speed, stopped = [], np.empty(keep), np.empty(keep, dtype=np.int64)
    picture = np.full((keep, LENGTH), -1, dtype=np.int8)
    for t in range(-warm, keep):
        before = position
        position, speed = step(position, speed, p_slow, rng)
        if t < 0:
            continue
        mean_speed[t] = speed.mean()
        stopped[t] = np.count_nonzero(speed == 0)
        picture[t, position] = speed
        if np.any(position < before):
            crossed.extend([t] * int(np.sum(position < before)))
    return mean_speed, stopped, np.array(crossed, dtype=np.int64), picture


def fundamental_diagram(densities, rng):
    rows = []
    for d in densities:
        v, stopped, crossed, _ = run(d, rng)
        rows.append((d, v.mean(), d * v.mean(), stopped.mean() / (d * LENGTH), crossed.size))
    return np.array(rows, dtype=[("density", "f8"), ("speed", "f8"), ("flow", "f8"),
                                 ("stopped", "f8"), ("crossed", "i4")])


def jam_velocity(picture):
    """Drift of the jams from the cross-correlation of successive rows."""
    slow = ((picture >= 0) & (picture <= 1)).astype(float)
    slow -= slow.mean(axis=1, keepdims=True)
    lag = 10
    f = np.fft.rfft(slow, axis=1)
    corr = np.fft.irfft(f[lag:] * f[:-lag].conj(), n=LENGTH, axis=1).mean(axis=0)
    k = int(corr.argmax())
    return (k if k <= LENGTH // 2 else k - LENGTH) / lag


def toll(arrival, service, booths=3):
    free = np.zeros(booths)
    start = np.empty_like(arrival)
    booth = np.empty(arrival.size, dtype=np.int8)
    for i, (a, s) in enumerate(zip(arrival, service)):
        b = free.argmin()
        start[i] = max(a, free[b])
        free[b] = start[i] + s
        booth[i] = b
    return start - arrival, booth, free.max()


def queue_length(arrival, wait, times):
    came = np.searchsorted(np.sort(arrival), times, side="right")
    served = np.searchsorted(np.sort(arrival + wait), times, side="right")
    return came - served


def main():
    rng = np.random.default_rng(1992)
    densities = np.array([0.06, 0.1, 0.14, 0.2, 0.3, 0.45, 0.65])
    table = fundamental_diagram(densities, rng)
    print(" ".join(f"{name:>9s}" for name in table.dtype.names))
    for row in table:
        print(f"{row['density']:9.2f} {row['speed']:9.4f} {row['flow']:9.4f} {row['stopped']:9.4f} {row['crossed']:9d}")
    peak = table[np.argmax(table["flow"])]
    print("capacity", round(float(peak["flow"]), 4), "at density", peak["density"])
    fine = np.linspace(0.06, 0.65, 60)
    flow = np.interp(fine, table["density"], table["flow"])
    congested = fine[flow < 0.6 * flow.max()]

    _, _, crossed, picture = run(0.3, rng)
    drift = jam_velocity(picture)
    shown = picture[-1, :70]
    print("jam velocity:", drift)
    print("".join("." if v < 0 else str(v) for v in shown.tolist()))

    arrival = np.sort(crossed + rng.random(crossed.size)) * 1.2
    service = rng.gamma(4.0, 2.1, arrival.size)
    wait, booth, end = toll(arrival, service)
    times = np.arange(0, arrival.max(), 5.0)
    queue = queue_length(arrival, wait, times)
    share = np.bincount(booth, minlength=3) / booth.size
    print(f"cars {arrival.size} mean wait {wait.mean():.4f} s, longest {wait.max():.4f} s, plaza empty at {end:.3f} s")
    hist, edges = np.histogram(wait, bins=8)
    np.savetxt("waits.txt", np.column_stack([edges[:-1], hist]), fmt="%.3f")
    np.save("space_time.npy", picture)
    return table["flow"], queue, share, congested.size


if __name__ == "__main__":
    main()
