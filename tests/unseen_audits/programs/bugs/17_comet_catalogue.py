"""Gaps between recorded apparitions in a catalogue of historical comets."""
import numpy as np


def make_inputs():
    days = ["1456-06-09", "1531-08-26", "1577-11-13", "1607-10-27", "1618-12-08",
            "1664-12-04", "1680-11-14", "1682-09-15", "1744-03-01", "1758-12-25",
            "1811-09-12", "1835-11-16", "1858-09-30", "1882-09-17", "1910-04-20",
            "1965-10-21", "1986-02-09", "1997-04-01"]
    return (np.array(days, dtype="datetime64[D]"),)


def run(dates):
    # everything downstream works with nanosecond stamps, like pandas
    stamp = dates.astype("datetime64[ns]")
    year = stamp.astype("datetime64[Y]").astype(int) + 1970
    gap = np.diff(stamp) / np.timedelta64(1, "D")

    century = (year - 1) // 100 + 1
    labels, per_century = np.unique(century, return_counts=True)
    print("apparitions:", dates.size)
    return {
        "year": year.tolist(),
        "gap_days": gap.tolist(),
        "longest": float(gap.max()),
        "in_20th_century": int(per_century[labels == 20].sum()),
    }


def exact(dates):
    import datetime
    d = [datetime.date.fromisoformat(str(v)) for v in dates]
    gaps = [float((b - a).days) for a, b in zip(d, d[1:])]
    return ([v.year for v in d], gaps, [max(gaps)],
            sum(1 for v in d if 1901 <= v.year <= 2000), len(d))


ANSWER = {
    "line": 15,
    "kind": "wrap",
    "operation": "datetime64[D] -> datetime64[ns]: dates before 1677 do not fit in 64-bit nanoseconds and wrap by 2**64 ns",
    "outputs": {
        "year (dict entry)": {"size": 18, "differ": 6},
        "gap_days (dict entry)": {"size": 17, "differ": 0},
        "longest (dict entry)": {"size": 1, "differ": 0},
        "in_20th_century (dict entry)": {"size": 1, "differ": 0},
        "apparitions (printed)": {"size": 1, "differ": 0},
    },
    "fix": 'stamp = dates.astype("datetime64[s]")',
}
