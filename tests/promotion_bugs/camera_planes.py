"""Dark pixels come out bright: luma of uint8 minus 16 wraps.

https://github.com/waveform80/picamera/pull/263
"""

import numpy as np

YUV_TO_RGB = np.array([[1.164, 0.0, 1.596], [1.164, -0.392, -0.813], [1.164, 2.017, 0.0]])


class FrameBuffer:
    def __init__(self, width, height):
        self.width, self.height = width, height

    def planes(self, data):
        size = self.width * self.height
        y = np.frombuffer(data, np.uint8, count=size)
        u = np.frombuffer(data, np.uint8, count=size // 4, offset=size)
        v = np.frombuffer(data, np.uint8, count=size // 4, offset=size + size // 4)
        luma = y.reshape(self.height, self.width)
        halves = (self.height // 2, self.width // 2)
        u, v = (p.reshape(halves).repeat(2, axis=0).repeat(2, axis=1) for p in (u, v))
        return np.dstack((luma, u, v))

    def rgb(self, data):
        yuv = self.planes(data)
        centred = yuv - np.array([16, 128, 128], np.uint8)  # guilty
        return np.clip(centred.dot(YUV_TO_RGB.T), 0, 255).astype(np.uint8)


def program(data):
    return FrameBuffer(4, 2).rgb(data)


def inputs(folder):
    luma, chroma = bytes([10, 12, 14, 16] * 2), bytes([128] * 4)
    return (luma + chroma,)


def shows_fault(result):
    return int(result.max()) > 16
