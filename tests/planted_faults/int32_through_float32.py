"""Integers beyond 2**24 that pass through float32."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide

BASE = 2**24


def ids(rng):
    return (np.arange(BASE + 1, BASE + 41, dtype=np.int32),)


@faulty("ids", ids, lambda ids: wide(ids)[0] - BASE)
def scaled_ids(ids):
    scaled = ids.astype(np.float32) * np.float32(2)  # guilty
    return (scaled / np.float32(2)).astype(np.int32) - np.int32(BASE)


@faulty("ids", ids, lambda ids: np.where(wide(ids)[0] % 3 == 0, 0, wide(ids)[0] % 16))
def ids_with_gaps(ids):
    present = ids % 3 != 0
    column = np.where(present, ids.astype(np.float32), np.float32(np.nan))  # guilty
    filled = np.nan_to_num(column).astype(np.int32)
    return np.where(present, filled % 16, 0)


@faulty("ids", ids, lambda ids: wide(ids)[0] % 64)
def table_of_ids(ids):
    table = np.zeros((len(ids), 2), np.float32)
    table[:, 0] = ids  # guilty
    table[:, 1] = 1
    return table[:, 0].astype(np.int64) % 64


@faulty(
    "stamps",
    lambda r: (np.arange(1_700_000_000, 1_700_000_400, 10, dtype=np.int32),),
    lambda s: np.diff(s),
)
def seconds_between(stamps):
    seconds = stamps.astype(np.float32)  # guilty
    return seconds[1:] - seconds[:-1]


@faulty(
    "counts",
    lambda r: (r.integers(BASE, 2 * BASE, 60, dtype=np.int32) | 1,),
    lambda c: wide(c)[0] % 2,
)
def parity(counts):
    weights = counts.astype(np.float32)  # guilty
    return weights % np.float32(2)


@faulty(
    "addresses",
    lambda r: (np.arange(3 * BASE + 1, 3 * BASE + 90, dtype=np.int32),),
    lambda a: wide(a)[0] % 16,
)
def aligned(addresses):
    pages = np.floor(addresses.astype(np.float32) / np.float32(16))  # guilty
    return addresses - pages.astype(np.int32) * np.int32(16)


@clean(lambda r: (r.integers(0, BASE, 60, dtype=np.int32),), lambda i: wide(i)[0] % 1000)
def small_ids(ids):
    return ids.astype(np.float32).astype(np.int32) % 1000


@clean(ids, lambda ids: wide(ids)[0] - BASE)
def ids_in_float64(ids):
    scaled = ids.astype(np.float64) * 2
    return (scaled / 2).astype(np.int32) - np.int32(BASE)


@clean(lambda r: (np.arange(BASE, BASE + 8000, 256, dtype=np.int32),), lambda a: a % 4096)
def page_addresses(addresses):
    return addresses.astype(np.float32).astype(np.int32) % 4096


@clean(
    lambda r: (np.arange(1_700_000_000, 1_700_000_400, 10, dtype=np.int32),),
    lambda s: np.diff(s),
)
def seconds_between_integers(stamps):
    return (stamps[1:] - stamps[:-1]).astype(np.float32)


@clean(ids, lambda ids: wide(ids)[0] - BASE)
def ids_relative_to_the_first(ids):
    return (ids - np.int32(BASE)).astype(np.float32)


@clean(lambda r: (r.integers(BASE, 4 * BASE, 60, dtype=np.int32),), lambda c: wide(c)[0] / 1e6)
def counts_in_millions(counts):
    return counts.astype(np.float32) / np.float32(1e6)
