"""Framing of packets with check values: CRC-32, Fletcher, Luhn numbers, parity, Hamming code."""
import struct
import zlib

import numpy as np

POLYNOMIAL = 0xEDB88320
HEADER = struct.Struct("<HHI")


def crc_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        odd = (table & 1).astype(bool)
        table = np.where(odd, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1)
    return table


TABLE = crc_table()


def crc32(data):
    crc = np.uint32(0xFFFFFFFF)
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return int(crc ^ np.uint32(0xFFFFFFFF))


def fletcher16(data):
    """Position-weighted form of the two sums."""
    values = data.astype(np.int64)
    low = values.sum() % 255
    high = (values * np.arange(values.size, 0, -1)).sum() % 255
    return int(high) * 256 + int(low)


def luhn_digits(numbers):
    """Check digit for each row of decimal digits."""
    digits = np.array([[int(c) for c in n] for n in numbers], dtype=np.int8)
    doubled = digits.copy()
    doubled[:, ::-2] *= 2
    doubled = np.where(doubled > 9, doubled - 9, doubled)
    return (10 - doubled.sum(axis=1) % 10) % 10


def hamming_encode(nibbles):
    """Seven-bit code words, four data bits and three parity bits."""
    generator = np.array([
        [1, 1, 0, 1],
        [1, 0, 1, 1],
        [1, 0, 0, 0],
        [0, 1, 1, 1],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ], dtype=np.uint8)
    bits = np.unpackbits(nibbles[:, None], axis=1)[:, 4:]
    return (bits @ generator.T) % 2


def hamming_correct(words):
    check = np.array([
        [1, 0, 1, 0, 1, 0, 1],
        [0, 1, 1, 0, 0, 1, 1],
        [0, 0, 0, 1, 1, 1, 1],
    ], dtype=np.uint8)
    syndrome = (words @ check.T) % 2 @ np.array([1, 2, 4], dtype=np.uint8)
    fixed = words.copy()
    wrong = np.flatnonzero(syndrome)
    fixed[wrong, syndrome[wrong] - 1] ^= 1
    data = fixed[:, [2, 4, 5, 6]]
    return np.packbits(data, axis=1).ravel() >> 4, wrong.size


def build(rng, count):
    for serial in range(count):
        payload = rng.integers(0, 256, size=int(rng.integers(12, 90)), dtype=np.uint8)
        yield HEADER.pack(serial, payload.size, crc32(payload)) + payload.tobytes()


def split(stream):
    at = 0
    while at < len(stream):
        serial, size, crc = HEADER.unpack_from(stream, at)
        at += HEADER.size
        yield serial, np.frombuffer(stream, dtype=np.uint8, count=size, offset=at), crc
        at += size


def damage(rng, stream, n_bits):
    raw = np.frombuffer(stream, dtype=np.uint8).copy()
    sizes = HEADER.size + 2
    where = rng.integers(sizes, raw.size - 1, size=n_bits)
    for k in where.tolist():
        raw[k] ^= np.uint8(1 << int(rng.integers(0, 8)))
    return raw


def main():
    rng = np.random.default_rng(2020)
    packets = list(build(rng, 20))
    stream = b"".join(packets)
    with open("stream.bin", "wb") as handle:
        handle.write(stream)
    for serial, payload, crc in split(stream):
        if crc32(payload) != crc or zlib.crc32(payload.tobytes()) != crc:
            raise ValueError(f"packet {serial} is broken")
        if serial % 5 == 0:
            parity = np.bitwise_xor.reduce(payload)
            print("packet %2d: %2d bytes, crc %08x, fletcher %04x, parity %02x" % (serial, payload.size, crc, fletcher16(payload), parity))
    spoiled = damage(rng, packets[3], 4)
    body = spoiled[HEADER.size:]
    print("damaged packet found:", crc32(body) != HEADER.unpack_from(packets[3])[2])
    numbers = ["".join(map(str, rng.integers(0, 10, size=15))) for _ in range(6)]
    digits = luhn_digits(numbers)
    np.savetxt("numbers.txt", np.char.add(numbers, digits.astype("U1")), fmt="%s")
    nibbles = rng.integers(0, 16, size=40, dtype=np.uint8)
    words = hamming_encode(nibbles)
    noisy = words.copy()
    hit = rng.choice(40, size=11, replace=False)
    noisy[hit, rng.integers(0, 7, size=11)] ^= 1
    decoded, repaired = hamming_correct(noisy)
    print(f"{repaired} code words repaired, all right: {np.array_equal(decoded, nibbles)}")
    histogram = np.bincount(np.frombuffer(stream, dtype=np.uint8) >> 4, minlength=16)
    share = histogram / histogram.sum()
    print(f"entropy of high nibbles {-(share * np.log2(share)).sum():.5f} bits, mean weight {words.sum(axis=1).mean():.3f}")


if __name__ == "__main__":
    main()
