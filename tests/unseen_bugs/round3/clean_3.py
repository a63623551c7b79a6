"""Mean, variance and extremes of a float32 variable read in chunks; the sums are carried in float64
over the chunks, and the normalised chunks are float32 again."""
import numpy as np

CONFIG = {"chunk": 64, "eps": 1e-6}


class RunningMoments:
    """Chan's update of mean and squared deviations; accumulators are float64 on purpose, since
    millions of values are added."""

    def __init__(self, features):
        self.count = 0
        self.mean = np.zeros(features, dtype=np.float64)
        self.m2 = np.zeros(features, dtype=np.float64)
        self.low = np.full(features, np.inf, dtype=np.float32)
        self.high = np.full(features, -np.inf, dtype=np.float32)

    def update(self, chunk):
        n = len(chunk)
        mean = chunk.mean(axis=0, dtype=np.float64)
        m2 = ((chunk - mean) ** 2).sum(axis=0)
        delta = mean - self.mean
        total = self.count + n
        self.mean += delta * n / total
        self.m2 += m2 + delta ** 2 * self.count * n / total
        self.count = total
        np.minimum(self.low, chunk.min(axis=0), out=self.low)
        np.maximum(self.high, chunk.max(axis=0), out=self.high)

    @property
    def std(self):
        return np.sqrt(self.m2 / max(self.count - 1, 1))


class Normalizer:
    def __init__(self, moments, eps):
        self.offset = moments.mean.astype(np.float32)
        self.scale = (1.0 / (moments.std + eps)).astype(np.float32)

    def __call__(self, chunk):
        return (chunk - self.offset) * self.scale


def chunks(data, size):
    for start in range(0, len(data), size):
        yield data[start:start + size]


def main(data):
    moments = RunningMoments(data.shape[1])
    for chunk in chunks(data, CONFIG["chunk"]):
        moments.update(chunk)
    normalize = Normalizer(moments, CONFIG["eps"])
    normal = np.concatenate([normalize(c) for c in chunks(data, CONFIG["chunk"])])
    return normal, moments.mean, moments.std, moments.high - moments.low


def inputs():
    rng = np.random.default_rng(2)
    return ((rng.normal(size=(300, 3)) * [1, 5, 0.2] + [10, -3, 0]).astype(np.float32),)
