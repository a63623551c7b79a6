"""Token embeddings with masked mean pooling and cosine similarity."""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class Encoder(nn.Module):
    def __init__(self, vocab=50, max_len=16, dim=12):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.pos = nn.Embedding(max_len, dim)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        h = self.tok(ids) + self.pos(positions)
        mask = (ids != PAD).unsqueeze(-1).to(h.dtype)
        summed = (h * mask).sum(dim=1)
        count = mask.sum(dim=1).clamp(min=1.0)
        return summed / count


torch.manual_seed(6)
encoder = Encoder().eval()


def main(queries, docs):
    with torch.no_grad():
        q = F.normalize(encoder(queries), dim=-1)
        d = F.normalize(encoder(docs), dim=-1)
        sims = q @ d.T
        best = sims.argmax(dim=1)
    return sims, best


def inputs():
    q = torch.tensor([[5, 9, 12, 0, 0], [7, 3, 0, 0, 0]])
    d = torch.tensor([[5, 9, 11, 2, 0], [40, 41, 42, 43, 44], [7, 3, 1, 0, 0]])
    return q, d
