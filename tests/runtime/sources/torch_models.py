"""Modules of many kinds, with arguments, for the sweep and the tests of from_torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
functional_call = torch.func.functional_call


class UNetBlock(nn.Module):
    """A level of a U-Net: down, up, and the joined halves."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.pool, self.middle = nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.out = nn.Conv2d(16, 3, 1)

    def forward(self, x: Any) -> Any:
        skip = self.down(x)
        return self.out(torch.cat([skip, self.up(F.relu(self.middle(self.pool(skip))))], 1))


class ConvNeXt(nn.Module):
    """A block of ConvNeXt: depthwise convolution, norm over channels, two products, a scale."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Any) -> Any:
        y = self.depthwise(x).permute(0, 2, 3, 1)
        y = self.gamma * self.down(F.gelu(self.up(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


class Mixer(nn.Module):
    """A layer of an MLP mixer."""

    def __init__(self, tokens: int = 6, width: int = 8) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(tokens, 12), nn.GELU(), nn.Linear(12, tokens))
        self.channels = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, x: Any) -> Any:
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Positional(nn.Module):
    """Embeddings with sinusoidal positions."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, width)
        place = torch.arange(16)[:, None]
        rate = torch.exp(torch.arange(0, width, 2) * (-torch.log(torch.tensor(10000.0)) / width))
        table = torch.zeros(16, width)
        table[:, 0::2], table[:, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
        self.register_buffer("table", table)

    def forward(self, tokens: Any) -> Any:
        return self.tokens(tokens) * 8**0.5 + self.table[: tokens.shape[1]]


class Norm(nn.Module):
    """RMSNorm in float32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


def rotated(x: Any) -> Any:
    """Return queries or keys with rotary positions, by complex numbers."""
    length, width = x.shape[-2:]
    rate = 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width)
    turns = torch.polar(torch.ones(length, width // 2), torch.outer(torch.arange(length), rate))
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


class Llama(nn.Module):
    """A decoder layer of Llama with grouped queries."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, Norm(width), Norm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 16, bias=False), nn.Linear(width, 16, bias=False)
        self.down = nn.Linear(16, width, bias=False)

    def forward(self, x: Any) -> Any:
        b, n, width = x.shape
        y, size = self.norm1(x), width // self.heads
        q = rotated(self.q(y).view(b, n, self.heads, size).transpose(1, 2))
        k, v = self.kv(y).view(b, n, 2, 1, size).unbind(2)
        k, v = rotated(k.transpose(1, 2)), v.transpose(1, 2)
        k, v = (z.repeat_interleave(self.heads, 1) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Rotary(nn.Module):
    """Attention with rotary positions by halves, and a cache of cosines."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.register_buffer("rate", 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width))

    def forward(self, x: Any) -> Any:
        angles = torch.outer(torch.arange(x.shape[1]).float(), self.rate).repeat(1, 2)
        q, k, v = self.qkv(x).chunk(3, -1)

        def turn(y: Any) -> Any:
            first, second = y.chunk(2, -1)
            return y * angles.cos() + torch.cat((-second, first), -1) * angles.sin()

        scores = torch.einsum("bid,bjd->bij", turn(q), turn(k)) * x.shape[-1] ** -0.5
        mask = torch.full(scores.shape[1:], float("-inf")).triu(1)
        return torch.einsum("bij,bjd->bid", (scores + mask).softmax(-1).to(v.dtype), v)


class Experts(nn.Module):
    """A mixture of experts: the best two of a gate, all experts computed."""

    def __init__(self, width: int = 8, count: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, count, bias=False)
        self.weight = nn.Parameter(torch.randn(count, width, width) / 3)

    def forward(self, x: Any) -> Any:
        logits = self.gate(x)
        values, experts = logits.softmax(-1, dtype=torch.float32).topk(2)
        values = values / values.sum(-1, keepdim=True)
        gates = torch.zeros_like(logits, dtype=values.dtype).scatter(-1, experts, values)
        outputs = torch.einsum("td,edf->tef", x, self.weight)
        load = F.one_hot(experts, self.weight.shape[0]).float().mean((0, 1))
        return (gates[..., None] * outputs).sum(1), load


class VAE(nn.Module):
    """A variational autoencoder; the noise is an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 8), nn.Tanh())
        self.mean, self.logvar = nn.Linear(8, 3), nn.Linear(8, 3)
        self.decoder = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 12), nn.Sigmoid())

    def forward(self, x: Any, noise: Any) -> Any:
        y = self.encoder(x)
        mean, logvar = self.mean(y), self.logvar(y)
        image = self.decoder(mean + noise * (0.5 * logvar).exp())
        divergence = -0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())
        return F.mse_loss(image, x, reduction="sum") + divergence, image


