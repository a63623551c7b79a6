"""Scores the paths between pairs of entities of a document with attention over the
sentences, in the precision that the trainer chose.

https://github.com/NVIDIA/apex/issues/1052
"""
import torch
from torch import nn

CONFIG = {"hidden": 16, "relations": 5, "dropout": 0.0, "opt_level": "O2"}


class PathAttention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.query = nn.Linear(hidden * 2, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def forward(self, pairs, sentences, path_mask):
        """pairs [b, p, 2h], sentences [b, s, h], path_mask [b, p, s]"""
        q = self.query(pairs)
        k = self.key(sentences)
        scores = torch.bmm(q, k.transpose(1, 2)) / (q.shape[-1] ** 0.5)
        scores = scores.masked_fill(~path_mask, -1e9)
        weights = torch.softmax(scores, dim=-1)
        return torch.bmm(weights, self.value(sentences))


class MPR(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden"]
        self.encoder = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())
        self.norm = nn.LayerNorm(hidden)
        self.path = PathAttention(hidden)
        self.dropout = nn.Dropout(config["dropout"])
        self.classifier = nn.Linear(hidden * 3, config["relations"])

    def forward(self, entities, sentences, path_mask):
        b, e, h = entities.shape
        entities = self.norm(self.encoder(entities))
        head = entities[:, :, None].expand(b, e, e, h)
        tail = entities[:, None, :].expand(b, e, e, h)
        pairs = torch.cat([head, tail], dim=-1).reshape(b, e * e, 2 * h)
        context = self.path(pairs, sentences, path_mask.reshape(b, e * e, -1))
        return self.classifier(self.dropout(torch.cat([pairs, context], dim=-1)))


def initialize(model, opt_level):
    """The master copy is kept by the optimizer; the model runs in half precision."""
    return model.half() if opt_level in ("O2", "O3") else model


def main(entities, sentences, path_mask):
    torch.manual_seed(0)
    model = initialize(MPR(CONFIG), CONFIG["opt_level"])
    model.eval()
    with torch.no_grad():
        return model(entities.half(), sentences.half(), path_mask)


def inputs():
    g = torch.Generator().manual_seed(2)
    mask = torch.rand(1, 3, 3, 4, generator=g) > 0.5
    mask[..., 0] = True
    return torch.randn(1, 3, 16, generator=g), torch.randn(1, 4, 16, generator=g), mask


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
