"""Programs of PyTorch that raise."""

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

CASES = {}


def case(*inputs):
    def mark(function):
        CASES[function.__name__] = function, inputs
        return function

    return mark


X = torch.linspace(0, 1, 12).reshape(3, 4)


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        bands = np.linspace(0, 1, 4)
        self.register_buffer("bands", torch.from_numpy(bands))  # named
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        h = torch.sin(x * self.bands)
        return self.head(h)  # named


features = Features()


CASES["features"] = features, (X,)


@case(X)
def masked(x):
    out = torch.zeros_like(x)  # named
    mask = x > 0.5
    kept = x[mask].half()  # named
    out[mask] = kept  # named
    return out


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("counts", torch.zeros(3, dtype=torch.long))  # named

    def forward(self, codes, weights):
        updated = self.counts.clone()
        updated.index_add_(0, codes, weights)  # named
        return updated


CASES["counter"] = Counter(), (torch.tensor([0, 2]), torch.tensor([0.5, 1.0]))


@case(X)
def averaged(x):
    means = [x.mean(0), x.double().mean(0)]  # named
    average, target = means
    average.lerp_(target, 0.1)  # named
    return average


class Blur(nn.Module):
    def __init__(self):
        super().__init__()
        kernel = torch.tensor(np.outer([1, 2, 1], [1, 2, 1]) / 16)  # named
        self.kernel = kernel[None, None]

    def forward(self, x):
        return F.conv2d(x, self.kernel)  # named


CASES["blur"] = Blur(), (torch.ones(1, 1, 5, 5),)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(4, 4)
        self.register_buffer("store", torch.zeros(8, 4))  # named

    def forward(self, x, at):
        with torch.autocast("cpu", torch.bfloat16):
            values = self.project(x)  # named
        store = self.store.clone()
        store[at] = values  # named
        return store


CASES["memory"] = Memory(), (X, torch.tensor([0, 3, 5]))


def rope(x):
    freq = np.exp(np.arange(x.shape[-1]))
    angles = torch.tensor(freq)  # named
    return x * torch.cos(angles)


@case(X[None])
def attention(x):
    q, k = rope(x), x
    return F.scaled_dot_product_attention(q, k, x)  # named


def batch(labels):
    return {"x": X, "y": labels.int()}  # named


@case(torch.tensor([0, 1, 3]))
def loss(labels):
    data = batch(labels)
    return F.cross_entropy(data["x"], data["y"])  # named


class Quantized(nn.Module):
    def __init__(self, weight, precision=torch.float32):  # named
        super().__init__()
        self.precision = precision
        self.register_buffer("scale", weight.abs().amax(1).float())
        self.register_buffer("weight", (weight / self.scale[:, None]).round())

    def forward(self, x):
        x = x.to(self.precision)  # named
        return F.linear(x, self.weight * self.scale[:, None])


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = Quantized(torch.ones(4, 4, dtype=torch.bfloat16))
        self.register_buffer("cache", torch.zeros(3, 4, dtype=torch.bfloat16))  # named

    def forward(self, x):
        self.cache[torch.tensor([0, 1])] = self.linear(x.bfloat16())  # named
        return self.cache


CASES["cached"] = Cached(), (X,)


class Buffer:
    def __init__(self, dtype):
        self.rows = np.ones((2, 4), dtype=dtype)

    def sample(self):
        return torch.as_tensor(self.rows)  # named


@case(X, torch.ones(8, 2))
def critic(x, weight):
    features = torch.tanh(torch.ones(2, 4))
    joined = torch.cat([features, Buffer(np.float64).sample()], dim=1)  # named
    return joined @ weight  # named
