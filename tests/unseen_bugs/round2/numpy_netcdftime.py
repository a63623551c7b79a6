"""Calendar dates of Julian days, as arrays of the fields, in one of three calendars.

https://github.com/Unidata/netcdf4-python/issues/321
"""
import numpy as np


def _calendar_fields(Z, calendar):
    """Year, month and day of integer Julian days."""
    if calendar in ("standard", "gregorian"):
        alpha = ((Z - 1867216.0) - 0.25) / 36524.25
        alpha = np.floor(alpha).astype(np.int64)
        A = np.where(Z < 2299161, Z, Z + 1 + alpha - np.floor(0.25 * alpha).astype(np.int64))
    elif calendar == "proleptic_gregorian":
        alpha = np.floor(((Z - 1867216.0) - 0.25) / 36524.25).astype(np.int64)
        A = Z + 1 + alpha - np.floor(0.25 * alpha).astype(np.int64)
    elif calendar == "julian":
        A = Z
    else:
        raise ValueError("unknown calendar, must be one of julian, standard, gregorian")
    B = A + 1524
    C = np.floor(6680. + ((B - 2439870.) - 122.1) / 365.25).astype(np.int64)
    D = np.floor(365.25 * C).astype(np.int64)
    E = np.floor((B - D) / 30.6001).astype(np.int64)
    day = B - D - np.floor(30.6001 * E).astype(np.int64)
    month = np.where(E < 14, E - 1, E - 13)
    year = np.where(month > 2, C - 4716, C - 4715)
    return year, month, day


def DateFromJulianDay(JD, calendar="standard"):
    JD = np.atleast_1d(JD)
    julian = JD + 0.5
    Z = np.floor(julian)
    F = julian - Z
    year, month, day = _calendar_fields(Z.astype(np.int64), calendar)

    # a little beyond the resolution, so that whole units are not missed
    eps = np.maximum(1e-12 * np.abs(Z), 1e-12)
    hour = np.clip((F * 24. + eps).astype(np.int64), 0, 23)
    F = F - hour / 24.
    minute = np.clip((F * 1440. + eps).astype(np.int64), 0, 59)
    second = np.clip((F - minute / 1440.) * 86400., 0, None)
    second = second.astype(np.int32)
    microsecond = ((second - np.int32(second)) * 1e6).astype(np.int32)
    return {"year": year, "month": month, "day": day, "hour": hour, "minute": minute,
            "second": second, "microsecond": microsecond}


class utime:
    def __init__(self, origin, units, calendar="standard"):
        self.origin, self.calendar = origin, calendar
        self.factor = {"days": 1.0, "hours": 1 / 24., "seconds": 1 / 86400.}[units]

    def num2date(self, values):
        return DateFromJulianDay(self.origin + values * self.factor, self.calendar)


def main(times):
    date = utime(0.0, "days", "proleptic_gregorian").num2date(times)
    seconds = date["minute"] * 60 + date["second"] + date["microsecond"] * 1e-6
    return date["year"], date["month"], date["day"], date["hour"], seconds


def inputs():
    return (np.array([2400000.50071, 2382262.1771992, 2457026.75, 2451545.000004]),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
