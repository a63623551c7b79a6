import binascii

import numpy as np


def make_inputs():
    rng = np.random.default_rng(32)
    return (rng.integers(0, 256, size=(60, 20), dtype=np.uint8),)


def crc_table():
    t = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        odd = (t & 1).astype(bool)
        t >>= 1
        t[odd] ^= 0xEDB88320
    return t


def run(frames):
    """CRC-32 of every row at once, appended little-endian to a copy of the frames."""
    table = crc_table()
    crc = np.full(len(frames), 0xFFFFFFFF, dtype=np.uint32)
    for byte in frames.T:
        low = (crc ^ byte).astype(np.uint8)
        crc = (crc >> 8) ^ table[low]
    crc = ~crc
    tail = crc.astype("<u4").view(np.uint8).reshape(-1, 4)
    np.hstack([frames, tail]).tofile("frames.bin")
    return crc


def exact(frames):
    crcs = [binascii.crc32(row.tobytes()) for row in frames]
    data = [list(row.tobytes()) + list(c.to_bytes(4, "little")) for row, c in zip(frames, crcs)]
    return crcs, data


ANSWER = {
    "outputs": {
        "crc (returned)": {"size": 60, "differ": 0, "intended": True},
        "frames.bin": {"size": 1440, "differ": 0, "intended": True},
    },
    "note": "the cast of the uint32 register to uint8 takes its low byte on purpose, ~ is bitwise; agrees with zlib",
}
