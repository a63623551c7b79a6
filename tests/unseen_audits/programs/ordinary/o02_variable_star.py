"""Light curve of a variable star: cleaning, period search, phase folding, amplitude."""
import numpy as np

TRUE_PERIOD = 0.5674


def make_inputs():
    rng = np.random.default_rng(77120)
    nights = np.sort(rng.choice(60, size=26, replace=False))
    times, fluxes, errors = [], [], []
    for night in nights:
        n = int(rng.integers(6, 14))
        t = 2_459_800.0 + night + 0.6 + np.sort(rng.uniform(0.0, 0.3, n))
        phase = t / TRUE_PERIOD % 1.0
        shape = 1.0 + 0.22 * np.sin(2 * np.pi * phase) + 0.07 * np.sin(4 * np.pi * phase + 0.8)
        err = rng.uniform(0.008, 0.03, n)
        times.append(t)
        fluxes.append(1500.0 * (shape + err * rng.standard_normal(n)))
        errors.append(1500.0 * err)
    flux = np.concatenate(fluxes).astype(np.float32)
    flux[rng.integers(0, flux.size, 5)] *= np.float32(3.0)
    return np.concatenate(times), flux, np.concatenate(errors).astype(np.float32)


def clip_outliers(flux, limit=5.0):
    """True where a flux lies within limit robust deviations of the median."""
    keep = np.ones(flux.size, dtype=bool)
    for _ in range(10):
        centre = np.median(flux[keep])
        mad = np.median(np.abs(flux[keep] - centre)) * 1.4826
        new = np.abs(flux - centre) < limit * mad
        if np.array_equal(new, keep):
            break
        keep = new
    return keep


def power_spectrum(time, value, weight, freqs):
    """Generalised Lomb-Scargle power on a grid of frequencies."""
    w = weight / weight.sum()
    y = value - np.dot(w, value)
    yy = np.dot(w, y * y)
    power = np.empty(freqs.size)
    for i, f in enumerate(freqs):
        arg = 2.0 * np.pi * f * time
        c, s = np.cos(arg), np.sin(arg)
        cm, sm = np.dot(w, c), np.dot(w, s)
        yc, ys = np.dot(w, y * c), np.dot(w, y * s)
        cc = np.dot(w, c * c) - cm * cm
        ss = np.dot(w, s * s) - sm * sm
        cs = np.dot(w, c * s) - cm * sm
        det = cc * ss - cs * cs
        power[i] = (ss * yc**2 + cc * ys**2 - 2.0 * cs * yc * ys) / (yy * det)
    return power


def refine_peak(freqs, power):
    k = int(np.clip(power.argmax(), 1, power.size - 2))
    left, mid, right = power[k - 1:k + 2]
    shift = 0.5 * (left - right) / (left - 2.0 * mid + right)
    return freqs[k] + shift * (freqs[1] - freqs[0])


def fold(time, value, period, n_bins=12):
    phase = (time - time[0]) / period % 1.0
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    slot = np.digitize(phase, edges) - 1
    count = np.bincount(slot, minlength=n_bins)
    total = np.bincount(slot, weights=value, minlength=n_bins)
    mean = np.divide(total, count, out=np.full(n_bins, np.nan), where=count > 0)
    return phase, count, mean


def harmonic_fit(phase, value, order=2):
    columns = [np.ones_like(phase)]
    for k in range(1, order + 1):
        columns += [np.cos(2 * np.pi * k * phase), np.sin(2 * np.pi * k * phase)]
    design = np.stack(columns, axis=1)
    coef, _, rank, _ = np.linalg.lstsq(design, value, rcond=None)
    residual = value - design @ coef
    return coef, rank, np.sqrt(np.mean(residual**2))


def run(time, flux, error):
    keep = clip_outliers(flux)
    t = time[keep] - time[keep].min()
    magnitude = -2.5 * np.log10(flux[keep].astype(np.float64)) + 25.0
    sigma = 1.0857 * error[keep] / flux[keep]
    weight = 1.0 / sigma.astype(np.float64) ** 2
    freqs = np.arange(0.2, 4.0, 0.002)
    power = power_spectrum(t, magnitude, weight, freqs)
    best = refine_peak(freqs, power)
    phase, count, mean = fold(t, magnitude, 1.0 / best)
    coef, rank, rms = harmonic_fit(phase, magnitude)
    amplitude = np.hypot(coef[1::2], coef[2::2])
    print("%d of %d points kept" % (keep.sum(), keep.size))
    print("period %.5f d (power %.3f), rms %.4f mag" % (1.0 / best, power.max(), rms))
    np.savez("folded.npz", phase=phase, magnitude=magnitude, mean=mean)
    return {
        "keep": keep,
        "period": 1.0 / best,
        "power_max": power.max(),
        "bin_count": count,
        "bin_mean": mean,
        "amplitude": amplitude,
        "rank": int(rank),
        "mean_sigma": sigma.mean(dtype=np.float64),
    }
