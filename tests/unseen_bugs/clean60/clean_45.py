"""Adam written out for logistic regression, moments returned with the weights."""
import torch
import torch.nn.functional as F

LR, BETA1, BETA2, EPS = 1e-2, 0.9, 0.999, 1e-8


def adam_step(p, g, m, v, t):
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    m_hat = m / (1 - BETA1 ** t)
    v_hat = v / (1 - BETA2 ** t)
    return p - LR * m_hat / (v_hat.sqrt() + EPS), m, v


def gradient(w, x, y):
    w = w.detach().requires_grad_(True)
    logits = x @ w
    loss = F.binary_cross_entropy_with_logits(logits, y)
    (g,) = torch.autograd.grad(loss, w)
    return g, loss.detach()


def main(x, labels, w):
    y = labels.to(x.dtype)
    m = torch.zeros_like(w)
    v = torch.zeros_like(w)
    for t in range(1, 11):
        g, loss = gradient(w, x, y)
        w, m, v = adam_step(w, g, m, v, t)
    return w, m, v, loss


def inputs():
    g = torch.Generator().manual_seed(3)
    x = torch.randn(30, 4, generator=g)
    labels = (x[:, 0] + x[:, 1] > 0).long()
    return x, labels, torch.zeros(4)
