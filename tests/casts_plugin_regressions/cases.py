"""The regressions, and copies of the project in one of three states."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal, NamedTuple

PROJECT = Path(__file__).parent / "project"

State = Literal["before", "after", "fix"]


class PackageRegression(NamedTuple):
    """One line of a module of `labkit` in three states."""

    kind: str
    module: str
    thread: str
    before: str
    """The line as the package has it, without its indentation."""
    after: str
    """The line that regresses: it widens a dtype or loses values."""
    fix: str
    """A line that mends the regression, not always the first one."""
    probe: str
    """An expression over the module and `np`: equal texts before and when mended, another after."""
    policy: str = ""
    """The kind of cast by which a policy finds the regression without a baseline, if one does."""
    guilty: str = ""
    """The line with the implicit conversion, if it is not the line that changed."""

    @property
    def path(self) -> str:
        return f"labkit/{self.module}.py"

    @property
    def line(self) -> int:
        """The number of the line with the implicit conversion in its module."""
        line = self.guilty or self.before
        source = (PROJECT / self.path).read_text(encoding="utf-8").splitlines()
        (number,) = [i for i, text in enumerate(source, 1) if text.strip() == line]
        return number


def project_in_state(folder: Path, state: State) -> Path:
    """Copy the project into `folder` with all of its regressions in a state."""
    copy = folder / state
    shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for case in CASES:
        module = copy / case.path
        source = module.read_text(encoding="utf-8")
        assert source.count(case.before) == 1, case.module
        module.write_text(source.replace(case.before, getattr(case, state)), encoding="utf-8")
    return copy


CASES = (
    PackageRegression(
        "bytes of a header combined in uint8",
        "packets",
        "https://github.com/CCSDSPy/ccsdspy/issues/127",
        "return high.astype(np.int64) * 256 + low + 7",
        "return (high << 8) + low + 7",
        "return np.left_shift(high, 8, dtype=np.int64) + low + 7",
        "packet_lengths(np.full((1, 6), 2, np.uint8)).item()",
    ),
    PackageRegression(
        "an int64 sum assigned to elements of int16",
        "levels",
        "https://github.com/MIT-LCP/wfdb-python/pull/507",
        "signal = samples.astype(np.int32)",
        "signal = samples.copy()",
        'signal = samples.astype(np.int32, casting="safe")',
        "from_offset_binary(np.full(1, -2, np.int16)).item()",
        policy="lossy",
        guilty="signal[signal < 0] = signal[signal < 0] + OFFSET",
    ),
    PackageRegression(
        "an int64 scalar, an element of an array",
        "gains",
        "https://github.com/MIT-LCP/wfdb-python/pull/508",
        "return digital - int(self.baselines[channel])",
        "return digital - self.baselines[channel]",
        "return digital - self.baselines[channel].item()",
        "Recorder([1], [3]).centred(np.ones(1, np.int16), 0).dtype",
        policy="to:int64",
    ),
    PackageRegression(
        "a Python complex that became np.complex128",
        "states",
        "https://github.com/quantumlib/Cirq/pull/7258",
        "return cmath.exp(2j * math.pi * turns) * state",
        "return np.exp(2j * np.pi * turns) * state",
        "return complex(np.exp(2j * np.pi * turns)) * state",
        "global_phase(np.ones(2, np.complex64), 0.5).dtype",
        policy="to:complex128",
    ),
    PackageRegression(
        "tuples of Python floats with an image of float16 or float32",
        "pixels",
        "https://github.com/mistralai/mistral-common/issues/316",
        "mean, std = np.asarray(MEAN, image.dtype), np.asarray(STD, image.dtype)",
        "mean, std = np.asarray(MEAN), np.asarray(STD)",
        "mean, std = np.array([MEAN, STD], dtype=image.dtype)",
        "normalized(np.ones((1, 1, 3), np.float16)).dtype",
        policy="to:float64",
        guilty="return (image - mean) / std",
    ),
    PackageRegression(
        "where with an array of a Python number",
        "masks",
        "https://github.com/pydata/xarray/issues/8402",
        "return np.where(good, counts, fill)",
        "return np.where(good, counts, np.asarray(fill))",
        "return np.where(good, counts, counts.dtype.type(fill))",
        "without_bad_pixels(np.ones(1, np.uint16), np.ones(1, bool)).dtype",
        policy="to:int64",
    ),
    PackageRegression(
        "uint64 ids and an int64 scalar",
        "ids",
        "https://github.com/BlueBrain/snap/issues/120",
        "return ids + np.uint64(first)",
        "return ids + first",
        "return ids + first.astype(ids.dtype)",
        "Populations([2**53, 1]).global_ids(np.ones(1, np.uint64), 1).item()",
        policy="lossy",
    ),
    PackageRegression(
        "int64 rows concatenated with an empty list",
        "buckets",
        "https://github.com/alibaba/FederatedScope/pull/533",
        "again = np.asarray(again, order.dtype)",
        "again = np.asarray(again)",
        "again = np.asarray(again).astype(order.dtype)",
        "visiting_order(np.full(1, 2**53 + 1), 0).item()",
        policy="lossy",
        guilty="return np.concatenate([order[start:], order[:start], again])",
    ),
    PackageRegression(
        "noise drawn in float64",
        "mixing",
        "https://github.com/fgnt/mms_msg/issues/16",
        "return speech + level * rng.standard_normal(speech.shape, speech.dtype)",
        "return speech + level * rng.standard_normal(speech.shape)",
        "return speech + level * rng.standard_normal(speech.shape).astype(speech.dtype)",
        "with_noise(np.ones(1, np.float32), 0.5, 1).dtype",
        policy="to:float64",
    ),
    PackageRegression(
        "int16 divided by a Python number",
        "pcm",
        "https://github.com/tuxu/python-samplerate/issues/8",
        "return samples.astype(np.float32) / 32768",
        "return samples / 32768",
        "return np.divide(samples, 32768, dtype=np.float32)",
        "to_float(np.ones(1, np.int16)).dtype",
        policy="to:float64",
    ),
    PackageRegression(
        "a magnitude as Python's float",
        "spectra",
        "https://github.com/librosa/librosa/issues/580",
        "magnitude = np.abs(spectrum)",
        "magnitude = np.abs(spectrum).astype(float)",
        "magnitude = np.abs(spectrum).astype(spectrum.real.dtype)",
        "normalize(np.ones((1, 1), np.complex64)).dtype",
        policy="to:complex128",
        guilty="return spectrum / length",
    ),
    PackageRegression(
        "the mean of uint8 images",
        "centring",
        "https://github.com/tflearn/tflearn/pull/478",
        "return batch - float(self.images.mean())",
        "return batch - self.images.mean()",
        "return batch - self.images.mean(dtype=batch.dtype)",
        "Centring(np.ones((1, 2, 2), np.uint8))(np.ones(4, np.float32)).dtype",
        policy="to:float64",
    ),
)
