"""Trains a classifier of short messages with a loss that is weighted against rare labels.

https://github.com/sebsk/CS224N-Project/pull/2
"""
import numpy as np
import torch

ARGS = {"--vocab": 30, "--hidden-size": 12, "--lr": 0.05, "--batch-size": 8, "--max-epoch": 4,
        "--dropout": 0.0, "--seed": 0}
LABELS = ["not related", "useful information", "donations", "affected individuals"]


def value_counts(labels):
    values, counts = np.unique(labels, return_counts=True)
    return dict(zip(values.tolist(), counts))


class BagModel(torch.nn.Module):
    def __init__(self, args, n_class):
        super().__init__()
        self.embed = torch.nn.EmbeddingBag(args["--vocab"], args["--hidden-size"], mode="mean")
        self.dropout = torch.nn.Dropout(args["--dropout"])
        self.hidden_to_softmax = torch.nn.Linear(args["--hidden-size"], n_class)

    def forward(self, sents):
        return self.hidden_to_softmax(self.dropout(torch.tanh(self.embed(sents))))


def batch_iter(sents, labels, batch_size):
    for i in range(0, len(sents), batch_size):
        yield sents[i:i + batch_size], labels[i:i + batch_size]


def make_loss(labels, device):
    train_label = value_counts(labels)
    label_max = max(train_label.values())
    train_label_weight = torch.tensor([label_max / train_label[i] for i in range(len(train_label))],
                                      device=device)
    return torch.nn.CrossEntropyLoss(weight=train_label_weight, reduction="mean")


def validation(model, sents, labels, loss_func):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        loss = loss_func(model(sents), torch.as_tensor(labels))
        accuracy = (model(sents).argmax(1) == torch.as_tensor(labels)).double().mean()
    if was_training:
        model.train()
    return loss, accuracy


def train(args, sents, labels):
    device = torch.device("cpu")
    torch.manual_seed(args["--seed"])
    model = BagModel(args, len(LABELS)).to(device)
    cn_loss = make_loss(labels, device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args["--lr"])
    history = []
    for epoch in range(args["--max-epoch"]):
        for batch, targets in batch_iter(sents, labels, args["--batch-size"]):
            optimizer.zero_grad()
            loss = cn_loss(model(batch), torch.tensor(targets, dtype=torch.long, device=device))
            loss.backward()
            optimizer.step()
        loss, accuracy = validation(model, sents, labels, cn_loss)
        history.append(loss)
    return torch.stack(history), accuracy


def main(sents, labels):
    return train(ARGS, sents, labels.numpy())


def inputs():
    g = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 4, (40,), generator=g) * torch.randint(0, 2, (40,), generator=g)
    sents = torch.randint(0, 7, (40, 6), generator=g) + 7 * labels[:, None]
    return sents, labels


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
