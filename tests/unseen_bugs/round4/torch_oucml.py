"""Linear regression from its parts: a synthetic data set, mini-batches, a model of two tensors, a
squared loss and stochastic gradient descent.

https://github.com/OUCMachineLearning/OUCML/issues/24
"""
import numpy as np
import torch

CONFIG = {"num_inputs": 2, "num_examples": 400, "batch_size": 10, "lr": 0.03, "num_epochs": 8,
          "true_w": (2.0, -3.4), "true_b": 4.2, "noise": 0.01}


class SyntheticData:
    def __init__(self, config, rng):
        size = (config["num_examples"], config["num_inputs"])
        self.features = torch.from_numpy(rng.normal(0, 1, size))
        self.labels = self.make_labels(config)
        noise = rng.normal(0, config["noise"], size=self.labels.shape)
        self.labels += torch.tensor(noise, dtype=self.labels.dtype)

    def make_labels(self, config):
        labels = torch.full((len(self.features),), config["true_b"], dtype=self.features.dtype)
        for i, w in enumerate(config["true_w"]):
            labels = labels + w * self.features[:, i]
        return labels

    def __len__(self):
        return len(self.features)


def data_iter(batch_size, data, rng):
    indices = rng.permutation(len(data))
    for i in range(0, len(data), batch_size):
        j = torch.from_numpy(indices[i:i + batch_size])
        yield data.features.index_select(0, j), data.labels.index_select(0, j)


def init_params(config, rng):
    initial = rng.normal(0, 0.01, (config["num_inputs"], 1))
    w = torch.tensor(initial, dtype=torch.float32, requires_grad=True)
    b = torch.zeros(1, dtype=torch.float32, requires_grad=True)
    return w, b


def linreg(X, w, b):
    return torch.mm(X, w) + b


def squared_loss(y_hat, y):
    return (y_hat - y.view(y_hat.size())) ** 2 / 2


def sgd(params, lr, batch_size):
    for param in params:
        param.data -= lr * param.grad / batch_size


def main(seed):
    rng = np.random.default_rng(int(seed))
    data = SyntheticData(CONFIG, rng)
    w, b = init_params(CONFIG, rng)
    losses = []
    for epoch in range(CONFIG["num_epochs"]):
        for X, y in data_iter(CONFIG["batch_size"], data, rng):
            squared_loss(linreg(X, w, b), y).sum().backward()
            sgd([w, b], CONFIG["lr"], CONFIG["batch_size"])
            w.grad.zero_()
            b.grad.zero_()
        losses.append(squared_loss(linreg(data.features, w, b), data.labels).mean().detach())
    return w, b, torch.stack(losses)


def inputs():
    return (torch.tensor(11),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
