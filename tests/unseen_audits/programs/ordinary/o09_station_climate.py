"""Hourly station records: parsing, gaps, daily extremes, dew point, wind rose, degree days."""
import io

import numpy as np

STATIONS = {"KLO": 432.0, "BAS": 316.0, "SMA": 556.0}


def make_inputs():
    rng = np.random.default_rng(909090)
    start = np.datetime64("2022-02-20T00")
    lines = ["station,time,temp_c,rh,wind_ms,dir_deg,rain_mm"]
    for name, height in STATIONS.items():
        for hour in range(24 * 12):
            stamp = start + np.timedelta64(hour, "h")
            temp = 4.0 - 0.0065 * (height - 400) + 5.0 * np.sin((hour - 9) / 24 * 2 * np.pi) + rng.normal(0, 1.4)
            humid = np.clip(78 - 3.0 * (temp - 4.0) + rng.normal(0, 5), 15, 100)
            wind = rng.weibull(1.8) * 3.4
            rain = rng.exponential(1.2) if rng.random() < 0.12 else 0.0
            shown = "" if rng.random() < 0.03 else f"{temp:.1f}"
            lines.append(f"{name},{stamp},{shown},{humid:.0f},{wind:.1f},{rng.integers(0, 360)},{rain:.1f}")
    return ("\n".join(lines),)


def parse(text):
    table = np.genfromtxt(
        io.StringIO(text), delimiter=",", skip_header=1,
        dtype=[("station", "U3"), ("time", "M8[h]"), ("temp", "f4"), ("rh", "i2"),
               ("wind", "f4"), ("dir", "i2"), ("rain", "f4")],
        missing_values="", filling_values={2: np.nan}, encoding="utf-8",
    )
    return np.sort(table, order=["station", "time"])


def dew_point(temp, rh):
    """Magnus formula over water."""
    t = np.asarray(temp, dtype=np.float64)
    gamma = np.log(rh / 100.0) + 17.62 * t / (243.12 + t)
    return 243.12 * gamma / (17.62 - gamma)


def fill_gaps(temp):
    """Linear interpolation over missing hours."""
    hours = np.arange(temp.size)
    known = ~np.isnan(temp)
    return np.interp(hours, hours[known], temp[known]), int((~known).sum())


def daily(values, times, func):
    days = times.astype("M8[D]")
    names, first = np.unique(days, return_index=True)
    return names, func.reduceat(values, first)


def wind_rose(direction, speed, sectors=8):
    width = 360.0 / sectors
    sector = np.floor((direction + width / 2.0) / width).astype(np.intp) % sectors
    calm = speed < 0.5
    table, _, _ = np.histogram2d(
        sector[~calm], speed[~calm],
        bins=[np.arange(sectors + 1) - 0.5, [0.5, 2.0, 4.0, 8.0, 30.0]],
    )
    return table, int(calm.sum())


def mean_direction(direction, speed):
    angle = np.radians(direction.astype(np.float64))
    u = -(speed * np.sin(angle)).mean()
    v = -(speed * np.cos(angle)).mean()
    return float(np.degrees(np.arctan2(-u, -v)) % 360.0), float(np.hypot(u, v))


def run(text):
    table = parse(text)
    result = {}
    for name in np.unique(table["station"]):
        rows = table[table["station"] == name]
        temp, missing = fill_gaps(rows["temp"])
        days, warmest = daily(temp, rows["time"], np.maximum)
        _, coldest = daily(temp, rows["time"], np.minimum)
        _, rain = daily(rows["rain"].astype(np.float64), rows["time"], np.add)
        rose, calm = wind_rose(rows["dir"], rows["wind"])
        direction, vector = mean_direction(rows["dir"], rows["wind"])
        masked = np.ma.masked_invalid(rows["temp"])
        result[str(name)] = {
            "days": days,
            "range": warmest - coldest,
            "rain": rain,
            "wet_days": int(np.count_nonzero(rain >= 1.0)),
            "heating_degree_days": float(np.clip(18.0 - (warmest + coldest) / 2.0, 0.0, None).sum()),
            "dew_point": dew_point(temp, rows["rh"])[::24],
            "rose": rose,
            "calm": calm,
            "vector_wind": vector,
            "mean_known": float(masked.mean(dtype=np.float64)),
            "missing": missing,
        }
        print(f"{name}: {rain.sum():6.1f} mm, wind from {direction:5.1f}, {missing} gaps")
        np.savetxt(f"{name}.txt", np.column_stack([coldest, warmest, rain]), fmt="%7.2f")
    return result
