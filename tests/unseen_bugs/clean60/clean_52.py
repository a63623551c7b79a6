"""An LSTM cell written out, unrolled over a sequence, with a linear read-out."""
import torch
import torch.nn as nn


class LSTMCell(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.n_hidden = n_hidden
        self.ih = nn.Linear(n_in, 4 * n_hidden)
        self.hh = nn.Linear(n_hidden, 4 * n_hidden, bias=False)

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (self.ih(x) + self.hh(h)).chunk(4, dim=-1)
        c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


torch.manual_seed(13)
cell = LSTMCell(4, 8)
head = nn.Linear(8, 1)


def main(xs):
    batch, time, _ = xs.shape
    h = xs.new_zeros(batch, cell.n_hidden)
    c = torch.zeros_like(h)
    outs = []
    with torch.no_grad():
        for t in range(time):
            h, c = cell(xs[:, t], (h, c))
            outs.append(head(h))
    return torch.cat(outs, dim=1), h, c


def inputs():
    g = torch.Generator().manual_seed(14)
    return (torch.randn(3, 9, 4, generator=g),)
