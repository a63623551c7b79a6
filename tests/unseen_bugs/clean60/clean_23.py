"""Unix timestamps (int64 seconds) to calendar fields, weekday counts and gaps."""
import numpy as np

DAY = 86400


def civil_from_days(z):
    """Days since 1970-01-01 to (year, month, day), integer arithmetic only."""
    z = z + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    day = doy - (153 * mp + 2) // 5 + 1
    month = np.where(mp < 10, mp + 3, mp - 9)
    year = yoe + era * 400 + (month <= 2)
    return year, month, day


def main(stamps):
    days, secs = np.divmod(stamps, DAY)
    year, month, day = civil_from_days(days)
    hour = secs // 3600
    weekday = (days + 3) % 7          # 1970-01-01 was a Thursday; Monday is 0
    per_weekday = np.bincount(weekday, minlength=7)
    gaps = np.diff(np.sort(stamps))
    busy_share = np.mean((hour >= 9) & (hour < 17))
    return year, month, day, weekday, per_weekday, gaps, busy_share


def inputs():
    rng = np.random.default_rng(16)
    return (rng.integers(0, 2_000_000_000, size=40, dtype=np.int64),)
