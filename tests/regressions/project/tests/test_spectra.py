import numpy as np
from fieldkit import spectra

SIGNAL = np.sin(2 * np.pi * 10 * np.arange(64, dtype=np.float32) / 64).astype(np.float32)


def test_centroid_is_at_the_tone():
    assert abs(spectra.centroid(SIGNAL, 64) - 10) < 0.1


def test_centroid_of_rows():
    assert spectra.centroid(np.stack([SIGNAL, SIGNAL]), 64).shape == (2,)


def test_normalized_has_unit_energy():
    np.testing.assert_allclose((spectra.normalized(SIGNAL) ** 2).sum(), 0.5, rtol=1e-4)


def test_resampled_keeps_the_ends():
    short = spectra.resampled(SIGNAL, 16)
    assert short.shape == (16,)
    np.testing.assert_allclose(short[[0, -1]], SIGNAL[[0, -1]], atol=1e-5)
