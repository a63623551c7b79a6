"""Retrieval with an index that keeps its vectors in half precision and computes in float32: masked
means of token vectors are normalised, compared and ranked."""
import torch
from torch import nn
import torch.nn.functional as F

CONFIG = {"vocab": 40, "dim": 16, "pad": 0, "k": 3, "temperature": 0.07}


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config["vocab"], config["dim"], padding_idx=config["pad"])
        self.project = nn.Linear(config["dim"], config["dim"])
        self.pad = config["pad"]

    def forward(self, tokens):
        mask = (tokens != self.pad).unsqueeze(-1).to(torch.float32)
        hidden = torch.tanh(self.project(self.embedding(tokens)))
        pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1.0)
        return F.normalize(pooled, dim=-1)


class HalfIndex:
    """Half precision is enough for unit vectors: it halves the memory, scores are float32."""

    def __init__(self, dim):
        self.vectors = torch.empty(0, dim, dtype=torch.float16)

    def add(self, vectors):
        self.vectors = torch.cat([self.vectors, vectors.to(torch.float16)])

    def search(self, queries, k):
        scores = queries @ self.vectors.to(queries.dtype).T
        return torch.topk(scores, k, dim=1)


def recall_at_k(found, truth):
    hit = (found == truth[:, None]).any(dim=1)
    return hit.sum() / hit.numel()


def contrastive_loss(queries, documents, temperature):
    logits = queries @ documents.T / temperature
    return F.cross_entropy(logits, torch.arange(len(queries)))


def main(queries, documents):
    torch.manual_seed(0)
    encoder = Encoder(CONFIG).eval()
    with torch.no_grad():
        q, d = encoder(queries), encoder(documents)
        index = HalfIndex(CONFIG["dim"])
        for part in d.split(4):
            index.add(part)
        scores, found = index.search(q, CONFIG["k"])
        loss = contrastive_loss(q, d, CONFIG["temperature"])
    return scores, found, recall_at_k(found, torch.arange(len(q))), loss


def inputs():
    g = torch.Generator().manual_seed(1)
    documents = torch.randint(1, 40, (10, 7), generator=g)
    documents[:, 5:] = torch.where(torch.rand(10, 2, generator=g) < 0.5, 0, documents[:, 5:])
    queries = documents.clone()
    queries[:, 0] = torch.randint(1, 40, (10,), generator=g)
    return queries, documents
