"""Histogram and percentiles of request latencies for the weekly report."""
import numpy as np

BIN_MS = 0.5
N_BINS = 6000


def sample_latencies(n=40_000, seed=3):
    rng = np.random.default_rng(seed)
    fast = rng.uniform(200, 1600, n // 2)
    slow = rng.uniform(900, 2900, n - n // 2)
    return np.concatenate([fast, slow]).astype(np.float32)


class LatencyReport:
    def __init__(self, bin_ms=BIN_MS, n_bins=N_BINS):
        self.edges = np.arange(n_bins + 1) * bin_ms
        self.counts = np.zeros(n_bins, dtype=np.int64)

    def add(self, latencies):
        self.counts += np.histogram(latencies, bins=self.edges)[0]

    @property
    def density(self):
        # goes into the archive next to the others, which are half precision
        return (self.counts / self.counts.sum()).astype(np.float16)

    def percentile(self, q):
        cdf = np.cumsum(self.density)
        where = np.searchsorted(cdf, q / 100)
        return float(self.edges[where])


def bar(share, width=40):
    return "#" * int(round(share * width))


def main():
    lat = sample_latencies()
    report = LatencyReport()
    for chunk in np.array_split(lat, 8):
        report.add(chunk)

    coarse = report.counts.reshape(12, -1).sum(axis=1)
    for i, c in enumerate(coarse):
        print(f"{i * 250:5d} ms {bar(c / coarse.max())}")
    for q in (25, 50, 90, 99):
        print(f"p{q}: {report.percentile(q):.1f} ms")


if __name__ == "__main__":
    main()
