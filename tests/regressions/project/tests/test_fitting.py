import numpy as np
from fieldkit import fitting


def test_slope_of_lines():
    lines = np.outer([1, 2], np.arange(9)).astype(np.float32)
    np.testing.assert_allclose(fitting.slope(lines), [1, 2], rtol=1e-6)


def test_log_loss_of_a_coin():
    half = np.full(4, 0.5, np.float32)
    np.testing.assert_allclose(fitting.log_loss(np.ones(4, np.float32), half), np.log(2), rtol=1e-5)


def test_soft_threshold():
    x = np.array([-3, -0.5, 2], np.float32)
    np.testing.assert_allclose(fitting.soft_threshold(x, np.float32(1)), [-2, 0, 1])


def test_coherent_amplitudes():
    np.testing.assert_allclose(fitting.coherent_amplitudes(2, 3), [1, 2, 4 / np.sqrt(2)])
