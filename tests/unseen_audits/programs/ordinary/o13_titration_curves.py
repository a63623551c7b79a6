"""Titration of weak acids: pH curves, end points, buffer capacity, Beer-Lambert calibration."""
import pickle

import numpy as np

KW = 1.0e-14
ACIDS = {"acetic": (4.756,), "oxalic": (1.25, 4.27), "citric": (3.13, 4.76, 6.40)}


def make_inputs():
    rng = np.random.default_rng(1313)
    volume = np.linspace(0.0, 40.0, 81)
    standards = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
    absorbance = 0.012 + 0.0874 * standards[:, None] + rng.normal(0.0, 0.003, size=(6, 3))
    unknown = np.array([0.214, 0.377, 0.559])
    return volume, 0.0125, 20.0, 0.025, standards, absorbance.round(4), unknown


def alphas(h, pka):
    """Fractions of the acid's forms at proton concentration h, first axis by charge."""
    ka = 10.0 ** -np.asarray(pka)
    beta = np.concatenate([[1.0], np.cumprod(ka)])
    n = len(pka)
    h = np.atleast_1d(h)
    terms = beta[:, None] * h[None, :] ** (n - np.arange(n + 1))[:, None]
    return terms / terms.sum(axis=0)


def charge_excess(ph, pka, acid, sodium):
    h = 10.0 ** -ph
    charge = np.arange(len(pka) + 1) @ alphas(h, pka)
    return h + sodium - KW / h - acid * charge


def solve_ph(pka, acid, sodium):
    """Bisection for all points at the same time; the excess falls with pH."""
    low = np.zeros_like(acid)
    high = np.full_like(acid, 14.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        positive = charge_excess(middle, pka, acid, sodium) > 0.0
        low = np.where(positive, middle, low)
        high = np.where(positive, high, middle)
    return 0.5 * (low + high)


def curve(pka, volume, acid_molar, acid_ml, base_molar):
    total = volume + acid_ml
    acid = acid_molar * acid_ml / total
    sodium = base_molar * volume / total
    return solve_ph(pka, acid, sodium)


def end_points(volume, ph, least=0.35):
    slope = np.gradient(ph, volume)
    inner = slope[1:-1]
    top = (inner > slope[:-2]) & (inner >= slope[2:]) & (inner > least)
    return volume[1:-1][top], slope


def buffer_capacity(ph, pka, acid_molar):
    ka = 10.0 ** -np.asarray(pka)[:, None]
    h = 10.0 ** -ph[None, :]
    parts = acid_molar * ka * h / (ka + h) ** 2
    return np.log(10.0) * (parts.sum(axis=0) + h[0] + KW / h[0])


def calibrate(standards, absorbance):
    x = np.repeat(standards, absorbance.shape[1])
    y = absorbance.ravel()
    design = np.vander(x, 2)
    coef, residual, _, _ = np.linalg.lstsq(design, y, rcond=None)
    sigma = np.sqrt(residual[0] / (y.size - 2))
    cov = sigma**2 * np.linalg.inv(design.T @ design)
    return coef, np.sqrt(np.diag(cov)), sigma


def run(volume, acid_molar, acid_ml, base_molar, standards, absorbance, unknown):
    curves, ends, capacity = {}, {}, {}
    grid = np.arange(2.0, 12.01, 0.25)
    for name, pka in ACIDS.items():
        ph = curve(pka, volume, acid_molar, acid_ml, base_molar)
        found, slope = end_points(volume, ph)
        curves[name], ends[name] = ph, found
        capacity[name] = buffer_capacity(grid, pka, acid_molar)
        print("%-7s start %.3f, end points %s, steepest %.3f" % (
            name, ph[0], " ".join(f"{v:.2f}" for v in found) or "none", slope.max()))
    coef, errors, sigma = calibrate(standards, absorbance)
    concentration = (unknown - coef[1]) / coef[0]
    detection = 3.3 * sigma / coef[0]
    print(f"slope {coef[0]:.5f} +- {errors[0]:.5f}, detection limit {detection:.4f}")
    with open("curves.pkl", "wb") as handle:
        pickle.dump({k: v.round(6) for k, v in curves.items()}, handle, protocol=4)
    return {
        "curves": curves,
        "end_points": ends,
        "capacity": capacity,
        "fit": coef,
        "errors": errors,
        "concentration": concentration,
        "detection": detection,
    }
