"""Conversions to integers that do not hold the value."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide


@faulty(
    "scaled",
    lambda r: (np.linspace(0, 1.3, 40, dtype=np.float32),),
    lambda x: np.minimum(wide(x)[0] * 255, 255),
)
def to_pixels(x):
    scaled = x * np.float32(255)
    return scaled.astype(np.uint8)  # guilty


@faulty(
    "edges",
    lambda r: (r.uniform(0, 255, (6, 6)).astype(np.float32),),
    lambda i: np.maximum(np.diff(wide(i)[0], axis=1), 0),
)
def edge_image(image):
    edges = image[:, 1:] - image[:, :-1]
    return edges.astype(np.uint8)  # guilty


@faulty(
    "microseconds",
    lambda r: (np.array([10.0, 2000.0, 4000.0], np.float32),),
    lambda s: wide(s)[0] * 1e6,
)
def to_microseconds(seconds):
    microseconds = seconds * np.float32(1e6)
    return microseconds.astype(np.int32)  # guilty


@faulty(
    "bins",
    lambda r: (np.array([0.5, np.nan, 2.5, 3.5], np.float32),),
    lambda x: np.array([10, 10, 12, 13]),
)
def bin_labels(x):
    bins = np.floor(x)
    labels = bins.astype(np.int32)  # guilty
    return labels + np.int64(10)


@faulty(
    "x / scale",
    lambda r: (np.linspace(-3, 3, 41, dtype=np.float32),),
    lambda x: np.clip(np.rint(wide(x)[0] / 0.015), -128, 127) * 0.015,
)
def quantized(x, scale=np.float32(0.015)):
    codes = np.rint(x / scale).astype(np.int8)  # guilty
    return codes * scale


@faulty(
    "totals",
    lambda r: (np.array([100, 40_000, 70_000], np.int64),),
    lambda t: wide(t)[0] / 2,
)
def halved_totals(totals):
    packed = totals.astype(np.int16)  # guilty
    return packed / np.float32(2)


@clean(
    lambda r: (np.linspace(0, 1.3, 40, dtype=np.float32),),
    lambda x: np.floor(np.clip(wide(x)[0] * 255, 0, 255)),
)
def to_pixels_clipped(x):
    scaled = np.clip(x * np.float32(255), 0, 255)
    return scaled.astype(np.uint8)


@clean(
    lambda r: (r.uniform(0, 255, (6, 6)).astype(np.float32),),
    lambda i: np.trunc(np.diff(i, axis=1)),
)
def signed_edges(image):
    edges = image[:, 1:] - image[:, :-1]
    return edges.astype(np.int16)


@clean(
    lambda r: (np.array([10.0, 2000.0, 4000.0], np.float32),),
    lambda s: wide(s)[0] * 1e6,
)
def to_microseconds_in_int64(seconds):
    return (seconds * np.float32(1e6)).astype(np.int64)


@clean(
    lambda r: (np.array([0.5, np.nan, 2.5, 3.5], np.float32), np.arange(10, 15, dtype=np.float32)),
    lambda x, t: np.array([10, 10, 12, 13]),
)
def guarded_lookup(x, table):
    bins = np.where(np.isnan(x), np.float32(0), np.floor(x))
    return table[bins.astype(np.int32)]


@clean(
    lambda r: (np.linspace(-1.8, 1.8, 41, dtype=np.float32),),
    lambda x: np.rint(wide(x)[0] / 0.015) * 0.015,
)
def quantized_within_range(x, scale=np.float32(0.015)):
    codes = np.rint(x / scale).astype(np.int8)
    return codes * scale


@clean(
    lambda r: (np.array([1.5, -7.25, 300.0], np.float32),),
    lambda x: np.mod(np.trunc(wide(x)[0]), 256),
)
def low_bytes(x):
    whole = x.astype(np.int64)
    return (whole & 0xFF).astype(np.uint8)
