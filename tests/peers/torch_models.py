"""Programs of torch as users write them, compared with torch itself.

    python -m tests.peers.torch_models
    python -m tests.peers.torch_models --front-end none --only gpt

A ResNet, a GPT that decodes with a cache, an LSTM with packed sequences, a U-Net: each in float32,
under autocast to bfloat16, and as a training step whose gradients a GradScaler unscales. Two more
steps let the scaler take the optimiser's step, which asks for a value of a tensor, and two those of
a fused optimiser, whose op decides. Results have
torch's dtypes and shapes, and are off by at most a bound of each result's largest magnitude: 2e-5
in float32, 5e-2 under autocast. The dtypes of the graph's values are among those that a dispatch
mode sees. `--front-end none` compares torch with torch without oneDNN, whose products and
convolutions add in another order.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from graphir import GraphirError

from .drawn_programs import compare_leaves
from .fuzz_torch_functions import leaves, to_numpy

FRONT_ENDS = ("graphir", "none")
BOUND, AUTOCAST_BOUND = 2e-5, 5e-2
Program = tuple[Callable[..., Any], tuple[Any, ...]]


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs) for _ in range(2)])
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Any) -> Any:
        y = F.relu(self.norms[0](self.first(x)), inplace=True)
        y = self.norms[1](self.second(y))
        y += self.shortcut(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(
            ResidualBlock(8, 8, 1), ResidualBlock(8, 16, 2), ResidualBlock(16, 16, 1)
        )
        self.head = nn.Linear(16, 5)

    def forward(self, images: Any) -> Any:
        x = self.blocks(self.pool(self.stem(images)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any, cache: Any = None) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        if cache is not None:
            key, value = torch.cat([cache[0], key], 2), torch.cat([cache[1], value], 2)
        y = F.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
        return self.out(y.transpose(1, 2).reshape(batch, length, width)), (key, value)


class Gpt(nn.Module):
    def __init__(self, layers: int = 2, width: int = 16):
        super().__init__()
        self.tokens = nn.Embedding(30, width)
        self.positions = nn.Embedding(24, width)
        self.attentions = nn.ModuleList([Attention(width, 2) for _ in range(layers)])
        self.feeds = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))
            for _ in range(layers)
        )
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * layers + 1)])

    def forward(self, tokens: Any, caches: Any = None) -> Any:
        start = 0 if caches is None else caches[0][0].shape[2]
        places = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        kept = []
        for index, (attend, feed) in enumerate(zip(self.attentions, self.feeds, strict=True)):
            cache = None if caches is None else caches[index]
            y, cache = attend(self.norms[2 * index](x), cache)
            x = x + y
            x = x + feed(self.norms[2 * index + 1](x))
            kept.append(cache)
        return self.norms[-1](x) @ self.tokens.weight.T, kept


class Decode(nn.Module):
    """Four greedy tokens, each from the cache of those before."""

    def __init__(self) -> None:
        super().__init__()
        self.gpt = Gpt()

    def forward(self, tokens: Any) -> Any:
        logits, caches = self.gpt(tokens)
        drawn = [logits[:, -1:].argmax(-1)]
        for _ in range(3):
            logits, caches = self.gpt(drawn[-1], caches)
            drawn.append(logits[:, -1:].argmax(-1))
        return torch.cat([tokens, *drawn], 1), logits, caches[0][0]


class GptLogits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gpt = Gpt()

    def forward(self, tokens: Any) -> Any:
        return self.gpt(tokens)[0].flatten(1)


class PackedLstm(nn.Module):
    """A bidirectional LSTM over sequences of different lengths, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(16, 4)
        self.lengths = [5, 7, 2]

    def forward(self, tokens: Any) -> Any:
        packed = pack_padded_sequence(
            self.embed(tokens), self.lengths, batch_first=True, enforce_sorted=False
        )
        out, (hidden, _) = self.lstm(packed)
        padded, lengths = pad_packed_sequence(out, batch_first=True, padding_value=0.5)
        last = torch.cat([hidden[-2], hidden[-1]], -1)
        mean = padded.sum(1) / lengths.to(padded.dtype)[:, None]
        return self.head(last + mean)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = (4, 8)
        self.down = nn.ModuleList([self._pair(1, sizes[0]), self._pair(sizes[0], sizes[1])])
        self.middle = self._pair(8, 16)
        self.up = nn.ModuleList([nn.ConvTranspose2d(16, 8, 2, 2), nn.ConvTranspose2d(8, 4, 2, 2)])
        self.merge = nn.ModuleList([self._pair(16, 8), self._pair(8, 4)])
        self.head = nn.Conv2d(4, 2, 1)

    def _pair(self, inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(2, outputs),
            nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.GroupNorm(2, outputs),
            nn.SiLU(inplace=True),
        )

    def forward(self, x: Any) -> Any:
        kept = []
        for down in self.down:
            x = down(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([up(x), kept.pop()], 1))
        return self.head(F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False))


def _tokens(*shape: int, high: int = 20) -> torch.Tensor:
    return torch.randint(1, high, shape, generator=torch.Generator().manual_seed(1))


