"""FFT convolution, phase-only correlation and a fractional delay in complex64."""
import math

import torch


def fft_convolve(x, kernel):
    n = x.shape[-1] + kernel.shape[-1] - 1
    size = 1 << (n - 1).bit_length()
    spec = torch.fft.rfft(x, size) * torch.fft.rfft(kernel, size)
    return torch.fft.irfft(spec, size)[..., :n]


def phase_correlation(a, b):
    cross = torch.fft.fft(a) * torch.fft.fft(b).conj()
    cross = cross / cross.abs().clamp(min=1e-8)
    return torch.fft.ifft(cross).real


def fractional_delay(x, delay):
    n = x.shape[-1]
    freq = torch.fft.rfftfreq(n, dtype=x.dtype)
    phase = -2.0 * math.pi * freq * delay
    shift = torch.polar(torch.ones_like(phase), phase)
    return torch.fft.irfft(torch.fft.rfft(x) * shift, n)


def main(x, kernel):
    smooth = fft_convolve(x, kernel)
    rolled = torch.roll(x, 7, dims=-1)
    lag = phase_correlation(rolled, x).argmax(dim=-1)
    delayed = fractional_delay(x, 0.5)
    power = torch.fft.rfft(x).abs().square()
    return smooth, lag, delayed, power


def inputs():
    g = torch.Generator().manual_seed(21)
    return torch.randn(3, 63, generator=g), torch.hann_window(9) / 4.0
