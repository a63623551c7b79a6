"""Lazy arithmetic on raster layers, evaluated in blocks; returns the total over a layer
of area multiplied by occupancy.

https://github.com/quantifyearth/yirgacheffe/pull/8
"""
import numpy

XSTEP = 96
YSTEP = 64


class LayerMathMixin:
    def __add__(self, other):
        return LayerOperation(self, "__add__", other)

    def __mul__(self, other):
        return LayerOperation(self, "__mul__", other)

    def numpy_apply(self, func, other=None):
        return LayerOperation(self, func, other)

    def sum(self):
        return LayerOperation(self).sum()


class LayerConstant:
    def __init__(self, val):
        self.val = val

    def _eval(self, _xoffset, _yoffset, _xstep, _ystep):
        return self.val


class RasterLayer(LayerMathMixin):
    def __init__(self, data, name=None):
        self._dataset = data
        self.name = name
        self.window = data.shape

    def _eval(self, xoffset, yoffset, xstep, ystep):
        return self._dataset[yoffset:yoffset + ystep, xoffset:xoffset + xstep]


class LayerOperation(LayerMathMixin):
    def __init__(self, lhs, operator=None, rhs=None):
        self.lhs = lhs
        self.operator = operator
        self.rhs = LayerConstant(rhs) if isinstance(rhs, (float, int)) else rhs

    @property
    def window(self):
        return self.lhs.window

    def _eval(self, *block):
        lhs = self.lhs._eval(*block)
        if self.operator is None:
            return lhs
        operator = self.operator
        if isinstance(operator, str):
            return getattr(lhs, operator)(self.rhs._eval(*block))
        if self.rhs is None:
            return operator(lhs)
        return operator(lhs, self.rhs._eval(*block))

    def sum(self):
        total = 0.0
        ysize, xsize = self.window
        for yoffset in range(0, ysize, YSTEP):
            for xoffset in range(0, xsize, XSTEP):
                ystep = min(YSTEP, ysize - yoffset)
                xstep = min(XSTEP, xsize - xoffset)
                chunk = self._eval(xoffset, yoffset, xstep, ystep)
                total += numpy.sum(chunk)
        return total


def main(area, habitat):
    area_layer = RasterLayer(area, "area per pixel")
    habitat_layer = RasterLayer(habitat, "habitat")
    occupied = habitat_layer.numpy_apply(lambda chunk: numpy.clip(chunk, 0, 1))
    aoh = occupied * area_layer
    return numpy.asarray(aoh.sum())


def inputs():
    rng = numpy.random.default_rng(2)
    lat = numpy.linspace(-1.2, 1.2, 500, dtype=numpy.float32)[:, None]
    area = numpy.broadcast_to(numpy.cos(lat) * numpy.float32(12364.5), (500, 700))
    return numpy.ascontiguousarray(area), rng.random((500, 700), dtype=numpy.float32) * 1.3


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
