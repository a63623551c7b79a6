"""Kalman filter tracking of two aircraft from noisy radar plots with clutter.

Plots arrive in polar coordinates; a constant-velocity filter with nearest-neighbour association follows the
targets, a Rauch-Tung-Striebel pass smooths the tracks, and the consistency of the filter is tested.
"""
# outputs: 13
# (2 returned, 9 numbers printed, 2 arrays written)
import numpy as np

DT = 2.0
F = np.kron(np.eye(2), np.array([[1.0, DT], [0.0, 1.0]]))        # x, vx, y, vy
H = np.array([[1.0, 0, 0, 0], [0, 0, 1.0, 0]])


def process_noise(q):
    block = q * np.array([[DT ** 3 / 3, DT ** 2 / 2], [DT ** 2 / 2, DT]])
    return np.block([[block, np.zeros((2, 2))], [np.zeros((2, 2)), block]])


def truth(n):
    t = np.arange(n) * DT
    a = np.stack([-9000 + 180 * t, 4000 + 40 * t], axis=1)
    b = np.stack([6000 - 120 * t, 9000 - 150 * t + 0.25 * t ** 2], axis=1)
    return np.stack([a, b])


def radar(positions, rng, sigma_r=40.0, sigma_a=np.deg2rad(0.25), p_detect=0.93):
    """Plots of one scan as (range, azimuth) rows in random order, clutter included."""
    rng_true = np.linalg.norm(positions, axis=1)
    az_true = np.arctan2(positions[:, 0], positions[:, 1])
    seen = rng.random(len(positions)) < p_detect
    plots = np.column_stack([rng_true + sigma_r * rng.standard_normal(2),
                             az_true + sigma_a * rng.standard_normal(2)])[seen]
    n_false = rng.poisson(1.5)
    clutter = np.column_stack([rng.uniform(2000, 15000, n_false), rng.uniform(-np.pi, np.pi, n_false)])
    return rng.permutation(np.vstack([plots, clutter]))


def to_cartesian(plot, sigma_r=40.0, sigma_a=np.deg2rad(0.25)):
    r, a = plot
    z = np.array([r * np.sin(a), r * np.cos(a)])
    jac = np.array([[np.sin(a), r * np.cos(a)], [np.cos(a), -r * np.sin(a)]])
    return z, jac @ np.diag([sigma_r ** 2, sigma_a ** 2]) @ jac.T


class Track:
    def __init__(self, position):
        self.x = np.array([position[0], 0.0, position[1], 0.0])
        self.p = np.diag([100.0 ** 2, 200.0 ** 2, 100.0 ** 2, 200.0 ** 2])
        self.history = []
        self.nis = []

    def step(self, scan, q):
        xp = F @ self.x
        pp = F @ self.p @ F.T + q
        best, gate = None, 13.8
        for plot in scan:
            z, r = to_cartesian(plot)
            v = z - H @ xp
            s = H @ pp @ H.T + r
            d2 = v @ np.linalg.solve(s, v)
            if d2 < gate:
                best, gate = (v, s, r), d2
        if best is None:
            self.x, self.p = xp, pp
        else:
            v, s, r = best
            k = np.linalg.solve(s, H @ pp).T
            self.x = xp + k @ v
            i_kh = np.eye(4) - k @ H
            self.p = i_kh @ pp @ i_kh.T + k @ r @ k.T
            self.nis.append(gate)
        self.history.append((xp, pp, self.x, self.p))

    def smooth(self):
        out = [self.history[-1][2]]
        for (_, _, x, p), (xp, pp, _, _) in zip(self.history[-2::-1], self.history[:0:-1]):
            gain = p @ F.T @ np.linalg.inv(pp)
            out.append(x + gain @ (out[-1] - xp))
        return np.array(out[::-1])


def main():
    rng = np.random.default_rng(1960)
    n = 38
    path = truth(n)
    q = process_noise(1.0)
    tracks = [Track(p[0] + rng.normal(0, 60, 2)) for p in path]
    n_plots = np.zeros(n, dtype=np.int32)
    for k in range(1, n):
        scan = radar(path[:, k], rng)
        n_plots[k] = len(scan)
        for t in tracks:
            t.step(scan, q)

    estimates = np.array([[h[2] for h in t.history] for t in tracks])
    smoothed = np.array([t.smooth() for t in tracks])
    for name, est in (("filter", estimates), ("smoother", smoothed)):
        miss = np.linalg.norm(est[:, :, ::2] - path[:, 1:], axis=2)
        rms = np.sqrt((miss[:, 5:] ** 2).mean(axis=1))
        print(f"{name:9s} rms {rms[0]:8.3f} m {rms[1]:8.3f} m, worst {miss[:, 5:].max():8.3f} m")
    nis = np.concatenate([t.nis for t in tracks])
    print("mean innovation statistic", nis.mean().round(4), "of", nis.size, "updates")
    print("plots per scan", n_plots[1:].mean().round(3))
    speed = np.hypot(smoothed[:, :, 1], smoothed[:, :, 3])
    heading = np.rad2deg(np.arctan2(smoothed[:, -1, 1], smoothed[:, -1, 3])) % 360
    sigma = np.sqrt(np.array([np.diag(t.p) for t in tracks]))
    np.savez("tracks.npz", smoothed=smoothed, speed=speed)
    np.linalg.cholesky(tracks[0].p)          # must be positive definite
    return heading, sigma


if __name__ == "__main__":
    main()
