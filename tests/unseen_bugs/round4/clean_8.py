"""A tagger of padded sequences: bfloat16 autocast in the layers, losses and norms in float32."""
import torch
import torch.nn.functional as F

CONFIG = {"vocab": 20, "width": 16, "tags": 4, "lr": 0.05, "clip": 1.0, "steps": 3, "pad": 0}


class Tagger(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = torch.nn.Embedding(config["vocab"], config["width"], padding_idx=config["pad"])
        self.mix = torch.nn.Linear(2 * config["width"], config["width"])
        self.out = torch.nn.Linear(config["width"], config["tags"])

    def forward(self, tokens):
        h = self.embed(tokens)
        before = F.pad(h, (0, 0, 1, 0))[:, :-1]
        return self.out(torch.relu(self.mix(torch.cat([h, before], dim=-1))))


def collate(sequences, pad):
    length = max(len(s) for s in sequences)
    tokens = torch.full((len(sequences), length), pad, dtype=torch.long)
    for row, s in zip(tokens, sequences):
        row[:len(s)] = s
    return tokens


def masked_loss(logits, tags, mask, weight):
    losses = F.cross_entropy(logits.float().transpose(1, 2), tags, weight=weight, reduction="none")
    return (losses * mask).sum() / mask.sum().clamp(min=1)


def class_weight(tags, mask, classes):
    counts = torch.bincount(tags[mask], minlength=classes)
    return (counts.sum() / (classes * counts.clamp(min=1))).float()


def main(lengths, stream, tag_stream):
    torch.manual_seed(0)
    model = Tagger(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"])
    tokens = collate(torch.split(stream, lengths.tolist()), CONFIG["pad"])
    tags = collate(torch.split(tag_stream, lengths.tolist()), 0)
    mask = tokens != CONFIG["pad"]
    weight = class_weight(tags, mask, CONFIG["tags"])
    losses, norms = [], []
    for _ in range(CONFIG["steps"]):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(tokens)
        loss = masked_loss(logits, tags, mask, weight)
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CONFIG["clip"]))
        optimizer.step()
        losses.append(loss.detach())
    hits = (logits.argmax(-1) == tags) & mask
    return torch.stack(losses), torch.stack(norms), hits.sum(), mask.sum()


def inputs():
    g = torch.Generator().manual_seed(1)
    lengths = torch.tensor([5, 3, 7])
    stream = torch.randint(1, 20, (15,), generator=g)
    return lengths, stream, stream % 4