class ViT(nn.Module):
    """A vision transformer: patches, a class token, one layer of an encoder."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 5, width) * 0.02)
        self.layer = nn.TransformerEncoderLayer(
            width, 2, 16, 0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, 5)

    def forward(self, x: Any) -> Any:
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token.expand(len(x), -1, -1), y], 1) + self.places
        return self.head(self.layer(y)[:, 0])


class Mamba(nn.Module):
    """A selective state space: a scan over time in Python."""

    def __init__(self, width: int = 6, states: int = 4) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, width, 3, groups=width, padding=2)
        self.steps, self.bc = nn.Linear(width, width), nn.Linear(width, 2 * states)
        self.log_a = nn.Parameter(torch.log(torch.arange(1, states + 1).float()).repeat(width, 1))
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        x = F.silu(self.convolution(x.mT)[..., : x.shape[1]].mT)
        steps, (b, c) = F.softplus(self.steps(x)), self.bc(x).chunk(2, -1)
        decay = torch.exp(steps[..., None] * -torch.exp(self.log_a.float()))
        drive = steps[..., None] * b[:, :, None] * x[..., None]
        state, results = torch.zeros_like(drive[:, 0]), []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + drive[:, t]
            results.append((state * c[:, t, None]).sum(-1))
        return torch.stack(results, 1) + x * self.skip


class FakeQuantised(nn.Module):
    """A linear layer with weights and activations rounded to int8 steps, straight through."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 4)
        self.register_buffer("scale", torch.tensor(0.05))

    def forward(self, x: Any) -> Any:
        x = torch.fake_quantize_per_tensor_affine(x, 0.05, 0, -128, 127)
        weight = self.linear.weight
        rounded = (weight / self.scale).round().clamp(-128, 127) * self.scale
        return F.linear(x, weight + (rounded - weight).detach(), self.linear.bias)


class TextCNN(nn.Module):
    """Convolutions of several widths over embeddings, and their largest values."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6, padding_idx=0)
        self.parts = nn.ModuleList(nn.Conv1d(6, 4, width) for width in (2, 3))
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens).mT
        return self.head(torch.cat([F.relu(part(x)).max(-1).values for part in self.parts], 1))


class Siamese(nn.Module):
    """Two inputs by the same layers, and a contrastive loss."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x: Any, y: Any, same: Any) -> Any:
        distance = F.pairwise_distance(self.body(x), self.body(y))
        return (same * distance**2 + ~same * (1 - distance).clamp(min=0) ** 2).mean()


