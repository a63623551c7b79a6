"""Linear regression from scratch: makes a data set, reads it in minibatches, and fits the
weight and the bias to it by stochastic gradient descent.

https://github.com/ShusenTang/Dive-into-DL-PyTorch/issues/31
"""
import random

import numpy as np
import torch

TRUE_W = [2, -3.4]
TRUE_B = 4.2


def synthetic_data(true_w, true_b, num_examples, seed=0):
    rng = np.random.RandomState(seed)
    num_inputs = len(true_w)
    features = torch.from_numpy(rng.normal(0, 1, (num_examples, num_inputs)))
    labels = true_w[0] * features[:, 0] + true_w[1] * features[:, 1] + true_b
    labels += torch.from_numpy(rng.normal(0, 0.01, size=labels.size()))
    return features, labels


def data_iter(batch_size, features, labels):
    num_examples = len(features)
    indices = list(range(num_examples))
    random.Random(0).shuffle(indices)
    for i in range(0, num_examples, batch_size):
        j = torch.LongTensor(indices[i: min(i + batch_size, num_examples)])
        yield features.index_select(0, j), labels.index_select(0, j)


def linreg(X, w, b):
    return torch.mm(X, w) + b


def squared_loss(y_hat, y):
    return (y_hat - y.view(y_hat.size())) ** 2 / 2


def sgd(params, lr, batch_size):
    for param in params:
        param.data -= lr * param.grad / batch_size
        param.grad.zero_()


def train(w, b, features, labels, lr=0.05, num_epochs=6, batch_size=10):
    net, loss = linreg, squared_loss
    history = []
    for epoch in range(num_epochs):
        for X, y in data_iter(batch_size, features, labels):
            l = loss(net(X, w, b), y).sum()
            l.backward()
            sgd([w, b], lr, batch_size)
        with torch.no_grad():
            history.append(loss(net(features, w, b), labels).mean())
    return torch.stack(history)


def main(w, b):
    w = w.clone().requires_grad_(True)
    b = b.clone().requires_grad_(True)
    features, labels = synthetic_data(TRUE_W, TRUE_B, 200)
    history = train(w, b, features, labels)
    return w.detach(), b.detach(), history


def inputs():
    g = torch.Generator().manual_seed(0)
    return torch.normal(0.0, 0.01, (2, 1), generator=g), torch.zeros(1)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
