"""Reads calibrated slices of stored arrays: the raw values go through the polynomial that is
kept with the array.

https://github.com/G-Node/nixpy/issues/273
"""
import numpy as np


def apply_polynomial(coefficients, origin, data):
    if origin:
        data[:] = data - origin
    value = np.zeros(data.shape)
    for c in reversed(coefficients):
        value = value * data + c
    data[:] = value


class DataSet:
    def __init__(self, store):
        self._store = store

    @property
    def shape(self):
        return self._store.shape

    @property
    def dtype(self):
        return self._store.dtype

    def __getitem__(self, index):
        start, stop, _ = index.indices(len(self._store))
        count, offset = (stop - start,) + self.shape[1:], start
        raw = np.empty(count, dtype=self.dtype)
        self._read_data(raw, count, offset)
        return raw

    def _read_data(self, data, count, offset):
        data[:] = self._store[offset:offset + count[0]]


class DataArray(DataSet):
    def __init__(self, store, unit=None):
        super().__init__(store)
        self.polynom_coefficients = ()
        self.expansion_origin = 0.0
        self.unit = unit

    def _read_data(self, data, count, offset):
        coeff = self.polynom_coefficients
        origin = self.expansion_origin
        super()._read_data(data, count, offset)
        if len(coeff) or origin:
            apply_polynomial(coeff or (0.0, 1.0), origin, data)


class Block:
    def __init__(self):
        self.data_arrays = {}

    def create_data_array(self, name, data, coefficients=(), unit=None):
        array = DataArray(data, unit)
        array.polynom_coefficients = tuple(coefficients)
        self.data_arrays[name] = array
        return array


def main(counts, trace):
    block = Block()
    block.create_data_array("adc", counts, (0.0, 0.1), "mV")
    block.create_data_array("trace", trace, (0.5, 2.0), "pA")
    block.create_data_array("labels", counts)
    adc, current = block.data_arrays["adc"][1:], block.data_arrays["trace"][1:]
    labels = block.data_arrays["labels"][1:]
    return adc, current, labels


def inputs():
    rng = np.random.default_rng(3)
    return rng.integers(-300, 300, size=12), rng.normal(size=12)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
