"""Robust scaling of a double-precision table by quantiles, and winsorised moments."""
import torch


def robust_scale(x):
    q = torch.tensor([0.25, 0.5, 0.75], dtype=x.dtype)
    lo, med, hi = torch.quantile(x, q, dim=0)
    iqr = (hi - lo).clamp(min=1e-12)
    return (x - med) / iqr, med, iqr


def winsorise(x, p):
    low = torch.quantile(x, p, dim=0)
    high = torch.quantile(x, 1.0 - p, dim=0)
    return torch.minimum(torch.maximum(x, low), high)


def skewness(x):
    d = x - x.mean(dim=0)
    return (d ** 3).mean(dim=0) / (d ** 2).mean(dim=0) ** 1.5


def main(x):
    z, med, iqr = robust_scale(x)
    w = winsorise(z, 0.05)
    cov = torch.cov(w.T)
    n_outliers = (z.abs() > 3.0).sum(dim=0)
    return w, med, iqr, skewness(w), cov, n_outliers


def inputs():
    g = torch.Generator().manual_seed(17)
    x = torch.randn(60, 3, generator=g, dtype=torch.float64)
    x = x * torch.tensor([1.0, 10.0, 0.1], dtype=torch.float64) + 5.0
    x[0, 0], x[5, 2] = 40.0, -3.0
    return (x,)
