"""Classify uint8 images: scale, normalise, resize, small conv net."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SmallNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.5, 0.45, 0.4]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.25, 0.25, 0.3]).view(1, 3, 1, 1))
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(16, classes)

    def forward(self, images):
        x = images.permute(0, 3, 1, 2).float().div(255.0)
        x = F.interpolate(x, size=(16, 16), mode="bilinear", align_corners=False)
        x = (x - self.mean) / self.std
        return self.classifier(self.features(x))


torch.manual_seed(11)
net = SmallNet().eval()


@torch.inference_mode()
def main(images):
    logits = net(images)
    probs = logits.softmax(dim=1)
    confidence, label = probs.max(dim=1)
    return logits, confidence, label


def inputs():
    g = torch.Generator().manual_seed(12)
    return (torch.randint(0, 256, (3, 20, 24, 3), generator=g, dtype=torch.uint8),)
