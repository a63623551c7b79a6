"""Telemetry packets: six bytes of header, then data."""

import numpy as np


def packet_lengths(headers):
    """The length of each packet in bytes, headers included."""
    high, low = headers[:, 4], headers[:, 5]
    return high.astype(np.int64) * 256 + low + 7


def packet_starts(headers):
    lengths = packet_lengths(headers)
    return np.cumsum(lengths) - lengths
