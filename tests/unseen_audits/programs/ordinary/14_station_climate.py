"""Climate table of a weather station from daily records held in a structured array.

Reads a CSV text, flags and removes impossible values, forms monthly normals and anomalies, finds heat waves
and dry spells, fits a trend with Sen's slope and writes the monthly table.
"""
# outputs: 65
# (3 returned, 60 numbers printed, 2 arrays written)
import io

import numpy as np

RECORD = [("date", "datetime64[D]"), ("tmin", "f4"), ("tmax", "f4"), ("rain", "f4"), ("flag", "i1")]


def csv_text():
    rng = np.random.default_rng(1780)
    dates = np.arange(np.datetime64("2018-01-01"), np.datetime64("2021-01-01"))
    doy = (dates - dates.astype("datetime64[Y]")).astype(int)
    season = 9.5 - 9.0 * np.cos(2 * np.pi * (doy - 18) / 365.25)
    noise = np.convolve(rng.normal(0, 3.0, dates.size + 6), np.ones(7) / 7 ** 0.75, "valid")
    mean = season + noise + 0.0004 * np.arange(dates.size)
    spread = 4 + 2.5 * rng.random(dates.size)
    wet = rng.random(dates.size) < 0.36
    rain = np.where(wet, rng.gamma(0.8, 6.5, dates.size), 0.0)
    rows = ["date,tmin,tmax,rain"]
    for d, m, s, r in zip(dates, mean, spread, rain):
        low, high = f"{m - s:.1f}", f"{m + s:.1f}"
        if rng.random() < 0.012:
            high = ""
        if rng.random() < 0.004:
            low = "-99.9"
        rows.append(f"{d},{low},{high},{r:.1f}")
    return "\n".join(rows)


def read(text):
    raw = np.genfromtxt(io.StringIO(text), delimiter=",", skip_header=1, dtype=None,
                        encoding="utf-8", names=["date", "tmin", "tmax", "rain"])
    rec = np.zeros(raw.size, dtype=RECORD)
    rec["date"] = raw["date"].astype("datetime64[D]")
    for name in ("tmin", "tmax", "rain"):
        rec[name] = raw[name]
    return rec


def quality_control(rec):
    rec["flag"][rec["tmin"] < -60] |= 1
    rec["flag"][np.isnan(rec["tmax"])] |= 2
    rec["flag"][rec["tmax"] < rec["tmin"]] |= 4
    clean = rec.copy()
    clean["tmin"][(rec["flag"] & 1) > 0] = np.nan
    return clean, np.array([np.count_nonzero(rec["flag"] & b) for b in (1, 2, 4)])


def runs(condition):
    """Length of each run of True and the index it starts at."""
    c = np.concatenate(([0], condition.astype(int), [0]))
    step = np.diff(c)
    begin, end = np.where(step > 0)[0], np.where(step < 0)[0]
    return end - begin, begin


def monthly(rec, mean):
    month = rec["date"].astype("datetime64[M]")
    months = np.unique(month)
    t = np.array([np.nanmean(mean[month == m], dtype=np.float64) for m in months])
    r = np.array([rec["rain"][month == m].sum(dtype=np.float64) for m in months])
    return months, t, r


def sen_slope(y):
    i, j = np.triu_indices(y.size, 1)
    slopes = (y[j] - y[i]) / (j - i)
    lower, mid, upper = np.percentile(slopes, [5, 50, 95])
    return mid, lower, upper


def main():
    rec, problems = quality_control(read(csv_text()))
    mean = 0.5 * (rec["tmin"] + rec["tmax"])
    months, t, r = monthly(rec, mean)
    calendar = months.astype(int) % 12
    normal = np.array([t[calendar == k].mean() for k in range(12)])
    rain_normal = np.array([r[calendar == k].mean() for k in range(12)])
    anomaly = t - normal[calendar]

    print("days", rec.size, "problems", *problems, "missing means", int(np.isnan(mean).sum()))
    print("month   temp    rain   wettest day")
    calendar_day = rec["date"].astype("datetime64[M]").astype(int) % 12
    for k in range(12):
        print(f"{k + 1:5d} {normal[k]:6.2f} {rain_normal[k]:7.1f} {rec['rain'][calendar_day == k].max():9.1f}")

    hot = rec["tmax"] > np.nanpercentile(rec["tmax"], 92)
    length, begin = runs(hot)
    dry_length, dry_begin = runs(rec["rain"] < 0.2)
    longest = dry_length.argmax()
    print("heat waves of three days or more:", np.sum(length >= 3), "longest", length.max())
    print("longest dry spell", dry_length[longest], "days from", rec["date"][dry_begin[longest]])
    slope, low, high = sen_slope(anomaly)
    print(f"trend {12 * slope:.4f} per year ({12 * low:.4f} to {12 * high:.4f})")

    np.savetxt("monthly.csv", np.column_stack([calendar + 1, t, r, anomaly]), delimiter=",", fmt="%.3f")
    np.save("clean.npy", rec)
    degree_days = np.nansum(np.clip(mean.astype(float) - 10.0, 0, None))
    return normal, rain_normal, degree_days


if __name__ == "__main__":
    main()
