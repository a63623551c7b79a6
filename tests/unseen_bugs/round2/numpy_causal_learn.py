"""The chi-square test of X and Y given many discrete variables S, from tables of counts.

https://github.com/py-why/causal-learn/issues/197
"""
import numpy as np


def _Fill3DCountTableByBincount(dataSXY, cardSXY):
    cardX, cardY = cardSXY[-2:]
    cardS = np.prod(cardSXY[:-2])
    cardCumProd = np.ones_like(cardSXY)
    cardCumProd[:-1] = np.cumprod(cardSXY[1:][::-1])[::-1]
    SxyIndexed = np.dot(cardCumProd[None], dataSXY)[0]
    SxyJointCounts = np.bincount(SxyIndexed, minlength=cardS * cardX * cardY)
    SxyJointCounts = SxyJointCounts.reshape((cardS, cardX, cardY))
    SMarginalCounts = SxyJointCounts.sum(axis=(1, 2))
    nonzero = SMarginalCounts != 0
    return SxyJointCounts[nonzero], SMarginalCounts[nonzero]


def _Fill3DCountTableByUnique(dataSXY, cardSXY):
    cardX, cardY = cardSXY[-2:]
    cardSs = cardSXY[:-2]
    cardSsCumProd = np.ones_like(cardSs)
    cardSsCumProd[:-1] = np.cumprod(cardSs[1:][::-1])[::-1]
    SIndexed = np.dot(cardSsCumProd[None], dataSXY[:-2])[0]
    uniqSIndices, inverseSIndices = np.unique(SIndexed, return_inverse=True)
    rows = [inverseSIndices, dataSXY[-2], dataSXY[-1]]
    table = np.zeros((len(uniqSIndices), cardX, cardY), dtype=np.int64)
    np.add.at(table, tuple(rows), 1)
    return table, table.sum(axis=(1, 2))


def _Fill3DCountTable(dataSXY, cardSXY):
    # the dense table is faster while it is small
    if np.prod(cardSXY) < 1e5:
        return _Fill3DCountTableByBincount(dataSXY, cardSXY)
    return _Fill3DCountTableByUnique(dataSXY, cardSXY)


def _CalculatePValue(counts, marginal):
    rows = counts.sum(axis=2, keepdims=True)
    columns = counts.sum(axis=1, keepdims=True)
    expected = rows * columns / marginal[:, None, None]
    zero = expected == 0
    statistic = ((counts - expected) ** 2 / np.where(zero, 1, expected))[~zero].sum()
    dof = ((np.count_nonzero(rows, axis=1) - 1) * (np.count_nonzero(columns, axis=2) - 1)).sum()
    return statistic, dof


class Chisq:
    def __init__(self, data):
        uniques = [np.unique(column, return_inverse=True) for column in data.T]
        self.data = np.array([inverse for _, inverse in uniques])
        self.cardinalities = np.array([len(values) for values, _ in uniques])

    def __call__(self, X, Y, condition_set):
        indexs = list(condition_set) + [X, Y]
        dataSXY = self.data[indexs]
        cardSXY = self.cardinalities[indexs]
        return _CalculatePValue(*_Fill3DCountTable(dataSXY, cardSXY))


def main(data):
    test = Chisq(data)
    results = [test(0, 1, range(2, k)) for k in (3, 5, data.shape[1])]
    return np.array([s for s, _ in results]), np.array([d for _, d in results])


def inputs():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 4, size=60)
    shifts = rng.integers(0, 10, size=(60, 19))
    data = np.where(rng.random((60, 19)) < 0.3, shifts, codes[:, None] * 2)
    data[:10] = np.arange(10)[:, None]
    return (data,)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
