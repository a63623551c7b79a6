"""Takes two columns of an image as line scans and returns how much the first exceeds
the second, point by point.

https://github.com/sightmachine/SimpleCV/issues/354
"""
import operator

import numpy as np


class LineScan(list):
    """A one dimensional signal pulled from the intensity of pixels of an image."""

    def __init__(self, args, **kwargs):
        list.__init__(self, args)
        self.image = kwargs.get("image")
        self.row = kwargs.get("y")
        self.col = kwargs.get("x")
        self.channel = kwargs.get("channel", -1)
        self.pointLoc = kwargs.get("pointLoc")
        if self.pointLoc is None:
            self.pointLoc = list(zip(range(len(self)), range(len(self))))

    def _update(self, linescan):
        self.image = linescan.image
        self.row = linescan.row
        self.col = linescan.col
        self.channel = linescan.channel
        self.pointLoc = linescan.pointLoc

    def __sub__(self, other):
        retVal = LineScan(map(operator.sub, self, other))
        retVal._update(self)
        return retVal

    def __add__(self, other):
        retVal = LineScan(map(operator.add, self, other))
        retVal._update(self)
        return retVal

    def threshold(self, value):
        retVal = LineScan([p if p > value else 0 for p in self])
        retVal._update(self)
        return retVal


class Image:
    def __init__(self, pixels):
        self._rgb = pixels
        weights = np.array([0.299, 0.587, 0.114], np.float32)
        self._gray = np.rint(pixels @ weights).astype(np.uint8)

    def getLineScan(self, x=None, y=None, channel=-1):
        img = self._gray if channel == -1 else self._rgb[:, :, channel]
        if x is not None:
            return LineScan(img[:, x], image=self, x=x, channel=channel)
        if y is not None:
            return LineScan(img[y, :], image=self, y=y, channel=channel)
        raise ValueError("need x or y")


def main(pixels):
    img = Image(pixels)
    l1 = img.getLineScan(x=4)
    l2 = img.getLineScan(x=10)
    diff = l1 - l2
    return np.array(diff)


def inputs():
    rng = np.random.default_rng(1)
    return (rng.integers(0, 256, (16, 24, 3)).astype(np.uint8),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
