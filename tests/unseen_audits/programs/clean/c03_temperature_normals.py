"""Monthly normals and anomalies of a long hourly temperature series in kelvin."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(303)
    hour = np.arange(12 * 720)
    season = 284.0 - 11.0 * np.cos(2 * np.pi * hour / hour.size)
    daily = 4.0 * np.sin(2 * np.pi * hour / 24.0)
    kelvin = (season + daily + rng.normal(0.0, 1.5, hour.size)).astype(np.float32)
    return (kelvin,)


def running_total(values):
    total = 0.0
    for value in values:
        total += float(value)
    return total


def run(kelvin):
    months = kelvin.reshape(12, 720)
    normal = months.mean(axis=1, dtype=np.float64)
    spread = months.std(axis=1, dtype=np.float64)
    celsius = normal - 273.15
    degree_hours = np.cumsum(kelvin, dtype=np.float64)[719::720]
    mean_all = running_total(kelvin) / kelvin.size
    print("annual mean %.4f K, warmest month %d" % (mean_all, normal.argmax() + 1))
    return {
        "normal": normal,
        "celsius": celsius,
        "spread": spread,
        "degree_hours": degree_hours,
        "mean_all": mean_all,
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "normal": {"differ": 0},
        "celsius": {"differ": 0},
        "spread": {"differ": 0},
        "degree_hours": {"differ": 0},
        "mean_all": {"differ": 0},
    },
    "why": "all long sums of the float32 series are accumulated in float64",
}
