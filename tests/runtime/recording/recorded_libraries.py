"""Functions that libraries have written in NumPy, by their paths, with arguments to record them on.

Those of NumPy always run; those of scipy and scikit-learn where these are installed.
"""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np

_RNG = np.random.default_rng(3)


def _floats(*shape):
    return _RNG.standard_normal(shape).astype(np.float32)


X, Y = _floats(8, 3), _floats(5, 3)
a, b = _floats(12), _floats(12)
positive, more = np.abs(a) + np.float32(1), np.abs(b) + np.float32(1)
few = _RNG.integers(0, 5, 12).astype(np.int16)
classes, guesses = _RNG.integers(0, 3, 20), _RNG.integers(0, 3, 20)
binary = (classes > 0).astype(int)
chances = np.clip(np.abs(_floats(20)) / 3, 0.01, 0.99)
points = _floats(20, 3)

NUMPY = {
    "average": (a, 0, positive),
    "convolve": (a, b),
    "correlate": (a, few, "full"),
    "corrcoef": (X,),
    "cov": (X,),
    "cross": (X[:5], Y),
    "diff": (few,),
    "ediff1d": (few,),
    "gradient": (few,),
    "histogram": (a,),
    "i0": (a,),
    "insert": (a, 3, 7),
    "isclose": (a, b),
    "kron": (X[:2], Y[:2].astype(np.float64)),
    "linalg.inv": (X[:3],),
    "linalg.matrix_power": (X[:3], 5),
    "linalg.norm": (X,),
    "logspace": (a[0], 1, 5),
    "median": (X,),
    "meshgrid": (a[:3], few[:2]),
    "nan_to_num": (a,),
    "nanmedian": (X,),
    "nanstd": (X, 0),
    "pad": (X, 1),
    "percentile": (a, [10, 50]),
    "polyfit": (a, b, 2),
    "polyval": (few[:3], b),
    "quantile": (a, 0.3),
    "select": ([a < 0, a > 1], [a, few]),
    "sinc": (few,),
    "tensordot": (X, Y, (1, 1)),
    "trapezoid": (few,),
    "unwrap": (a,),
    "vander": (a, 3),
}

SCIPY = {
    "integrate.cumulative_trapezoid": (b,),
    "integrate.simpson": (b,),
    "interpolate.barycentric_interpolate": (np.arange(5.0), a[:5], b),
    "interpolate.krogh_interpolate": (np.arange(4.0), a[:4], b),
    "linalg.block_diag": (X[:2], Y[:2]),
    "linalg.circulant": (a[:4],),
    "linalg.hankel": (a[:4],),
    "linalg.toeplitz": (a[:4],),
    "optimize.rosen": (a,),
    "optimize.rosen_der": (a,),
    "optimize.rosen_hess": (a,),
    "signal.chirp": (np.abs(a), 1, 2, 3),
    "signal.detrend": (a,),
    "signal.gausspulse": (a,),
    "signal.periodogram": (a,),
    "signal.sawtooth": (a,),
    "signal.square": (a,),
    "spatial.distance.braycurtis": (a, b),
    "spatial.distance.canberra": (a, b),
    "spatial.distance.cityblock": (a, b),
    "spatial.distance.jensenshannon": (positive, more),
    "spatial.distance.minkowski": (a, b, 3),
    "special.log_softmax": (X, 1),
    "special.logsumexp": (X, 0),
    "special.softmax": (X, 1),
    "stats.circmean": (a,),
    "stats.describe": (X,),
    "stats.entropy": (positive,),
    "stats.f_oneway": (a, b),
    "stats.gmean": (positive,),
    "stats.gzscore": (positive,),
    "stats.hmean": (positive,),
    "stats.iqr": (a,),
    "stats.jarque_bera": (a,),
    "stats.kurtosis": (a,),
    "stats.linregress": (a, b),
    "stats.median_abs_deviation": (a,),
    "stats.moment": (a, 3),
    "stats.norm.pdf": (a,),
    "stats.pearsonr": (a, b),
    "stats.pmean": (positive, 2),
    "stats.rankdata": (few,),
    "stats.sem": (a,),
    "stats.sigmaclip": (a,),
    "stats.skew": (few,),
    "stats.spearmanr": (a, b),
    "stats.tmean": (few,),
    "stats.trim_mean": (a, 0.1),
    "stats.ttest_1samp": (a, 0.5),
    "stats.ttest_ind": (a, b),
    "stats.variation": (positive,),
    "stats.zmap": (a, b),
    "stats.zscore": (X,),
}

SKLEARN = {
    "metrics.accuracy_score": (classes, guesses),
    "metrics.auc": (np.arange(12.0), b),
    "metrics.brier_score_loss": (binary, chances),
    "metrics.calinski_harabasz_score": (points, classes),
    "metrics.cohen_kappa_score": (classes, guesses),
    "metrics.confusion_matrix": (classes, guesses),
    "metrics.davies_bouldin_score": (points, classes),
    "metrics.explained_variance_score": (a, b),
    "metrics.log_loss": (binary, chances),
    "metrics.matthews_corrcoef": (classes, guesses),
    "metrics.max_error": (a, b),
    "metrics.mean_absolute_error": (a, b),
    "metrics.mean_pinball_loss": (a, b),
    "metrics.mean_squared_error": (a, b),
    "metrics.mean_squared_log_error": (positive, more),
    "metrics.median_absolute_error": (a, b),
    "metrics.pairwise.chi2_kernel": (np.abs(X), np.abs(Y)),
    "metrics.pairwise.cosine_similarity": (X, Y),
    "metrics.pairwise.euclidean_distances": (X, Y),
    "metrics.pairwise.polynomial_kernel": (X, Y),
    "metrics.pairwise.rbf_kernel": (X, Y),
    "metrics.pairwise.sigmoid_kernel": (X, Y),
    "metrics.precision_recall_curve": (binary, chances),
    "metrics.r2_score": (a, b),
    "metrics.roc_auc_score": (binary, chances),
    "metrics.silhouette_score": (points, classes),
    "preprocessing.binarize": (X,),
    "preprocessing.label_binarize": (classes,),
    "preprocessing.maxabs_scale": (X,),
    "preprocessing.minmax_scale": (X,),
    "preprocessing.normalize": (X,),
    "preprocessing.robust_scale": (X,),
    "preprocessing.scale": (X,),
    "utils.extmath.row_norms": (X,),
    "utils.extmath.softmax": (X,),
}

KEYWORDS = {"preprocessing.label_binarize": {"classes": [0, 1, 2]}}
LIBRARIES = {"numpy": NUMPY, "scipy": SCIPY, "sklearn": SKLEARN}
PATHS = [(library, path) for library, table in LIBRARIES.items() for path in table]


def installed(library):
    return importlib.util.find_spec(library) is not None


def call_of(library, path):
    """The function, its arguments and its keywords."""
    owner, names = importlib.import_module(library), path.split(".")
    for depth, name in enumerate(names):
        if not hasattr(owner, name):
            importlib.import_module(".".join([library, *names[: depth + 1]]))
        owner = getattr(owner, name)
    return owner, LIBRARIES[library][path], KEYWORDS.get(path, {})
