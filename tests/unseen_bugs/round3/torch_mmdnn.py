"""Runs a converted network: the weights come from a file of NumPy arrays, the image from the
preprocessing of the source framework, and the best classes are compared with its own.

https://github.com/microsoft/MMdnn/pull/212
"""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {"network": "tiny", "size": 16, "top": 3,
          "preprocess": {"tiny": "zero_center", "vgg": "caffe"}}


def zero_center(image):
    return image / 127.5 - 1.0


def caffe(image):
    image = image[..., ::-1] - np.array([103.939, 116.779, 123.68], dtype=np.float32)
    return image


PREPROCESS = {"zero_center": zero_center, "caffe": caffe}


def center_crop(image, size):
    top, left = ((n - size) // 2 for n in image.shape[:2])
    return image[top:top + size, left:left + size]


class KitModel(nn.Module):
    """The code that the emitter writes for the graph."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights
        self.conv1 = self.__conv(2, "conv1", in_channels=3, out_channels=6, kernel_size=3)
        self.conv2 = self.__conv(2, "conv2", in_channels=6, out_channels=8, kernel_size=3, stride=2)
        self.fc = self.__dense("fc", in_features=8, out_features=10)

    def __conv(self, dim, name, **kwargs):
        layer = {1: nn.Conv1d, 2: nn.Conv2d}[dim](**kwargs)
        layer.weight.data.copy_(torch.from_numpy(self.weights[name]["weights"]))
        layer.bias.data.copy_(torch.from_numpy(self.weights[name]["bias"]))
        return layer

    def __dense(self, name, **kwargs):
        layer = nn.Linear(**kwargs)
        layer.weight.data.copy_(torch.from_numpy(self.weights[name]["weights"]))
        layer.bias.data.copy_(torch.from_numpy(self.weights[name]["bias"]))
        return layer

    def forward(self, x):
        x = F.relu(self.conv1(F.pad(x, (1, 1, 1, 1))))
        x = F.relu(self.conv2(x))
        x = F.avg_pool2d(x, x.shape[-2:]).flatten(1)
        return F.softmax(self.fc(x), dim=1)


class TestKit:
    def __init__(self, config, weights):
        self.config = config
        self.model = KitModel(weights).eval()

    def preprocess(self, image):
        kind = self.config["preprocess"][self.config["network"]]
        data = PREPROCESS[kind](center_crop(image, self.config["size"]))
        return np.ascontiguousarray(data)

    def inference(self, image):
        data = self.preprocess(image)
        data = np.transpose(data, (2, 0, 1))
        data = torch.from_numpy(np.expand_dims(data, 0).copy())
        with torch.no_grad():
            predict = self.model(data)
        return predict.squeeze(0)

    def best(self, image):
        predict = self.inference(image)
        return predict, torch.topk(predict, self.config["top"]).indices


def main(image, conv1, conv2, fc):
    weights = {name: {"weights": w.numpy(), "bias": np.zeros(len(w), np.float32)}
               for name, w in (("conv1", conv1), ("conv2", conv2), ("fc", fc))}
    return TestKit(CONFIG, weights).best(image.numpy())


def inputs():
    g = torch.Generator().manual_seed(2)
    image = torch.randint(0, 256, (20, 24, 3), generator=g, dtype=torch.uint8)
    shapes = ((6, 3, 3, 3), (8, 6, 3, 3), (10, 8))
    return (image,) + tuple(torch.randn(*s, generator=g) * 0.5 for s in shapes)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