def _images(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


MODELS: dict[str, tuple[type[nn.Module], Callable[[], torch.Tensor]]] = {
    "resnet": (ResNet, lambda: _images(2, 3, 16, 16)),
    "gpt decoding": (Decode, lambda: _tokens(2, 5, high=30)),
    "gpt": (GptLogits, lambda: _tokens(2, 6, high=30)),
    "packed lstm": (PackedLstm, lambda: _tokens(3, 7)),
    "unet": (UNet, lambda: _images(1, 1, 16, 16)),
}


def forward_program(name: str, autocast: bool, train: bool = False) -> Program:
    """A module, or a function that runs it under autocast."""
    torch.manual_seed(0)
    make, draw = MODELS[name]
    model = make().train(train)
    if not autocast:
        return model, (draw(),)

    def narrow(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x)

    return narrow, (draw(),)


def scaled_program(name: str, with_step: bool, fused: bool = False) -> Program:
    """A training step under autocast: loss and gradients after the scaler, or parameters too."""
    torch.manual_seed(0)
    make, draw = MODELS[name]
    model = make().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            y = model(x).flatten(1)
            labels = torch.arange(y.shape[0]) % y.shape[1]
            loss = F.cross_entropy(y, labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        if not with_step:
            return loss.detach(), gradients
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach(), gradients, [p.detach().clone() for p in model.parameters()]

    return step, (draw(),)


def _programs() -> dict[str, tuple[Callable[[], Program], bool, float]]:
    """Each program with whether it records gradients, and its bound."""
    table: dict[str, tuple[Callable[[], Program], bool, float]] = {}
    for name in MODELS:
        table[f"{name} float32"] = (lambda n=name: forward_program(n, False), False, BOUND)
        table[f"{name} autocast"] = (lambda n=name: forward_program(n, True), False, AUTOCAST_BOUND)
        if name != "gpt decoding":
            make = lambda n=name: scaled_program(n, False)  # noqa: E731
            table[f"{name} scaled gradients"] = (make, True, AUTOCAST_BOUND)
    table["resnet train"] = (lambda: forward_program("resnet", False, True), False, BOUND)
    for name in ("resnet", "gpt"):
        for kind, fused in (("scaler step", False), ("fused scaler step", True)):
            make = lambda n=name, f=fused: scaled_program(n, True, f)  # noqa: E731
            table[f"{name} {kind}"] = (make, True, AUTOCAST_BOUND)
    return table


class DtypesSeen(TorchDispatchMode):
    """The dtypes of all tensors that torch's ops return."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((result, args)):
            if isinstance(leaf, torch.Tensor):
                self.names.add(str(leaf.dtype).removeprefix("torch."))
        return result


def check_program(name: str, front_end: str) -> str:
    """What is off in a program, or nothing."""
    make, gradients, bound = _programs()[name]
    function, arguments = make()
    with torch.set_grad_enabled(gradients), DtypesSeen() as seen:
        wanted = leaves(_flat(function(*arguments)))
    function, arguments = make()
    extra: set[str] = set()
    with torch.set_grad_enabled(gradients):
        if front_end == "none":
            with torch.backends.mkldnn.flags(enabled=False):
                got = leaves(_flat(function(*arguments)))
        else:
            from graphir.runtime import from_torch, interpret

            graph = from_torch(function, *arguments)
            extra = _tensor_dtypes(graph) - seen.names - {"int64", "bool"}
            got = leaves(_flat(interpret(graph, *map(to_numpy, make()[1]))))
    problem = compare_leaves(got, wanted, bound)
    return problem or (f"values of {sorted(extra)}, which torch does not have" if extra else "")


def _tensor_dtypes(graph: Any) -> set[str]:
    """The dtypes of a graph's values, but Python's numbers and what is inside of a kernel."""
    from graphir.location import LEGALIZE
    from graphir.ops.types import TupleType

    inner: set[int] = set()
    names: set[str] = set()
    for symbol in graph:
        kernels = [one.operand for one in symbol.origins if one.rule == LEGALIZE]
        if "result" not in kernels and (kernels or any(x.index in inner for x in symbol.args)):
            inner.add(symbol.index)
        elif not isinstance(symbol.type, TupleType):
            names.add(str(symbol.dtype))
    return {name for name in names if not name.startswith("weak")}


def _flat(value: Any) -> list[Any]:
    leaves_of_value: list[Any] = tree_leaves(value)
    return leaves_of_value


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--front-end", choices=FRONT_ENDS, default="graphir")
    parser.add_argument("--only", default="", help="a pattern of the programs' names")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    failed = 0
    for name in _programs():
        if not re.search(options.only, name):
            continue
        began = time.perf_counter()
        try:
            problem = check_program(name, options.front_end)
        except GraphirError as error:
            problem = f"refused: {error}"[:400]
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"[:400]
        failed += bool(problem) and not problem.startswith("refused")
        print(f"{name}: {problem or 'equal'} ({time.perf_counter() - began:.1f} s)", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
