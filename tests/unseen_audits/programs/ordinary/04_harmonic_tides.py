"""Harmonic analysis of a tide gauge record and a prediction from it.

The hourly record has gaps; amplitudes and phases of six constituents and a linear trend are found by
least squares, with standard errors. High and low waters of the following three days are predicted.
"""
# outputs: 50
# (3 returned, 22 numbers printed, 1 arrays written, 24 numbers written in text)
import numpy as np

CONSTITUENTS = {                # degrees per hour
    "M2": 28.9841042,
    "S2": 30.0,
    "N2": 28.4397295,
    "K1": 15.0410686,
    "O1": 13.9430356,
    "M4": 57.9682084,
}
EPOCH = np.datetime64("2021-01-01T00:00")


def hours_since_epoch(stamps):
    return (stamps - EPOCH) / np.timedelta64(1, "h")


def synthetic_record(rng):
    stamps = EPOCH + np.arange(24 * 45) * np.timedelta64(1, "h")
    t = hours_since_epoch(stamps)
    amp = np.array([1.62, 0.55, 0.33, 0.21, 0.17, 0.06])
    lag = np.deg2rad([40.0, 75.0, 12.0, 190.0, 300.0, 130.0])
    speed = np.deg2rad(np.array(list(CONSTITUENTS.values())))
    level = 3.2 + 1.5e-5 * t + (amp * np.cos(np.outer(t, speed) - lag)).sum(axis=1)
    surge = np.convolve(rng.normal(0, 0.12, t.size + 23), np.hanning(24) / np.hanning(24).sum(), "valid")
    level = level + surge
    keep = np.ones(t.size, dtype=bool)
    keep[300:340] = False
    keep[rng.choice(t.size, 50, replace=False)] = False
    return stamps[keep], np.round(level[keep], 3)


def design(t):
    speed = np.deg2rad(np.array(list(CONSTITUENTS.values())))
    arg = np.outer(t, speed)
    return np.hstack([np.ones((t.size, 1)), t[:, None], np.cos(arg), np.sin(arg)])


def fit(t, level):
    a = design(t)
    coef, _, rank, sv = np.linalg.lstsq(a, level, rcond=None)
    if rank < a.shape[1]:
        raise np.linalg.LinAlgError("record too short to separate the constituents")
    residual = level - a @ coef
    sigma2 = residual @ residual / (len(level) - rank)
    cov = sigma2 * np.linalg.inv(a.T @ a)
    return coef, np.sqrt(np.diag(cov)), residual


def turning_points(t, level):
    d = np.sign(np.diff(level))
    k = np.flatnonzero(d[1:] * d[:-1] < 0) + 1
    # parabola through three points
    y0, y1, y2 = level[k - 1], level[k], level[k + 1]
    offset = 0.5 * (y0 - y2) / (y0 - 2 * y1 + y2)
    height = y1 - 0.25 * (y0 - y2) * offset
    return t[k] + offset * (t[1] - t[0]), height, d[k - 1] > 0


def main():
    rng = np.random.default_rng(99)
    stamps, level = synthetic_record(rng)
    t = hours_since_epoch(stamps)
    coef, error, residual = fit(t, level)

    n = len(CONSTITUENTS)
    c, s = coef[2:2 + n], coef[2 + n:]
    amplitude = np.hypot(c, s)
    phase = np.rad2deg(np.arctan2(s, c)) % 360
    amp_error = np.hypot(c * error[2:2 + n], s * error[2 + n:]) / amplitude

    print("mean level", coef[0].round(4), "trend per year", (coef[1] * 24 * 365.25).round(4))
    order = np.argsort(amplitude)[::-1]
    names = np.array(list(CONSTITUENTS))
    for k in order:
        print(f"{names[k]}:  {amplitude[k]:7.4f} m +- {amp_error[k]:.4f}   {phase[k]:7.2f} deg")
    explained = 1 - residual.var() / level.var()
    print("variance explained", format(explained, ".4f"), "gaps", np.count_nonzero(np.diff(t) > 1.5))

    ahead = t[-1] + np.arange(0, 72, 0.25)
    prediction = design(ahead) @ coef
    when, height, is_high = turning_points(ahead, prediction)
    minutes = np.round(when * 60).astype("timedelta64[m]")
    dates = EPOCH + minutes
    with open("tides.txt", "w") as f:
        for d, h, high in zip(dates, height, is_high):
            f.write(f"{d} {h:.3f} {'high' if high else 'low'}\n")
    np.savetxt("residual.txt", residual, fmt="%.4f")
    return amplitude, phase, height[is_high].max() - height[~is_high].min()


if __name__ == "__main__":
    main()
