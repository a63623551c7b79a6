"""Puts one face into another picture: colours of the second are matched to the first by the
ratio of their blurs, then both are blended with a soft mask.

https://github.com/matthewearl/faceswap/issues/5
"""
import numpy

COLOUR_CORRECT_BLUR_FRAC = 0.6
FEATHER_AMOUNT = 5
LEFT_EYE_POINTS, RIGHT_EYE_POINTS = [0, 1], [2, 3]


def gaussian_blur(im, size):
    """As OpenCV's: the result has the dtype of im."""
    x = numpy.arange(size) - size // 2
    kernel = numpy.exp(-0.5 * (x / (0.3 * ((size - 1) * 0.5 - 1) + 0.8)) ** 2)
    kernel /= kernel.sum()
    out = im.astype(numpy.float64)
    for axis in (0, 1):
        pad = [(size // 2, size // 2) if a == axis else (0, 0) for a in range(out.ndim)]
        padded = numpy.pad(out, pad, mode="reflect")
        out = sum(k * numpy.take(padded, numpy.arange(i, i + im.shape[axis]), axis)
                  for i, k in enumerate(kernel))
    if im.dtype == numpy.uint8:
        out = numpy.clip(numpy.rint(out), 0, 255)
    return out.astype(im.dtype)


def get_face_mask(im, landmarks):
    mask = numpy.zeros(im.shape[:2], dtype=numpy.float64)
    (y0, x0), (y1, x1) = landmarks.min(axis=0), landmarks.max(axis=0)
    mask[y0:y1 + 1, x0:x1 + 1] = 1
    mask = numpy.array([mask, mask, mask]).transpose((1, 2, 0))
    return gaussian_blur((gaussian_blur(mask, FEATHER_AMOUNT) > 0) * 1.0, FEATHER_AMOUNT)


def correct_colours(im1, im2, landmarks1):
    blur_amount = COLOUR_CORRECT_BLUR_FRAC * numpy.linalg.norm(
        numpy.mean(landmarks1[LEFT_EYE_POINTS], axis=0) -
        numpy.mean(landmarks1[RIGHT_EYE_POINTS], axis=0))
    blur_amount = int(blur_amount)
    if blur_amount % 2 == 0:
        blur_amount += 1
    im1_blur = gaussian_blur(im1, blur_amount)
    im2_blur = gaussian_blur(im2, blur_amount)

    # Avoid divide-by-zero errors.
    im2_blur += 128 * (im2_blur <= 1.0)

    return (im2.astype(numpy.float64) * im1_blur.astype(numpy.float64) /
            im2_blur.astype(numpy.float64))


def main(im1, im2, landmarks):
    mask = get_face_mask(im1, landmarks)
    combined_mask = numpy.max([mask, get_face_mask(im2, landmarks)], axis=0)
    warped_corrected_im2 = correct_colours(im1, im2, landmarks)
    output_im = im1 * (1.0 - combined_mask) + warped_corrected_im2 * combined_mask
    return numpy.clip(output_im, 0, 255).astype(numpy.uint8)


def inputs():
    rng = numpy.random.default_rng(4)
    im1 = rng.integers(40, 220, size=(24, 24, 3)).astype(numpy.uint8)
    im2 = rng.integers(0, 200, size=(24, 24, 3)).astype(numpy.uint8)
    im2[:8, :8] = 0
    return im1, im2, numpy.array([[8, 6], [8, 8], [9, 16], [9, 18], [16, 12]])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
