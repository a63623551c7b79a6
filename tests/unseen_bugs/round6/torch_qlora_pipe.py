"""Evaluates a pipeline model and writes its metrics: losses of single tokens, their quantiles and
a histogram of their logarithms.

https://github.com/tdrussell/qlora-pipe/pull/23
"""
import torch
from torch.nn import functional as F

DTYPE_MAP = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
CONFIG = {"model_weight_dtype": "float16", "micro_batches": 2, "quantiles": [0.1, 0.25, 0.5, 0.75, 0.9, 0.99]}
IGNORE = -100


class SummaryWriter:
    def __init__(self):
        self.scalars, self.histograms = {}, {}

    def add_scalar(self, tag, value, step):
        self.scalars.setdefault(tag, []).append((step, float(value)))

    def add_histogram(self, tag, values, step):
        self.histograms.setdefault(tag, []).append((step, values.flatten().float()))


class ComputeMetrics:
    def __init__(self, dtype):
        self.dtype = dtype

    def __call__(self, logits, labels):
        logits, labels = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        keep = labels != IGNORE
        logits, labels = logits[keep].float(), labels[keep]
        losses = F.cross_entropy(logits, labels, reduction="none")
        log_probs = torch.log_softmax(logits, dim=-1)
        entropy = -(log_probs.exp() * log_probs).sum(dim=-1)
        accuracy = (logits.argmax(dim=-1) == labels).float()
        return [losses.mean().to(self.dtype)[None], losses.to(self.dtype), entropy.to(self.dtype), accuracy]


def write_metrics(tb_writer, prefix, metrics, step):
    tb_writer.add_scalar(f"{prefix}/optimized_loss", metrics[0].mean().item(), step)
    losses = metrics[1].view(-1)
    sorted_losses, sorted_idx = torch.sort(losses)
    for quantile in CONFIG["quantiles"]:
        value = sorted_losses[int(len(losses) * quantile)]
        tb_writer.add_scalar(f"{prefix}/loss_quantile_{quantile:.2f}", value, step)
    tb_writer.add_scalar(f"{prefix}/loss", losses.mean().item(), step)
    tb_writer.add_histogram(f"{prefix}/log_loss_hist", torch.log(1e-10 + losses), step)
    entropy = metrics[2].view(-1)[sorted_idx]
    tb_writer.add_scalar(f"{prefix}/entropy_hardest", entropy[-len(entropy) // 10:].mean(), step)
    tb_writer.add_scalar(f"{prefix}/top1_accuracy", metrics[3].mean().item(), step)


def evaluate_single(compute, name, batches, tb_writer, step):
    all_metrics = None
    for logits, labels in batches:
        metrics = compute(logits, labels)
        if all_metrics is None:
            all_metrics = [[] for _ in metrics]
        for collected, metric in zip(all_metrics, metrics):
            collected.append(metric)
    write_metrics(tb_writer, f"eval/{name}", [torch.cat(m) for m in all_metrics], step)


def main(logits, labels):
    writer = SummaryWriter()
    dtype = DTYPE_MAP[CONFIG["model_weight_dtype"]]
    batches = zip(logits.to(dtype).chunk(CONFIG["micro_batches"]), labels.chunk(CONFIG["micro_batches"]))
    evaluate_single(ComputeMetrics(dtype), "books", batches, writer, step=100)
    scalars = torch.tensor([value for values in writer.scalars.values() for _, value in values])
    _, log_losses = writer.histograms["eval/books/log_loss_hist"][0]
    return scalars, log_losses, torch.histc(log_losses, bins=8, min=-25.0, max=5.0)


def inputs():
    g = torch.Generator().manual_seed(6)
    labels = torch.randint(0, 23, (4, 24), generator=g)
    logits = torch.randn(4, 24, 23, generator=g)
    confidence = 24 * torch.rand(4, 23, 1, generator=g) * (torch.rand(4, 23, 1, generator=g) < 0.7)
    logits[:, :-1] += confidence * F.one_hot(labels[:, 1:], 23)
    labels[0, :3] = IGNORE
    return logits, labels


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
