"""One functional SGD step with momentum and weight decay for a two-layer net."""
import torch
import torch.nn.functional as F
from torch.func import grad_and_value

LR, MOMENTUM, WEIGHT_DECAY = 0.1, 0.9, 1e-4


def forward(params, x):
    w1, b1, w2, b2 = params
    h = torch.relu(F.linear(x, w1, b1))
    return F.linear(h, w2, b2)


def loss_fn(params, x, y):
    return F.cross_entropy(forward(params, x), y)


def sgd(param, grad, buf):
    grad = grad + WEIGHT_DECAY * param
    buf = MOMENTUM * buf + grad
    return param - LR * buf, buf


def main(x, y, w1, b1, w2, b2):
    params = (w1, b1, w2, b2)
    bufs = tuple(torch.zeros_like(p) for p in params)
    losses = []
    for _ in range(3):
        grads, loss = grad_and_value(loss_fn)(params, x, y)
        stepped = [sgd(p, g, m) for p, g, m in zip(params, grads, bufs)]
        params = tuple(s[0] for s in stepped)
        bufs = tuple(s[1] for s in stepped)
        losses.append(loss)
    return (*params, torch.stack(losses))


def inputs():
    g = torch.Generator().manual_seed(2)
    x = torch.randn(12, 5, generator=g)
    y = torch.randint(0, 3, (12,), generator=g)
    w1 = torch.randn(8, 5, generator=g) / 5 ** 0.5
    w2 = torch.randn(3, 8, generator=g) / 8 ** 0.5
    return x, y, w1, torch.zeros(8), w2, torch.zeros(3)
