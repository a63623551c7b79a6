"""Develops raw sensor frames to 8 bit images: black level, white balance, a tone curve from a table
and a small sharpening filter."""
import numpy as np

CONFIG = {"black": 64, "white": 1023, "gains": (1.9, 1.0, 1.6), "gamma": 2.2, "sharpen": 0.4,
          "table": 1024}


def tone_table(config):
    x = np.linspace(0.0, 1.0, config["table"])
    return (255.0 * x ** (1.0 / config["gamma"])).astype(np.float32)


class Developer:
    def __init__(self, config):
        self.config = config
        self.table = tone_table(config)
        self.gains = np.asarray(config["gains"], dtype=np.float32)

    def linear(self, raw):
        c = self.config
        signal = raw.astype(np.float32) - np.float32(c["black"])
        signal *= np.float32(1.0 / (c["white"] - c["black"]))
        return np.clip(signal * self.gains, 0, 1)

    def tone(self, linear):
        index = np.rint(linear * np.float32(self.config["table"] - 1)).astype(np.intp)
        return self.table[index]

    def sharpen(self, image):
        padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
        near = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return image + np.float32(self.config["sharpen"]) * (image - near / 4)

    def __call__(self, raw):
        image = self.sharpen(self.tone(self.linear(raw)))
        return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def channel_means(image):
    return image.reshape(-1, image.shape[-1]).mean(axis=0)


def clipped_share(image):
    return np.count_nonzero(image == 255) / image.size


def main(raw):
    image = Developer(CONFIG)(raw)
    return image, channel_means(image), np.array(clipped_share(image))


def inputs():
    rng = np.random.default_rng(0)
    return (rng.integers(40, 1024, size=(12, 16, 3)).astype(np.uint16),)
