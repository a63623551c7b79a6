"""Historical supernovae: ages at a common epoch and brightness order."""
import numpy as np

EPOCH = np.datetime64("2000-01-01T12:00:00", "ns")
JULIAN_YEAR = np.timedelta64(31_557_600, "s")


def make_inputs():
    seen = np.array(
        ["1006-05-01", "1054-07-04", "1181-08-06", "1572-11-11",
         "1604-10-09", "1885-08-20", "1987-02-24", "1993-03-28"],
        dtype="datetime64[D]",
    )
    magnitude = np.array([-7.5, -6.0, 0.0, -4.0, -2.5, 5.85, 2.9, 10.8])
    return seen, magnitude


def ages(seen):
    stamps = seen.astype(EPOCH.dtype)
    return (EPOCH - stamps) / JULIAN_YEAR


def run(seen, magnitude):
    age = ages(seen)
    order = np.argsort(magnitude)
    month = (seen.astype("M8[M]").astype(int) % 12) + 1
    np.savetxt("ages.txt", np.column_stack([age, magnitude]), fmt="%.6f")
    return {
        "age_years": age,
        "brightest_first": order,
        "month": month,
        "flux_ratio": 10.0 ** (-0.4 * (magnitude - magnitude.max())),
    }


ANSWER = {
    "line": 19,
    "fix_line": 4,
    "outputs": {
        "age_years": {"differ": 5},
        "brightest_first": {"differ": 0},
        "month": {"differ": 0},
        "flux_ratio": {"differ": 0},
    },
    "why": "datetime64[ns] reaches only from 1678 to 2262, earlier dates wrap",
}
