"""An offset of -1 is 65535: uint16 fields of a scan header are subtracted.

https://github.com/pehses/twixtools/pull/35
"""

import numpy as np

HEADER = np.dtype([("columns", "<u2"), ("lines", "<u2"), ("partitions", "<u2"), ("center", "<u2")])


class ScanMap:
    def __init__(self, blob):
        header = np.frombuffer(blob, HEADER, count=1)
        self.base_size = {name: header[name] for name in ("columns", "lines", "partitions")}
        self.kspace_center = header["center"]
        self.zero_fill = True

    def partition_offset(self):
        if not self.zero_fill:
            return np.zeros(1, np.int64)
        return self.base_size["partitions"] - 2 * self.kspace_center  # guilty

    def line_indices(self, acquired):
        return acquired + self.partition_offset()


def program(blob, acquired):
    return ScanMap(blob).line_indices(acquired)


def inputs(folder):
    header = np.array([(256, 256, 255, 128)], HEADER)
    return header.tobytes(), np.arange(10, 20, dtype=np.int32)


def shows_fault(result):
    return result[0] != 9