class Recurrent(nn.Module):
    """A recurrent layer over embeddings."""

    def __init__(self, kind: Any, **settings: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.layer = kind(6, 7, batch_first=True, **settings)

    def forward(self, tokens: Any) -> Any:
        output, state = self.layer(self.embedding(tokens))
        return output.mean(1), state


class Residual(nn.Module):
    """A small ResNet of one block."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.head = nn.Linear(width, 5)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(self.stem(x), 2)
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return self.head(F.adaptive_avg_pool2d(F.relu(x + y), 1).flatten(1))


class Tied(nn.Module):
    """A language model whose head shares the embedding's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 6), nn.Linear(6, 20, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Any) -> Any:
        return F.cross_entropy(self.head(self.embedding(tokens))[:, :-1].mT, tokens[:, 1:])


def models() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return the modules with arguments, by names."""
    torch.manual_seed(0)
    x, y, sequence = torch.randn(4, 5), torch.randn(4, 5), torch.randn(2, 6, 8)
    tokens, image = torch.randint(0, 20, (2, 7)), torch.randn(2, 3, 8, 8)
    discriminator = nn.Sequential(
        *(nn.Conv2d(3, 4, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(4, 8, 4, 2, 1)),
        *(nn.InstanceNorm2d(8), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(32, 1)),
    )
    return {
        "LSTM": (Recurrent(nn.LSTM), (tokens,)),
        "LSTM of two layers": (Recurrent(nn.LSTM, num_layers=2, bidirectional=True), (tokens,)),
        "GRU": (Recurrent(nn.GRU), (tokens,)),
        "encoder layer": (nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (sequence,)),
        "encoder layer in evaluation": (
            nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True).eval(),
            (sequence,),
        ),
        "decoder layer": (
            nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True),
            (sequence, sequence * 2),
        ),
        "attention": (nn.MultiheadAttention(8, 2, batch_first=True), (sequence,) * 3),
        "ResNet": (Residual().eval(), (image,)),
        "ResNet in training": (Residual(), (image,)),
        "U-Net": (UNetBlock(), (image,)),
        "ConvNeXt": (ConvNeXt(), (torch.randn(2, 4, 8, 8),)),
        "mixer": (Mixer(), (sequence,)),
        "group norm": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU()), (image,)),
        "positions": (Positional(), (tokens,)),
        "rotary": (Rotary(), (sequence,)),
        "Llama": (Llama(), (sequence,)),
        "experts": (Experts(), (torch.randn(6, 8),)),
        "VAE": (VAE(), (torch.rand(4, 12), torch.randn(4, 3))),
        "discriminator": (discriminator, (image,)),
        "ViT": (ViT(), (image,)),
        "Mamba": (Mamba(), (torch.randn(2, 5, 6),)),
        "fake quantised": (FakeQuantised(), (x,)),
        "text": (TextCNN(), (tokens,)),
        "siamese": (Siamese(), (x, y, torch.tensor([True, False, True, False]))),
        "tied": (Tied(), (tokens,)),
    }


def scalar(result: Any) -> Any:
    """Return a loss of a module's results."""
    leaves = torch.utils._pytree.tree_leaves(result)
    return sum((x.float() ** 2).sum() for x in leaves if x.dtype.is_floating_point)


def plain(module: Any) -> Any:
    return lambda parameters, *args: functional_call(module, parameters, args)


def inference(module: Any) -> Any:
    def run(parameters: Any, *args: Any) -> Any:
        with torch.inference_mode():
            return functional_call(module, parameters, args)

    return run


def autocast(dtype: Any) -> Any:
    def of(module: Any) -> Any:
        def run(parameters: Any, *args: Any) -> Any:
            with torch.autocast("cpu", dtype):
                return functional_call(module, parameters, args)

        return run

    return of


def gradient(module: Any) -> Any:
    names = {name for name, _ in module.named_parameters()}

    def run(parameters: Any, *args: Any) -> Any:
        leaves = {k: v.detach().requires_grad_(k in names) for k, v in parameters.items()}
        with torch.enable_grad():
            loss = scalar(functional_call(module, leaves, args))
            used = [x for x in leaves.values() if x.requires_grad]
            return loss, torch.autograd.grad(loss, used, allow_unused=True)

    return run


def func_grad(module: Any) -> Any:
    names = {name for name, _ in module.named_parameters()}

    def loss(parameters: Any, others: Any, *args: Any) -> Any:
        return scalar(functional_call(module, {**parameters, **others}, args))

    def run(parameters: Any, *args: Any) -> Any:
        floats = {k: v for k, v in parameters.items() if k in names}
        others = {k: v for k, v in parameters.items() if k not in floats}
        return torch.func.grad_and_value(loss)(floats, others, *args)

    return run


def step(kind: str) -> Any:
    """Return a mode: a step of an optimiser, whose results are the parameters after it."""

    def of(module: Any) -> Any:
        names = {name for name, _ in module.named_parameters()}

        def run(parameters: Any, *args: Any) -> Any:
            floats = {
                k: v.detach().clone().requires_grad_() for k, v in parameters.items() if k in names
            }
            settings = {"momentum": 0.9} if kind == "SGD" else {"eps": 0.1}
            optimiser = getattr(torch.optim, kind)(floats.values(), lr=0.01, **settings)
            with torch.enable_grad():
                loss = scalar(functional_call(module, {**parameters, **floats}, args))
                loss.backward()
            optimiser.step()
            return loss.detach(), [x.detach() for x in floats.values()]

        return run

    return of


MODES = {
    "plain": plain,
    "inference": inference,
    "autocast bfloat16": autocast(torch.bfloat16),
    "autocast float16": autocast(torch.float16),
    "gradient": gradient,
    "func.grad": func_grad,
    "SGD": step("SGD"),
    "Adam": step("Adam"),
    "AdamW": step("AdamW"),
}
