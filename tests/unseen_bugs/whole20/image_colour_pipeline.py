"""Camera colour pipeline: uint8 linear-ish sensor RGB to display sRGB uint8.

Application: photo development / machine-vision preview.  De-companding by a 256-entry table, white balance, colour
correction matrix, saturation around luminance, filmic (Reinhard) tone curve, sRGB encoding, 8-bit quantisation.
Public code with such a loop: colour-science (https://github.com/colour-science/colour), fast-openISP
(https://github.com/QiuJueqin/fast-openISP), rawpy post-processing notebooks.
"""
import numpy as np

TOLERANCE = 1 / 255  # one grey level: float32 pow and matmul differ in the last bit before rounding

LUMA = np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)


def saturate(rgb, amount):
    luma = (rgb @ LUMA)[..., None]
    return luma + amount * (rgb - luma)


def tonemap(rgb, white):
    return rgb * (1 + rgb / (white * white)) / (1 + rgb)


def encode_srgb(lin):
    return np.where(lin <= 0.0031308, 12.92 * lin, 1.055 * lin ** (1 / 2.4) - 0.055)


def main(img, lut, gains, ccm, exposure, saturation, white=2.0):
    rgb = lut[img] * (gains * np.float32(exposure))
    rgb = rgb @ ccm.T
    rgb = saturate(rgb, saturation)
    rgb = tonemap(np.maximum(rgb, 0), white)
    out = encode_srgb(np.clip(rgb, 0, 1))
    return (out * 255 + 0.5).astype(np.uint8)


def inputs(rng):
    h, w = 240, 320
    yy, xx = np.mgrid[0:h, 0:w]
    base = 110 + 80 * np.sin(xx / 37.0) * np.cos(yy / 23.0)
    img = base[..., None] + rng.normal(0, 12, (h, w, 3)) + np.array([10, 0, -15])
    lut = ((np.arange(256) / 255) ** 1.8).astype(np.float32)
    gains = np.array([1.9, 1.0, 1.6], dtype=np.float32)
    ccm = np.array([[1.62, -0.45, -0.17], [-0.23, 1.41, -0.18], [0.02, -0.55, 1.53]], dtype=np.float32)
    return np.clip(img, 0, 255).astype(np.uint8), lut, gains, ccm, 1.3, 1.2


try:
    import jax
    import jax.numpy as jnp
except ImportError:
    pass


def jax_main(img, lut, gains, ccm, exposure, saturation, white=2.0):
    rgb = lut[img] * (gains * exposure)
    rgb = rgb @ ccm.T
    luma = (rgb @ LUMA)[..., None]
    rgb = jnp.maximum(luma + saturation * (rgb - luma), 0)
    rgb = rgb * (1 + rgb / (white * white)) / (1 + rgb)
    rgb = jnp.clip(rgb, 0, 1)
    out = jnp.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** (1 / 2.4) - 0.055)
    return (out * 255 + 0.5).astype(jnp.uint8)


try:
    import torch
except ImportError:
    pass


def torch_main(img, lut, gains, ccm, exposure, saturation, white=2.0):
    rgb = lut[img.to(torch.int32)] * (gains * exposure)
    rgb = rgb @ ccm.T
    luma = (rgb @ torch.tensor([0.2126, 0.7152, 0.0722]))[..., None]
    rgb = torch.relu(luma + saturation * (rgb - luma))
    rgb = rgb * (1 + rgb / (white * white)) / (1 + rgb)
    rgb = rgb.clamp(0, 1)
    out = torch.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** (1 / 2.4) - 0.055)
    return (out * 255 + 0.5).to(torch.uint8)


def numba_main(img, lut, gains, ccm, exposure, saturation, white=2.0):
    h, w, _ = img.shape
    out = np.empty_like(img)
    inv_white2 = np.float32(1 / (white * white))
    exposure = np.float32(exposure)
    saturation = np.float32(saturation)
    one = np.float32(1)
    for y in range(h):
        for x in range(w):
            r = lut[img[y, x, 0]] * gains[0] * exposure
            g = lut[img[y, x, 1]] * gains[1] * exposure
            b = lut[img[y, x, 2]] * gains[2] * exposure
            r2 = ccm[0, 0] * r + ccm[0, 1] * g + ccm[0, 2] * b
            g2 = ccm[1, 0] * r + ccm[1, 1] * g + ccm[1, 2] * b
            b2 = ccm[2, 0] * r + ccm[2, 1] * g + ccm[2, 2] * b
            luma = np.float32(0.2126) * r2 + np.float32(0.7152) * g2 + np.float32(0.0722) * b2
            for c in range(3):
                v = r2 if c == 0 else (g2 if c == 1 else b2)
                v = max(luma + saturation * (v - luma), np.float32(0))
                v = min(v * (one + v * inv_white2) / (one + v), one)
                if v <= np.float32(0.0031308):
                    v = np.float32(12.92) * v
                else:
                    v = np.float32(1.055) * v ** np.float32(1 / 2.4) - np.float32(0.055)
                out[y, x, c] = np.uint8(v * np.float32(255) + np.float32(0.5))
    return out
