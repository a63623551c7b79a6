"""Validates a binary classifier in the precision of the trainer and collects its accuracy.

https://github.com/Lightning-AI/pytorch-lightning/issues/4840
"""
import torch

CONFIG = {"precision": 16, "threshold": 0.5, "batch_size": 6}


def _input_format_classification(preds, target, threshold):
    if not (preds.ndim == target.ndim or preds.ndim == target.ndim + 1):
        raise ValueError("preds and target must have same number of dimensions, or one additional"
                         " dimension for preds")
    if preds.ndim == target.ndim + 1:
        preds = torch.argmax(preds, dim=1)
    if preds.ndim == target.ndim and preds.dtype == torch.float:
        preds = (preds >= threshold).int()
    return preds, target


class Metric(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._defaults = {}

    def add_state(self, name, default):
        self._defaults[name] = default
        self.register_buffer(name, default.clone())

    def reset(self):
        for name, default in self._defaults.items():
            getattr(self, name).copy_(default)


class Accuracy(Metric):
    def __init__(self, threshold=0.5):
        super().__init__()
        self.threshold = threshold
        self.add_state("correct", torch.tensor(0))
        self.add_state("total", torch.tensor(0))

    def update(self, preds, target):
        preds, target = _input_format_classification(preds, target, self.threshold)
        assert preds.shape == target.shape
        self.correct += torch.sum(preds == target)
        self.total += target.numel()

    def compute(self):
        return self.correct.float() / self.total


class Trainer:
    dtypes = {16: torch.float16, 32: torch.float32}

    def __init__(self, config):
        self.dtype = self.dtypes[config["precision"]]
        self.batch_size = config["batch_size"]

    def validate(self, weight, bias, features, target, metrics):
        logits = []
        for i in range(0, len(features), self.batch_size):
            rows = slice(i, i + self.batch_size)
            out = (features[rows] @ weight + bias).to(self.dtype)
            probabilities = torch.sigmoid(out)
            for metric, form in metrics:
                metric.update(form(probabilities), target[rows])
            logits.append(out)
        return torch.cat(logits)


def two_columns(p):
    return torch.stack([1 - p, p], dim=1)


def main(weight, bias, features, target):
    binary, multiclass = Accuracy(CONFIG["threshold"]), Accuracy()
    trainer = Trainer(CONFIG)
    trainer.validate(weight, bias, features, target,
                     [(binary, lambda p: p), (multiclass, two_columns)])
    return binary.compute(), multiclass.compute(), binary.total


def inputs():
    g = torch.Generator().manual_seed(6)
    features = torch.randn(20, 4, generator=g)
    weight = torch.tensor([1.5, -1.0, 0.5, 0.2])
    target = (features @ weight + torch.randn(20, generator=g) > 0).long()
    return weight, torch.tensor(0.1), features, target


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
