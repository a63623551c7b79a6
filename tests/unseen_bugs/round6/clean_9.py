"""Training of a small segmentation network in torch: images of bytes, labels with an ignored
class, class weights from counts, and the confusion matrix in int64."""
import torch
from torch import nn
from torch.nn import functional as F

CONFIG = {"classes": 3, "ignore": 255, "mean": (0.45, 0.43, 0.4), "std": (0.25, 0.24, 0.26)}


class Tiles(torch.utils.data.Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.mean = torch.tensor(CONFIG["mean"])[:, None, None]
        self.std = torch.tensor(CONFIG["std"])[:, None, None]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i].permute(2, 0, 1).to(torch.float32) / 255
        return (image - self.mean) / self.std, self.labels[i].long()


def class_weights(labels, classes, ignore):
    counts = torch.bincount(labels[labels != ignore].long(), minlength=classes)
    share = counts / counts.sum()
    return 1.0 / (share + 0.05)


class Net(nn.Module):
    def __init__(self, classes, width=8):
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        h = F.relu(self.norm(self.down(x)))
        h = F.relu(self.mid(h)) + h
        return F.interpolate(self.head(h), size=x.shape[-2:], mode="bilinear")


class Confusion:
    def __init__(self, classes, ignore):
        self.matrix, self.classes, self.ignore = torch.zeros(classes, classes, dtype=torch.int64), classes, ignore

    def update(self, prediction, target):
        keep = target != self.ignore
        index = target[keep] * self.classes + prediction[keep]
        self.matrix += torch.bincount(index, minlength=self.classes ** 2).view_as(self.matrix)

    def iou(self):
        hit = self.matrix.diagonal()
        union = self.matrix.sum(dim=0) + self.matrix.sum(dim=1) - hit
        return hit / union.clamp(min=1)


def main(images, labels):
    torch.manual_seed(0)
    c = CONFIG
    loader = torch.utils.data.DataLoader(Tiles(images, labels), batch_size=4)
    net = Net(c["classes"])
    criterion = nn.CrossEntropyLoss(weight=class_weights(labels, c["classes"], c["ignore"]), ignore_index=c["ignore"])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    losses, confusion = [], Confusion(c["classes"], c["ignore"])
    for epoch in range(4):
        total, seen = 0.0, 0
        for image, label in loader:
            logits = net(image)
            loss = criterion(logits, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, seen = total + loss.item() * len(image), seen + len(image)
            if epoch == 3:
                confusion.update(logits.argmax(dim=1), label)
        losses.append(total / seen)
    return torch.tensor(losses), confusion.matrix, confusion.iou()


def inputs():
    g = torch.Generator().manual_seed(3)
    labels = torch.randint(0, 3, (8, 4, 4), generator=g).repeat_interleave(4, 1).repeat_interleave(4, 2)
    colours = torch.tensor([[200, 60, 50], [60, 180, 70], [40, 70, 210]])
    images = (colours[labels] + torch.randint(-30, 31, (8, 16, 16, 3), generator=g)).clamp(0, 255)
    labels[:, :2] = 255
    return images.to(torch.uint8), labels.to(torch.uint8)
