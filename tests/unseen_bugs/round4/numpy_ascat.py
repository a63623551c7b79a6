"""Reads records of a scatterometer product into arrays of generic names and marks missing values.

https://github.com/TUW-GEO/ascat/issues/65
"""
import numpy as np

int8_nan = np.iinfo(np.int8).min
uint8_nan = np.iinfo(np.uint8).max
int32_nan = np.iinfo(np.int32).min
float32_nan = -999999.0

RECORD = np.dtype([
    ("LATITUDE", ">i4"), ("LONGITUDE", ">i4"), ("SIGMA0", ">i4"), ("F_USABLE", "u1"),
    ("SWATH_INDICATOR", "u1"), ("AS_DES_PASS", "u1"), ("F_LAND", ">i2")])

FIELDS = [
    ("lat", "LATITUDE", np.float32, 1e-6),
    ("lon", "LONGITUDE", np.float32, 1e-6),
    ("sig", "SIGMA0", np.float32, 1e-6),
    ("f_usable", "F_USABLE", np.uint8, None),
    ("swath_indicator", "SWATH_INDICATOR", np.uint8, None),
    ("as_des_pass", "AS_DES_PASS", np.int8, None),
    ("f_land", "F_LAND", np.float32, 1e-3),
]

MISSING = [
    ("lat", float32_nan),
    ("lon", float32_nan),
    ("sig", float32_nan),
    ("f_usable", uint8_nan),
    ("swath_indicator", int8_nan),
    ("as_des_pass", int8_nan),
    ("f_land", float32_nan),
]


class EPSProduct:
    def __init__(self, buffer):
        self.mdr = np.frombuffer(buffer.tobytes(), dtype=RECORD)

    def scaled(self, name, dtype, factor):
        raw = self.mdr[name]
        if factor is None:
            return raw.astype(dtype)
        return (raw * factor).astype(dtype)


def to_generic(product):
    return {new: product.scaled(old, dtype, factor) for new, old, dtype, factor in FIELDS}


def mask_missing(data, valid):
    invalid = ~valid
    for var_name, nan_val in MISSING:
        data[var_name][invalid] = nan_val
    return data


def read_l1b(buffer):
    product = EPSProduct(buffer)
    data = to_generic(product)
    valid = product.mdr["SIGMA0"] != int32_nan
    data = mask_missing(data, valid)
    beams = np.count_nonzero(valid)
    return data, beams


def main(buffer):
    data, beams = read_l1b(buffer)
    return tuple(data[name] for name, _ in MISSING) + (np.array([beams]),)


def inputs():
    rng = np.random.default_rng(6)
    records = np.zeros(12, RECORD)
    records["LATITUDE"] = rng.integers(-80000000, 80000000, 12)
    records["LONGITUDE"] = rng.integers(-170000000, 170000000, 12)
    records["SIGMA0"] = rng.integers(-20000000, -1000000, 12)
    records["SIGMA0"][[2, 7]] = int32_nan
    records["F_USABLE"] = rng.integers(0, 3, 12)
    records["SWATH_INDICATOR"] = rng.integers(0, 2, 12)
    records["AS_DES_PASS"] = rng.integers(0, 2, 12)
    records["F_LAND"] = rng.integers(0, 1001, 12)
    return (np.frombuffer(records.tobytes(), np.uint8),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
