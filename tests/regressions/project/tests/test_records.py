import numpy as np
from fieldkit import records


def scan(lines, centre):
    header = np.array([(lines, centre, 2.0)], records.HEADER)
    return records.read(header.tobytes() + np.arange(4, dtype=np.float32).tobytes(), 4)


def test_offset():
    assert scan(256, 100).offset()[0] == 56


def test_calibrated():
    np.testing.assert_allclose(scan(4, 2).calibrated(), [0, 2, 4, 6])


def test_daily_means():
    grid = np.ones((4, 2, 3), np.float16)
    np.testing.assert_allclose(records.daily_means(grid), 1)


def test_observation():
    seen = records.observation(np.zeros(2, np.float32), np.ones(2, np.float32), 0.0)
    np.testing.assert_allclose(seen, [0, 0, 1, 1, 0, 1])
