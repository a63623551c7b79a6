import numpy as np
import pytest
from fieldkit import images


@pytest.mark.parametrize("percent", [50, 80])
def test_brightened(percent):
    image = np.array([[0, 1], [2, 3]], np.uint8)
    wanted = (image.astype(int) * percent) // 100
    np.testing.assert_array_equal(images.brightened(image, percent), wanted)


def test_without_dark_level():
    image = np.full((2, 3), 10.5, np.float32)
    np.testing.assert_allclose(images.without_dark_level(image, np.array([3, 4, 5])), 6.5)


def test_sharpened_keeps_a_constant_interior():
    image = np.full((5, 5), 2, np.float32)
    np.testing.assert_allclose(images.sharpened(image)[1:-1, 1:-1], 2)
