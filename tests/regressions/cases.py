"""The regressions, and copies of the project with one of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parent / "project"


class Regression(NamedTuple):
    """One line of the package in three states, and an expression that tells them apart."""

    name: str
    module: str
    """The module of `fieldkit` that has the line."""
    thread: str
    before: str
    """The line as the package has it, without its indentation."""
    after: str
    """The line that regresses: it widens a dtype or loses values."""
    fix: str
    """A line that mends the regression, not always the first one."""
    probe: str
    """An expression over `fieldkit` and `np` whose text is `good` before and when mended."""
    good: str
    bad: str

    @property
    def line(self) -> int:
        """The number of the line in its module."""
        source = (PROJECT / "fieldkit" / f"{self.module}.py").read_text(encoding="utf-8")
        (number,) = [i for i, s in enumerate(source.splitlines(), 1) if s.strip() == self.before]
        return number


def project_with(folder: Path, regression: Regression, line: str) -> Path:
    """Copy the project into `folder`, with the regression's line replaced by `line`."""
    copy = folder / "project"
    shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    module = copy / "fieldkit" / f"{regression.module}.py"
    source = module.read_text(encoding="utf-8")
    assert source.count(regression.before) == 1, regression.name
    module.write_text(source.replace(regression.before, line), encoding="utf-8")
    return copy


_SIGNAL = "np.ones(16, np.float32)"

CASES = (
    Regression(
        "a frequency grid in float64",
        "spectra",
        "https://github.com/librosa/librosa/issues/2099",
        "grid = frequencies(signal.shape[-1], rate, spectrum.dtype)",
        "grid = np.fft.rfftfreq(signal.shape[-1], 1 / rate)",
        "grid = np.fft.rfftfreq(signal.shape[-1], 1 / rate).astype(spectrum.dtype)",
        f"fieldkit.spectra.centroid({_SIGNAL}, 16).dtype",
        "float32",
        "float64",
    ),
    Regression(
        "a scalar that became np.float64",
        "spectra",
        "https://github.com/netket/netket/pull/1218",
        "scale = 1 / math.sqrt(signal.shape[-1])",
        "scale = 1 / np.sqrt(signal.shape[-1])",
        "scale = float(1 / np.sqrt(signal.shape[-1]))",
        f"fieldkit.spectra.normalized({_SIGNAL}).dtype",
        "float32",
        "float64",
    ),
    Regression(
        "an interpolation in float64",
        "spectra",
        "https://github.com/gwpy/gwpy/pull/1051",
        "return np.interp(new, old, signal).astype(signal.dtype)",
        "return np.interp(new, old, signal)",
        'return np.interp(new, old, signal).astype(signal.dtype, casting="same_kind")',
        f"fieldkit.spectra.resampled({_SIGNAL}, 8).dtype",
        "float32",
        "float64",
    ),
    Regression(
        "uint8 arithmetic",
        "images",
        "https://github.com/LCAV/LenslessPiCam/pull/173",
        "scaled = image.astype(np.float32) * percent / 100",
        "scaled = image * percent / 100",
        "scaled = image * (percent / 100)",
        "fieldkit.images.brightened(np.full((1, 1), 200, np.uint8), 80).item()",
        "160",
        "1",
    ),
    Regression(
        "the mean of integers",
        "images",
        "https://github.com/data-apis/array-api/pull/260",
        "level = counts.mean(dtype=image.dtype)",
        "level = counts.mean()",
        "level = float(counts.mean())",
        "fieldkit.images.without_dark_level(np.ones((2, 2), np.float32), np.arange(4)).dtype",
        "float32",
        "float64",
    ),
    Regression(
        "zeros without a dtype",
        "images",
        "https://github.com/drrelyea/spgl1/pull/27",
        "canvas = np.zeros((rows + 2 * width, columns + 2 * width), image.dtype)",
        "canvas = np.zeros((rows + 2 * width, columns + 2 * width))",
        "canvas = np.zeros_like(image, shape=(rows + 2 * width, columns + 2 * width))",
        "fieldkit.images.sharpened(np.ones((4, 4), np.float32)).dtype",
        "float32",
        "float64",
    ),
    Regression(
        "uint16 fields subtracted",
        "records",
        "https://github.com/pehses/twixtools/pull/35",
        'return self.header["lines"].astype(np.int32) - 2 * self.header["centre"]',
        'return self.header["lines"] - 2 * self.header["centre"]',
        'return self.header["lines"].astype(np.int64) - 2 * self.header["centre"].astype(np.int64)',
        "fieldkit.records.Scan(np.array([(255, 128, 1)], fieldkit.records.HEADER), None)"
        ".offset().item()",
        "-1",
        "65535",
    ),
    Regression(
        "a float16 mean along the first axis",
        "records",
        "https://github.com/numpy/numpy/issues/23075",
        "return grid.mean(axis=0, dtype=np.float32).astype(grid.dtype)",
        "return np.nanmean(grid, axis=0)",
        "return np.nanmean(grid, axis=0, dtype=np.float32).astype(grid.dtype)",
        "fieldkit.records.daily_means(np.full((400, 2), 256, np.float16)).max().item()",
        "256.0",
        "inf",
    ),
    Regression(
        "a list of Python floats concatenated",
        "records",
        "https://github.com/MyoHub/myosuite/pull/205",
        "angle = np.array([np.sin(phase), np.cos(phase)], dtype=positions.dtype)",
        "angle = np.array([np.sin(phase), np.cos(phase)])",
        "angle = np.asarray([np.sin(phase), np.cos(phase)], np.float32)",
        "fieldkit.records.observation(np.ones(1, np.float32), np.ones(1, np.float32), 1.0).dtype",
        "float32",
        "float64",
    ),
    Regression(
        "an arange of int64",
        "fitting",
        "https://github.com/aeon-toolkit/aeon/pull/3752",
        "time = np.arange(series.shape[-1], dtype=series.dtype)",
        "time = np.arange(series.shape[-1])",
        "time = np.arange(series.shape[-1]).astype(series.dtype)",
        f"fieldkit.fitting.slope({_SIGNAL}).dtype",
        "float32",
        "float64",
    ),
    Regression(
        "an eps in float64",
        "fitting",
        "https://github.com/scikit-learn/scikit-learn/pull/24356",
        "eps = np.finfo(probabilities.dtype).eps",
        "eps = np.finfo(np.float64).eps",
        "eps = probabilities.dtype.type(1e-7)",
        "fieldkit.fitting.log_loss(np.ones(2, np.float32), np.ones(2, np.float32) / 2).dtype",
        "float32",
        "float64",
    ),
    Regression(
        "a power of integers",
        "fitting",
        "https://github.com/XanaduAI/strawberryfields/pull/556",
        "return float(alpha) ** k / np.sqrt(factorials)",
        "return alpha**k / np.sqrt(factorials)",
        "return (1.0 * alpha) ** k / np.sqrt(factorials)",
        "bool((fieldkit.fitting.coherent_amplitudes(9, 30) > 0).all())",
        "True",
        "False",
    ),
)
