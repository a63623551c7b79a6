"""Points of a data frame are written as lines of the line protocol, in the precision asked for.

https://github.com/influxdata/influxdb-python/issues/649
"""
import numpy as np

FACTORS = {"ns": 1, "u": 10 ** 3, "ms": 10 ** 6, "s": 10 ** 9}


class DataFrame:
    def __init__(self, index, columns):
        self.index = np.asarray(index, dtype="datetime64[ns]")
        self.columns = columns

    def rows(self):
        for i in range(len(self.index)):
            yield {name: column[i] for name, column in self.columns.items()}


class Client:
    def __init__(self, time_precision="ns"):
        self.factor = FACTORS[time_precision]
        self.written = {}

    def convert_times(self, index):
        stamps = index.astype(np.int64)
        return (stamps / self.factor).astype(np.int64)

    def to_lines(self, frame, measurement):
        times = self.convert_times(frame.index)
        for stamp, row in zip(times, frame.rows()):
            fields = ",".join("%s=%.6g" % (k, v) for k, v in sorted(row.items()))
            yield "%s %s %d" % (measurement, fields, stamp)

    def write_points(self, frame, measurement):
        for line in self.to_lines(frame, measurement):
            name, fields, stamp = line.split(" ")
            self.written[name, int(stamp)] = fields
        return len(self.written)

    def stamps(self):
        return np.array(sorted(stamp for _, stamp in self.written), dtype=np.int64)


def main(stamps, temperature):
    client = Client("ns")
    frame = DataFrame(stamps.astype("datetime64[ns]"), {"temperature": temperature})
    count = client.write_points(frame, "room")
    return client.stamps(), np.array([count])


def inputs():
    stamps = 1539424800123456789 + np.array([0, 7, 50, 101, 333, 1001], dtype=np.int64)
    return stamps, np.linspace(20, 21, 6)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
