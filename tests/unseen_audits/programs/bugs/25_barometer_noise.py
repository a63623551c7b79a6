import numpy as np


def make_inputs():
    """Pressure (Pa) of five barometers, as stored by the logger in single precision."""
    rng = np.random.default_rng(1013)
    sigma = np.array([1.5, 4.0, 12.0, 0.6, 900.0])
    p = 101325.0 + rng.normal(0, 1, size=(300, 5)) * sigma
    return (p.astype(np.float32),)


def run(pressure):
    """Variance, noise and standard error per instrument, one pass over the samples."""
    n = pressure.shape[0]
    ok = np.isfinite(pressure).all(axis=1)
    pressure = pressure[ok]

    variance = (pressure * pressure).mean(axis=0) - pressure.mean(axis=0) ** 2
    noise = np.sqrt(np.abs(variance))
    error = noise / np.sqrt(n)

    report = {f"baro{i}": (float(v), float(s), float(e))
              for i, (v, s, e) in enumerate(zip(variance, noise, error))}
    report["range"] = float(np.ptp(pressure))
    return report


def exact(pressure):
    from fractions import Fraction
    n = pressure.shape[0]
    var = []
    for col in pressure.T:
        x = [Fraction(float(v)) for v in col]
        m = sum(x) / n
        var.append(float(sum((v - m) ** 2 for v in x) / n))
    sd = [v ** 0.5 for v in var]
    flat = [float(v) for v in pressure.ravel()]
    return var, sd, [s / n ** 0.5 for s in sd], [max(flat) - min(flat)]


ANSWER = {
    "line": 18,
    "kind": "rounding",
    "operation": "difference of two float32 numbers near 1e10 (spacing 1024) cancels the variance",
    "outputs": {
        "variance (dict entries)": {"size": 5, "differ": 5},
        "noise (dict entries)": {"size": 5, "differ": 5},
        "error (dict entries)": {"size": 5, "differ": 5},
        "range (dict entry)": {"size": 1, "differ": 0},
    },
    "fix": "variance = pressure.var(axis=0, dtype=np.float64)",
}
