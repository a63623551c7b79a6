"""Check frames of the serial link: flags, CRC-32 and a quick hash for the cache."""
import binascii

import numpy as np

FLAG_ACK = 0x01
FLAG_LAST = 0x80

FRAMES = [b"\x01hello", b"\x00temperature=21", b"\x81bye", b"\x80" + bytes(range(64))]


def make_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        low = table & 1
        table = (table >> 1) ^ (low * np.uint32(0xEDB88320))
    return table


TABLE = make_table()


def crc32(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ int(TABLE[(crc ^ byte) & 0xFF])
    return crc ^ 0xFFFFFFFF


def fnv1a(columns):
    """FNV-1a of many equally long keys at once, modulo 2**32 by definition."""
    h = np.full(columns.shape[0], 2166136261, dtype=np.uint32)
    for byte in columns.T:
        h ^= byte
        h *= np.uint32(16777619)
    return h


def fnv1a_plain(key):
    h = 2166136261
    for byte in key:
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return h


def main():
    flags = np.array([f[0] for f in FRAMES], dtype=np.uint8)
    print("ack ", (flags & FLAG_ACK != 0).astype(int))
    print("last", (flags & FLAG_LAST != 0).astype(int))
    print("rest", flags & ~np.uint8(FLAG_ACK | FLAG_LAST))
    for f in FRAMES:
        mine = crc32(f)
        print(f"{mine:08x} {'ok' if mine == binascii.crc32(f) else 'BAD'}")
    keys = np.frombuffer(b"north___south___east____west____", dtype=np.uint8).reshape(4, 8)
    hashes = fnv1a(keys)
    assert [int(h) for h in hashes] == [fnv1a_plain(k) for k in keys.tolist()]
    print("slots", hashes % 16)


if __name__ == "__main__":
    main()
