"""Training steps of a torch text classifier under bfloat16 autocast: parameters and optimizer in
float32, the loss on float32 logits."""
import torch
from torch import nn

CONFIG = {"vocabulary": 40, "width": 16, "classes": 3, "pad": 0}


class Classifier(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.pad = config["pad"]
        self.embedding = nn.Embedding(config["vocabulary"], config["width"], padding_idx=self.pad)
        self.mix = nn.Linear(config["width"], config["width"])
        self.norm = nn.LayerNorm(config["width"])
        self.head = nn.Linear(config["width"], config["classes"])

    def forward(self, tokens):
        mask = (tokens != self.pad).unsqueeze(-1)
        h = torch.nn.functional.gelu(self.mix(self.embedding(tokens)))
        h = self.norm(h.float())
        total = (h * mask).sum(dim=1)
        return self.head(total / mask.sum(dim=1).clamp(min=1))


def main(tokens, labels):
    torch.manual_seed(0)
    model = Classifier(CONFIG)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(4):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.float(), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    accuracy = (logits.argmax(dim=-1) == labels).float().mean()
    return torch.stack(losses), accuracy


def inputs():
    g = torch.Generator().manual_seed(5)
    tokens = torch.randint(1, 40, (8, 10), generator=g)
    tokens[:, 7:] = 0
    return tokens, torch.randint(0, 3, (8,), generator=g)
