"""Bits of a shift register are packed into bytes for the bus, with the bits of each byte mirrored.

https://github.com/SiLab-Bonn/basil/pull/230
"""
import numpy as np

REGISTER = [("enable", 4), ("vthin", 8), ("global_dac", 12)]


def field_bits(value, size):
    return [(value >> i) & 1 for i in range(size)]


class StdRegister:
    def __init__(self, layout):
        self.layout = layout
        self.values = {name: 0 for name, _ in layout}

    def __setitem__(self, name, value):
        self.values[name] = int(value)

    def tobits(self):
        bits = []
        for name, size in self.layout:
            bits += field_bits(self.values[name], size)
        return np.array(bits, dtype=np.uint8)


def bitarray_to_byte_array(bits):
    padded = np.zeros(-(-len(bits) // 8) * 8, dtype=np.uint8)
    padded[:len(bits)] = bits
    bs = np.packbits(padded)
    bs = (bs * 0x0202020202 & 0x010884422010) % 1023
    return bs.astype(np.uint8)


def checksum(data):
    return np.array([data.sum(dtype=np.uint32) & 0xFF], dtype=np.uint32)


def main(settings):
    register, frames = StdRegister(REGISTER), []
    for row in settings:
        for (name, _), value in zip(REGISTER, row):
            register[name] = value
        frames.append(bitarray_to_byte_array(register.tobits()))
    frames = np.stack(frames)
    return frames, checksum(frames)


def inputs():
    return (np.array([[5, 129, 3000], [15, 77, 1], [0, 255, 4095]], dtype=np.int64),)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
