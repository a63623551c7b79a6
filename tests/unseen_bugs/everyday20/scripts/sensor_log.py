"""Read the log of the freezer probes and print the coldest and mean temperatures."""
import csv
import io

import numpy as np

LOG = """\
minute,probe_a,probe_b
0,8460,8322
5,8391,8270
10,8307,8233
15,8251,8204
20,8210,8187
25,8204,8190
30,8199,8215
35,8230,8246
"""


class Probe:
    """A 16 bit converter whose zero point is mid-scale of the lower quarter."""

    ZERO = 8192
    DEGREES_PER_COUNT = 0.0625

    def __init__(self, name, offset=0.0):
        self.name = name
        self.offset = offset
        self.counts = np.empty(0, dtype=np.uint16)

    def feed(self, values):
        new = np.array(values, dtype=np.uint16)
        self.counts = np.concatenate([self.counts, new])

    def celsius(self):
        above = self.counts - self.ZERO
        return above * self.DEGREES_PER_COUNT + self.offset

    def summary(self):
        t = self.celsius()
        return {"min": float(t.min()), "mean": float(t.mean()), "max": float(t.max())}


def read_log(text):
    probes = {"probe_a": Probe("probe_a", offset=0.25), "probe_b": Probe("probe_b", offset=-0.5)}
    for row in csv.DictReader(io.StringIO(text)):
        for name, probe in probes.items():
            probe.feed([int(row[name])])
    return probes


def main():
    for name, probe in read_log(LOG).items():
        s = probe.summary()
        print(f"{name}: min {s['min']:.2f}  mean {s['mean']:.2f}  max {s['max']:.2f} C")


if __name__ == "__main__":
    main()
