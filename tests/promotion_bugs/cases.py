"""The facts about each program of this folder."""

from __future__ import annotations

import importlib
import re
from types import ModuleType
from typing import NamedTuple

import pytest

from tests.support.guilty_lines import BORN, GUILTY


class PromotionBug(NamedTuple):
    """One program: its module, the kind of loss, the operand at fault, a line that mends it."""

    name: str
    kind: str
    """`widening`, or the arithmetic that loses: `wrap`, `absorption`, `cancellation`, ..."""
    operand: str
    """The operand at fault, as the guilty line spells it."""
    fix: str
    """Lines that replace the marked line."""
    fix_at: str = GUILTY

    @property
    def module(self) -> ModuleType:
        return importlib.import_module(f"tests.promotion_bugs.{self.name}")

    @property
    def thread(self) -> str:
        found = re.search(r"https://\S+(?<!\.)", self.module.__doc__ or "")
        assert found, f"{self.name}: the docstring cites no thread"
        return found[0]


CASES = (
    PromotionBug(
        "mel_spectrogram", "widening", "basis", "return np.dot(basis.astype(np.float32), spectrum)"
    ),
    PromotionBug(
        "spectral_centroid",
        "widening",
        "frequencies",
        "frequencies = frequencies.astype(np.float32)\n"
        "return np.sum(frequencies[:, np.newaxis] * self.normalized(spectrum), axis=0)",
    ),
    PromotionBug(
        "partial_fourier_offset",
        "wrap",
        'self.base_size["partitions"]',
        'return self.base_size["partitions"].astype(np.int64) - 2 * self.kspace_center',
    ),
    PromotionBug(
        "image_brightness",
        "wrap",
        "image",
        "image = (image * (config.brightness / 100)).astype(np.uint8)",
    ),
    PromotionBug(
        "pixel_weights",
        "wrap",
        "image[first]",
        "difference = image[first].astype(np.int16) - image[second]",
    ),
    PromotionBug(
        "camera_planes",
        "wrap",
        "yuv",
        "centred = yuv.astype(np.int16) - np.array([16, 128, 128], np.uint8)",
    ),
    PromotionBug(
        "mask_colours",
        "wrap",
        "red",
        "red, green = red.astype(np.int32), green.astype(np.int32)\n"
        "return (red << 16) + (green << 8) + blue",
    ),
    PromotionBug(
        "loudness_meter", "wrap", "samples", "power = np.mean(samples.astype(np.float64) ** 2)"
    ),
    PromotionBug(
        "record_ids", "widening", "rows", "ids = self.keys + base + rows.astype(np.uint64)"
    ),
    PromotionBug(
        "finite_differences",
        "absorption",
        "step",
        "step = np.sqrt(np.finfo(parameters.dtype).eps)\nshifted[i] += step",
    ),
    PromotionBug(
        "climate_means",
        "overflow",
        "self.temperatures",
        "return np.nanmean(self.temperatures, axis=0, dtype=np.float32)",
    ),
    PromotionBug(
        "column_scaler",
        "accumulation",
        "table",
        "self.mean = table.sum(axis=0, dtype=np.float64) / count",
    ),
    PromotionBug(
        "network_scale",
        "widening",
        "self.norm",
        "return hidden.sum(axis=-1) / np.float32(self.norm)",
    ),
    PromotionBug(
        "running_total", "accumulation", "self.total", "self.total += float(value) * weight"
    ),
    PromotionBug(
        "observations", "widening", "phase", "return np.concatenate(parts, dtype=np.float32)"
    ),
    PromotionBug(
        "slope_features",
        "widening",
        "time",
        "time = time.astype(np.float32)\n"
        "return (centred * time).sum(axis=-1) / np.float32((time**2).sum())",
    ),
    PromotionBug(
        "movie_bytes",
        "wrap",
        "np.concatenate([self.shape, self.itemsize])",
        "return np.prod(np.concatenate([self.shape, self.itemsize]), dtype=np.int64)",
    ),
    PromotionBug(
        "discounted_returns",
        "truncation",
        "running",
        "returns = np.zeros_like(rewards, dtype=np.float64)",
        fix_at=BORN,
    ),
    PromotionBug(
        "alpha_mask",
        "out of range",
        "np.maximum(prediction, 0) * 255",
        "return (np.clip(prediction, 0, 1) * 255).astype(np.uint8)",
    ),
    PromotionBug(
        "log_loss",
        "absorption",
        "eps",
        "eps = np.finfo(probabilities.dtype).eps\nreturn np.clip(probabilities, eps, 1 - eps)",
    ),
)

QUICK_OR_ALL = [
    pytest.param([case for case in CASES if case.name != "running_total"], id="quick"),
    pytest.param(CASES, id="all", marks=pytest.mark.exhaustive),
]
"""Programs as a parameter of a test. An audit of `running_total` takes as long as all others."""
