"""Array code that others have written for any namespace of the Array API, and its results on one.

`python -m tests.runtime.array_api.array_code NAMESPACE` prints a JSON object: for each call the
difference from the same call on NumPy arrays, or null. A process of its own: scipy reads
SCIPY_ARRAY_API when imported.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import sys
import warnings

import numpy as np

_RNG = np.random.default_rng(7)

x, y = _RNG.standard_normal(30), _RNG.standard_normal(30)
positive = np.abs(x) + 0.1
table = _RNG.standard_normal((12, 4))
square = _RNG.standard_normal((4, 4))
definite = square @ square.T + 4 * np.eye(4)
image = _RNG.standard_normal((6, 8, 3)).astype(np.float32)
few = _RNG.integers(0, 5, 30)
classes, guesses = _RNG.integers(0, 3, 30), _RNG.integers(0, 3, 30)
chances = np.clip(np.abs(x) / 3, 0.01, 0.99)
gaps = np.where(x > 1, np.nan, x)
signal = np.sin(np.linspace(0, 20, 64)) + 0.1 * _RNG.standard_normal(64)
labels = _RNG.integers(0, 3, 12)
heights = np.abs(table[:, 0])

# For each function: its path, without the library; what follows a space tells calls apart.
SCIPY = {
    "stats.zscore": ((table,), {}),
    "stats.zscore nan": ((gaps,), {"nan_policy": "omit"}),
    "stats.skew": ((table,), {"axis": 0}),
    "stats.kurtosis": ((table,), {"axis": 1, "bias": False}),
    "stats.moment": ((x,), {"order": 3}),
    "stats.variation": ((positive,), {"ddof": 1}),
    "stats.sem": ((table,), {}),
    "stats.gmean": ((positive,), {}),
    "stats.hmean": ((positive,), {}),
    "stats.pmean": ((positive, 3), {}),
    "stats.kstat": ((x,), {"n": 3}),
    "stats.kstatvar": ((x,), {"n": 2}),
    "stats.tmean": ((x,), {"limits": (-1.0, 1.0)}),
    "stats.tvar": ((x,), {"limits": (-1.0, 1.0)}),
    "stats.tstd": ((x,), {"limits": (-1.0, 1.0)}),
    "stats.tmin": ((x,), {}),
    "stats.tmax": ((x,), {}),
    "stats.entropy": ((positive,), {}),
    "stats.entropy of two": ((positive, chances), {"base": 2}),
    "stats.ttest_1samp": ((x, 0.0), {}),
    "stats.ttest_ind": ((x, y), {"equal_var": False}),
    "stats.ttest_rel": ((x, y), {}),
    "stats.pearsonr": ((x, y), {}),
    "stats.linregress": ((x, y), {}),
    "stats.skewtest": ((x,), {}),
    "stats.kurtosistest": ((x,), {}),
    "stats.normaltest": ((x,), {}),
    "stats.jarque_bera": ((x,), {}),
    "stats.bartlett": ((x, y), {}),
    "stats.chisquare": ((positive,), {}),
    "stats.power_divergence": ((positive,), {"lambda_": "log-likelihood"}),
    "stats.combine_pvalues": ((chances,), {}),
    "stats.circmean": ((x,), {}),
    "stats.circvar": ((x,), {}),
    "stats.circstd": ((x,), {}),
    "stats.zmap": ((x, y), {}),
    "stats.trim_mean": ((x, 0.1), {}),
    "stats.iqr": ((x,), {}),
    "stats.quantile": ((x, np.array([0.1, 0.5, 0.9])), {}),
    "stats.rankdata": ((few,), {}),
    "stats.differential_entropy": ((x,), {}),
    "stats.gstd": ((positive,), {}),
    "stats.expectile": ((x,), {"alpha": 0.3}),
    "stats.lmoment": ((x,), {}),
    "stats.median_abs_deviation": ((x,), {}),
    "stats.false_discovery_control": ((chances,), {}),
    "special.logsumexp": ((table,), {"axis": 1}),
    "special.softmax": ((table,), {"axis": 1}),
    "special.log_softmax": ((table,), {"axis": 1}),
    "special.erf": ((x,), {}),
    "special.gammaln": ((positive,), {}),
    "special.ndtr": ((x,), {}),
    "special.ndtri": ((chances,), {}),
    "special.expit": ((x,), {}),
    "special.logit": ((chances,), {}),
    "special.xlogy": ((positive, chances), {}),
    "special.rel_entr": ((positive, chances), {}),
    "special.entr": ((positive,), {}),
    "special.i0": ((x,), {}),
    "special.chdtr": ((positive, chances), {}),
    "special.betainc": ((positive, positive, chances), {}),
    "fft.fft": ((x,), {}),
    "fft.irfft": ((np.fft.rfft(x),), {}),
    "fft.fftshift": ((x,), {}),
    "fft.fht": ((signal, 0.1, 0.5), {}),
    "integrate.trapezoid": ((positive, np.sort(x)), {}),
    "integrate.cumulative_trapezoid": ((positive,), {"dx": 0.1}),
    "integrate.simpson": ((positive,), {"dx": 0.1}),
    "integrate.cumulative_simpson": ((positive,), {"dx": 0.1}),
    "signal.detrend": ((signal,), {}),
    "signal.hilbert": ((signal,), {}),
    "signal.fftconvolve": ((signal, x), {}),
    "signal.convolve": ((signal, x), {}),
    "signal.correlate": ((signal, x), {}),
    "signal.oaconvolve": ((signal, x), {}),
    "signal.resample": ((signal, 30), {}),
    "signal.sosfilt": ((np.array([[1.0, 2, 1, 1, -0.5, 0.1]]), signal), {}),
    "signal.savgol_filter": ((signal, 5, 2), {}),
    "signal.bilinear": ((np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0])), {}),
    "signal.freqz": ((np.array([1.0, 2.0, 1.0]),), {}),
    "signal.zpk2tf": ((np.array([0.1, 0.2]), np.array([0.3, 0.4]), 2.0), {}),
    "ndimage.gaussian_filter": ((table, 1.0), {}),
    "ndimage.uniform_filter": ((table,), {}),
    "ndimage.sobel": ((table,), {}),
    "ndimage.center_of_mass": ((np.abs(table),), {}),
    "ndimage.shift": ((table, 0.5), {}),
    "ndimage.median_filter": ((table,), {"size": 3}),
    "linalg.det": ((definite,), {}),
    "cluster.vq.whiten": ((table,), {}),
    "cluster.vq.vq": ((table, table[:3]), {}),
    "cluster.hierarchy.linkage": ((table,), {}),
    "optimize.rosen": ((x[:5],), {}),
    "optimize.rosen_der": ((x[:5],), {}),
    "constants.convert_temperature": ((x, "Celsius", "Kelvin"), {}),
}
EXTRA = {
    "atleast_nd": ((x,), {"ndim": 3}),
    "cov": ((table,), {}),
    "create_diagonal": ((x[:4],), {}),
    "expand_dims": ((x,), {"axis": (0, 2)}),
    "isclose": ((x, y), {}),
    "kron": ((square, table[:2]), {}),
    "nunique": ((few,), {}),
    "one_hot": ((classes, 3), {}),
    "pad": ((x, 2), {"constant_values": 1.0}),
    "setdiff1d": ((few, classes), {}),
    "sinc": ((x,), {}),
    "argpartition": ((x, 3), {}),
    "partition": ((x, 3), {}),
    "union1d": ((few, classes), {}),
    "isin": ((few, classes), {}),
    "nan_to_num": ((gaps,), {}),
    "searchsorted": ((np.sort(x), y), {}),
    "angle": ((x + 1j * y,), {}),
    "broadcast_shapes": (((2, 1), (1, 3)), {}),
}
SKLEARN = {
    "metrics.accuracy_score": ((classes, guesses), {}),
    "metrics.zero_one_loss": ((classes, guesses), {}),
    "metrics.confusion_matrix": ((classes, guesses), {}),
    "metrics.f1_score": ((classes, guesses), {"average": "macro"}),
    "metrics.precision_score": ((classes, guesses), {"average": "micro"}),
    "metrics.recall_score": ((classes, guesses), {"average": "weighted"}),
    "metrics.jaccard_score": ((classes, guesses), {"average": "macro"}),
    "metrics.hamming_loss": ((classes, guesses), {}),
    "metrics.log_loss": (((classes > 0).astype(np.int64), chances), {}),
    "metrics.brier_score_loss": (((classes > 0).astype(np.int64), chances), {}),
    "metrics.r2_score": ((x, y), {}),
    "metrics.mean_squared_error": ((x, y), {}),
    "metrics.mean_absolute_error": ((x, y), {}),
    "metrics.mean_absolute_percentage_error": ((x, y), {}),
    "metrics.mean_squared_log_error": ((positive, chances), {}),
    "metrics.root_mean_squared_error": ((x, y), {}),
    "metrics.median_absolute_error": ((x, y), {}),
    "metrics.max_error": ((x, y), {}),
    "metrics.mean_pinball_loss": ((x, y), {}),
    "metrics.mean_tweedie_deviance": ((positive, chances), {}),
    "metrics.d2_tweedie_score": ((positive, chances), {}),
    "metrics.explained_variance_score": ((x, y), {}),
    "metrics.pairwise.cosine_similarity": ((table,), {}),
    "metrics.pairwise.euclidean_distances": ((table,), {}),
    "metrics.pairwise.linear_kernel": ((table,), {}),
    "metrics.pairwise.polynomial_kernel": ((table,), {}),
    "metrics.pairwise.rbf_kernel": ((table,), {}),
    "metrics.pairwise.sigmoid_kernel": ((table,), {}),
    "metrics.pairwise.chi2_kernel": ((np.abs(table),), {}),
    "metrics.pairwise.paired_euclidean_distances": ((table, table[::-1]), {}),
    "metrics.pairwise.paired_cosine_distances": ((table, table[::-1]), {}),
    "preprocessing.label_binarize": ((classes,), {"classes": [0, 1, 2]}),
    "utils.extmath.randomized_svd": (
        (table,),
        {"n_components": 2, "random_state": 0, "power_iteration_normalizer": "QR"},
    ),
}
EINOPS = {
    "array_api.rearrange h w c -> c h w": ((image, "h w c -> c h w"), {}),
    "array_api.rearrange (h a) (w b) c -> h w (a b c)": (
        (image, "(h a) (w b) c -> h w (a b c)"),
        {"a": 2, "b": 2},
    ),
    "array_api.reduce h w c -> c mean": ((image, "h w c -> c", "mean"), {}),
    "array_api.reduce (h a) w c -> h w c max": ((image, "(h a) w c -> h w c", "max"), {"a": 3}),
    "array_api.reduce prod": ((image, "h w c -> h", "prod"), {}),
    "array_api.repeat h w c -> h (w r) c": ((image, "h w c -> h (w r) c"), {"r": 2}),
    "array_api.pack": (([image, image[0]], "* c"), {}),
}
# For each estimator: its settings, and what it learns from besides the table.
ESTIMATORS = {
    "decomposition.PCA": ({"n_components": 2, "svd_solver": "full"}, None),
    "discriminant_analysis.LinearDiscriminantAnalysis": ({}, labels),
    "kernel_approximation.Nystroem": ({"n_components": 4, "random_state": 0}, None),
    "linear_model.LogisticRegression": ({}, labels),
    "linear_model.PoissonRegressor": ({}, heights),
    "linear_model.Ridge": ({"solver": "svd"}, heights),
    "linear_model.RidgeCV": ({}, heights),
    "mixture.GaussianMixture": (
        {"n_components": 2, "init_params": "random", "random_state": 0},
        None,
    ),
    "naive_bayes.GaussianNB": ({}, labels),
    "preprocessing.Binarizer": ({}, None),
    "preprocessing.MaxAbsScaler": ({}, None),
    "preprocessing.MinMaxScaler": ({}, None),
    "preprocessing.Normalizer": ({}, None),
    "preprocessing.PolynomialFeatures": ({}, None),
    "preprocessing.StandardScaler": ({}, None),
}


def _named(root, path):
    module, _, name = f"{root}.{path.split()[0]}".rpartition(".")
    return getattr(importlib.import_module(module), name)


def _function(root, path, args, settings):
    function = _named(root, path)
    return lambda given: function(*map(given, args), **settings)


def _estimator(path, settings, target):
    def results(given):
        estimator = _named("sklearn", path)(**settings)
        estimator.fit(*(given(learned) for learned in (table, target) if learned is not None))
        learned = {name: vars(estimator)[name] for name in vars(estimator) if name.endswith("_")}
        asked = estimator.transform if hasattr(estimator, "transform") else estimator.predict
        return [asked(given(table)), *map(learned.get, sorted(learned))]

    return results


def calls(root):
    """By name, the calls to make of one library: each takes what turns an array into another."""
    tables = {"scipy": SCIPY, "array_api_extra": EXTRA, "sklearn": SKLEARN, "einops": EINOPS}
    made = {f"{root}.{path}": _function(root, path, *call) for path, call in tables[root].items()}
    if root == "sklearn":
        made |= {f"{root}.{path}": _estimator(path, *fit) for path, fit in ESTIMATORS.items()}
    return made


ROOTS = ("scipy", "array_api_extra", "sklearn", "einops")
NAMES = {
    "scipy": [f"scipy.{path}" for path in SCIPY],
    "array_api_extra": [f"array_api_extra.{path}" for path in EXTRA],
    "sklearn": [f"sklearn.{path}" for path in (*SKLEARN, *ESTIMATORS)],
    "einops": [f"einops.{path}" for path in EINOPS],
}


def _given(xp, value):
    """The value with its NumPy arrays as those of `xp`."""
    if isinstance(value, np.ndarray):
        return xp.asarray(value)
    if isinstance(value, list | tuple) and any(isinstance(item, np.ndarray) for item in value):
        return type(value)(_given(xp, item) for item in value)
    return value


def _leaves(value):
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif hasattr(value, "statistic") and hasattr(value, "pvalue"):
        yield from (value.statistic, value.pvalue)
    elif isinstance(value, np.ndarray | np.generic | float | int) or hasattr(value, "shape"):
        yield value


def _compare(xp, expected, computed):
    expected, computed = list(_leaves(expected)), list(_leaves(computed))
    assert len(expected) == len(computed), f"{len(computed)} arrays, not {len(expected)}"
    assert expected, "no array to compare"
    for one, other in zip(expected, computed, strict=True):
        own = type(xp.asarray(0.0))
        assert not isinstance(one, np.ndarray) or isinstance(other, own), f"{type(other)}"
        array = np.asarray(other)
        assert array.dtype.kind == np.asarray(one).dtype.kind, f"{array.dtype}, not {one.dtype}"
        rtol = 1e-5 if np.asarray(one).dtype == np.float32 else 1e-9
        np.testing.assert_allclose(array, one, rtol=rtol, atol=1e-12)


def _outcome(xp, call):
    try:
        expected = call(lambda value: value)
        with _dispatching():
            _compare(xp, expected, call(lambda value: _given(xp, value)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _dispatching():
    if importlib.util.find_spec("sklearn") is None:
        return contextlib.nullcontext()
    return importlib.import_module("sklearn").config_context(array_api_dispatch=True)


def main(namespace, root):
    xp = importlib.import_module(namespace)
    warnings.simplefilter("ignore")
    return {name: _outcome(xp, call) for name, call in calls(root).items()}


if __name__ == "__main__":
    os.environ["SCIPY_ARRAY_API"] = "1"
    print(json.dumps(main(*sys.argv[1:]), indent=1))
