"""Keeps times as integer counts of a base unit, and returns the sum, the mean and the
product of a series of times, in its own unit.

https://github.com/nipy/nitime/issues/93
"""
import numpy as np

time_unit_conversion = {
    "ps": 1,
    "ns": 10 ** 3,
    "us": 10 ** 6,
    "ms": 10 ** 9,
    "s": 10 ** 12,
    None: 10 ** 12,
    "m": 60 * 10 ** 12,
    "h": 3600 * 10 ** 12,
}


class TimeArray(np.ndarray):
    """Base class for time representations; the data are in picoseconds."""

    def __new__(cls, data, time_unit=None):
        if time_unit not in time_unit_conversion:
            raise ValueError("Invalid time unit %s" % time_unit)
        conv_fac = time_unit_conversion[time_unit]
        data_arr = np.asarray(data)
        if issubclass(data_arr.dtype.type, np.integer):
            time = data_arr.astype(np.int64) * conv_fac
        else:
            time = (data_arr * conv_fac).round().astype(np.int64)
        time = np.asarray(time).view(cls)
        time.time_unit = "s" if time_unit is None else time_unit
        time._conversion_factor = conv_fac
        return time

    def __array_finalize__(self, obj):
        self.time_unit = getattr(obj, "time_unit", "s")
        self._conversion_factor = getattr(obj, "_conversion_factor",
                                          time_unit_conversion[self.time_unit])

    def convert_unit(self, time_unit):
        self.time_unit = time_unit
        self._conversion_factor = time_unit_conversion[time_unit]

    def in_unit(self):
        return np.asarray(self) / float(self._conversion_factor)


def summary(times):
    factor = float(times._conversion_factor)
    total = np.asarray(times.sum()) / factor
    mean = np.asarray(times).mean() / factor
    product = np.asarray(times.prod()) / factor
    return {"sum": total, "mean": mean, "prod": product}


def main(values):
    a = TimeArray(values, time_unit="s")
    stats = summary(a)
    return np.array([stats[k] for k in ("sum", "mean", "prod")])


def inputs():
    return (np.array([-1.0, 1.5, 2.0, 3.0]),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
