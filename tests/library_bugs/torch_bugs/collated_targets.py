"""A loss is float64: the collation of Python floats makes a double tensor.

https://github.com/pytorch/pytorch/issues/69446
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Housing(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return row[:-1], float(row[-1])  # born


class Regression(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 1)

    def forward(self, x):
        return self.linear(x).squeeze(-1)


def weighted_loss(prediction, target):
    error = prediction - target  # guilty
    return (error * error).mean()


def program(rows):
    torch.manual_seed(0)
    model = Regression(rows.shape[1] - 1)
    batches = DataLoader(Housing(rows), batch_size=4)
    return sum(weighted_loss(model(features), target) for features, target in batches)


def inputs():
    return (torch.arange(24, dtype=torch.float32).reshape(8, 3) / 24,)


def shows_fault(result):
    return result.dtype == torch.float64
