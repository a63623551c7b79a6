"""Trains a small segmentation head in half precision with a compound loss of Dice and Jaccard.

https://github.com/qubvel-org/segmentation_models.pytorch/issues/463
"""
import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {"classes": 2, "losses": {"dice": 1.0, "jaccard": 0.5}, "smooth": 1.0, "lr": 0.05}


def soft_dice_score(output, target, smooth=0.0, eps=1e-7, dims=None):
    assert output.size() == target.size()
    intersection = torch.sum(output * target, dim=dims)
    cardinality = torch.sum(output + target, dim=dims)
    return (2.0 * intersection + smooth) / (cardinality + smooth).clamp_min(eps)


def soft_jaccard_score(output, target, smooth=0.0, eps=1e-7, dims=None):
    assert output.size() == target.size()
    intersection = torch.sum(output * target, dim=dims)
    cardinality = torch.sum(output + target, dim=dims)
    union = cardinality - intersection
    return (intersection + smooth) / (union + smooth).clamp_min(eps)


class RegionLoss(nn.Module):
    def __init__(self, score, smooth=0.0, from_logits=True):
        super().__init__()
        self.score, self.smooth = score, smooth
        self.from_logits = from_logits

    def forward(self, y_pred, y_true):
        if self.from_logits:
            y_pred = F.logsigmoid(y_pred).exp()
        bs, classes = y_pred.shape[:2]
        y_true = y_true.reshape(bs, classes, -1).type_as(y_pred)
        y_pred = y_pred.reshape(bs, classes, -1)
        scores = self.score(y_pred, y_true, smooth=self.smooth, dims=(0, 2))
        present = y_true.sum(dim=(0, 2)) > 0
        return ((1.0 - scores) * present).mean()


class CompoundLoss(nn.Module):
    SCORES = {"dice": soft_dice_score, "jaccard": soft_jaccard_score}

    def __init__(self, weights, smooth):
        super().__init__()
        self.losses = nn.ModuleList(RegionLoss(self.SCORES[k], smooth) for k in weights)
        self.weights = list(weights.values())

    def forward(self, y_pred, y_true):
        return sum(w * loss(y_pred, y_true) for w, loss in zip(self.weights, self.losses))


class SegmentationHead(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.conv = nn.Conv2d(channels, classes, kernel_size=1)

    def forward(self, x):
        return self.conv(x)


def train_step(head, criterion, features, masks, lr):
    loss = criterion(head(features), masks)
    grads = torch.autograd.grad(loss, list(head.parameters()))
    with torch.no_grad():
        for p, g in zip(head.parameters(), grads):
            p -= lr * g
    return loss.detach()


def main(features, masks):
    torch.manual_seed(0)
    head = SegmentationHead(features.shape[1], CONFIG["classes"]).half()
    criterion = CompoundLoss(CONFIG["losses"], CONFIG["smooth"])
    losses = [train_step(head, criterion, features.half(), masks, CONFIG["lr"]) for _ in range(2)]
    return torch.stack(losses), head.conv.bias.detach()


def inputs():
    g = torch.Generator().manual_seed(1)
    features = torch.randn(2, 3, 256, 320, generator=g)
    masks = torch.zeros(2, 2, 256, 320)
    masks[:, 0, 8:] = 1.0
    masks[:, 1, :, :250] = 1.0
    return features, masks


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
