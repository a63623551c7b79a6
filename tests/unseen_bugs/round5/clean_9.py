"""Images of bytes are normalised to float32, and class counts give the weights of the loss."""
import numpy as np
import torch
import torch.nn.functional as F

MEAN, STD = (0.48, 0.45, 0.40), (0.22, 0.22, 0.22)


def normalize(images):
    x = images.permute(0, 3, 1, 2).to(torch.float32) / 255
    mean = torch.tensor(MEAN).view(1, 3, 1, 1)
    std = torch.tensor(STD).view(1, 3, 1, 1)
    return (x - mean) / std


def class_weights(labels, classes):
    counts = torch.bincount(labels, minlength=classes)
    return labels.numel() / (classes * counts.clamp(min=1))


def main(images, labels):
    x = normalize(images)
    features = x.mean(dim=(2, 3))
    weights = class_weights(labels, 3)
    loss = F.cross_entropy(features, labels, weight=weights)
    confusion = torch.zeros(3, 3, dtype=torch.long)
    confusion.index_put_((labels, features.argmax(1)), torch.ones_like(labels), accumulate=True)
    return loss, weights, confusion


def inputs():
    rng = np.random.default_rng(0)
    return (torch.from_numpy(rng.integers(0, 256, (6, 5, 5, 3)).astype(np.uint8)),
            torch.tensor([0, 1, 2, 2, 2, 1]))
