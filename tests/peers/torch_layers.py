"""Draw what is made of several ops of torch: loops, autocast regions, modules, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .drawn_programs import Statement, indent
from .torch_statements import Drawing


def _is_float(value: Any) -> bool:
    return bool(value.is_floating_point())


def _has_rows(value: Any) -> bool:
    return value.dim() >= 1 and 0 < value.shape[0] <= 5


def expression(drawing: Drawing, names: list[str], depth: int = 2) -> str:
    """An elementwise expression of the names, with scalars and casts; marks at each inexact op."""
    rng = drawing.random
    if depth == 0 or rng.random() < 0.15:
        return str(rng.choice(names))
    first = expression(drawing, names, depth - 1)
    second = expression(drawing, names, depth - 1)
    number = drawing.scalar() if rng.random() < 0.3 else drawing.python_scalar()
    dtype = drawing.dtype_text()
    within = first if "float" in dtype else f"torch.nan_to_num({first} * 1.0).clamp(0, 100)"
    return str(
        drawing.choose(
            {
                f"{first} + {second}": 5,
                f"{first} * {second}": 4,
                f"{first} - {second}": 3,
                f"{first} * {number}": 6,
                f"({first} + {number})": 5,
                f"{number} * {first}": 3,
                f"({first} / {number})": 2,
                f"torch.where({first} > 0, {first}, {second})": 3,
                f"torch.where({first} > 0, {number}, {second})": 2,
                f"~(torch.sin({first}))~": 2,
                f"~(torch.exp(-abs({first})))~": 1,
                f"({within}).to({dtype})": 1,
                f"torch.clamp({first}, -1, {number})": 2,
                f"-({first})": 1,
                f"({first} > {second})": 1,
                f"~(torch.tanh({first}))~": 2,
                f"({first}) ** 2": 1,
                f"torch.relu({first})": 2,
                f"({first} - 0.1)": 2,
                f"~(({first}) ** 3)~": 1,
                f"~(torch.sigmoid({first}))~": 2,
            }
        )
    )


def draw_loop(drawing: Drawing) -> Statement | None:
    name, x, rows = drawing.fresh(), drawing.variable(), drawing.variable(_has_rows)
    if x is None or rows is None:
        return None
    body = expression(drawing, ["c", "c", "i"])
    kind = drawing.choose(["range", "rows", "write", "list", "while"])
    start = drawing.choose([x, "torch.zeros(())", "0.0", "1", "torch.zeros(3)", f"{x} * 0"])
    lines = {
        "range": [f"c = {start}", "for i in range(3):", f"    c = {body}", f"{name} = c + {x}"],
        "rows": [f"c = {start}", f"for i in {rows}:", f"    c = {body}", f"{name} = c * 1"],
        "write": [
            f"c = {x}.clone()",
            "for i in range(2):",
            f"    c += {drawing.python_scalar()}",
            f"    c *= {drawing.python_scalar()}",
            f"{name} = c",
        ],
        "list": [f"{name} = torch.stack([{expression(drawing, ['c'])} + 0 * c for c in {rows}])"],
        "while": [
            f"c, i = {start}, 0",
            "while i < 3:",
            f"    c = {body}",
            "    i += 1",
            f"{name} = {x} - c",
        ],
    }[kind]
    return drawing.statement((name,), "\n".join(lines), ("loop", f"loop {kind}"))


def draw_expression(drawing: Drawing) -> Statement | None:
    name, x, y = drawing.fresh(), drawing.variable(), drawing.variable()
    if x is None or y is None:
        return None
    text = expression(drawing, [x, y], 3)
    return drawing.statement((name,), f"{name} = {text}", ("expression",))


def draw_autocast(drawing: Drawing) -> Statement | None:
    name, x, y = drawing.fresh(), drawing.variable(_is_float), drawing.variable(_is_float)
    if x is None or y is None:
        return None
    dtype = drawing.choose(["torch.bfloat16", "torch.bfloat16", "torch.float16"])
    other = f"v{int(name[1:]) + 1}"
    first = drawing.choose(
        [
            f"~~(torch.outer({x}.flatten(), {y}.flatten()))~",
            f"~~({x}.flatten()[None] @ {x}.flatten())~",
            f"~~(torch.mm({_reshaped(x, 2, 3)}, {_reshaped(y, 3, 2)}))~",
            f"~~(F.linear({_reshaped(x, 2, 3)}, {_reshaped(y, 4, 3)}, {_reshaped(y, 4)}))~",
            f"~~(F.conv1d({_reshaped(x, 1, 2, 5)}, {_reshaped(y, 3, 2, 2)}))~",
            f"~~(torch.einsum('ij,kj->ik', {_reshaped(x, 2, 3)}, {_reshaped(y, 4, 3)}))~",
            f"~~(F.scaled_dot_product_attention(*[{_reshaped(x, 1, 2, 4)}] * 3))~",
        ]
    )
    last = drawing.choose(
        [
            f"{name} + 0.1",
            f"~~(torch.softmax({name}, -1))~",
            f"{name} * {_reshaped(x, 1)}",
            f"~(F.mse_loss({name}, torch.zeros_like({name})))~",
            f"~~(F.layer_norm({name}, {name}.shape[-1:]))~",
            f"torch.cat([{name}, {name}.float()])",
            f"~(torch.exp({name}))~",
            f"~~({name}.sum())~",
            f"~~(F.gelu({name}))~",
            f"torch.stack([{name}.float(), {name}])",
        ]
    )
    lines = [
        f'with torch.autocast("cpu", {dtype}):',
        f"    {name} = {first}",
        f"    {other} = {last}",
    ]
    return drawing.statement((name, other), "\n".join(lines), ("autocast",))


def _reshaped(x: str, *shape: int) -> str:
    """The elements of x, repeated or cut to a shape."""
    size = 1
    for length in shape:
        size *= length
    return f"{x}.flatten().repeat({size})[:{size}].reshape({', '.join(map(str, shape))})"


MODULES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "Linear": ("torch.nn.Linear(3, 4)", (2, 3), ""),
    "Linear bias=False": ("torch.nn.Linear(3, 2, bias=False)", (3,), ""),
    "Conv1d": ("torch.nn.Conv1d(2, 3, 2)", (1, 2, 5), ""),
    "Conv1d padded": ("torch.nn.Conv1d(2, 4, 3, padding=1, groups=2)", (2, 2, 4), ""),
    "Conv2d": ("torch.nn.Conv2d(1, 2, 3, stride=2, padding=1)", (1, 1, 4, 4), ""),
    "ConvTranspose1d": ("torch.nn.ConvTranspose1d(2, 1, 2)", (1, 2, 3), ""),
    "LayerNorm": ("torch.nn.LayerNorm(3)", (2, 3), ""),
    "RMSNorm": ("torch.nn.RMSNorm(3)", (2, 3), ""),
    "GroupNorm": ("torch.nn.GroupNorm(2, 4)", (1, 4, 3), ""),
    "BatchNorm1d eval": ("torch.nn.BatchNorm1d(3).eval()", (4, 3), ""),
    "BatchNorm1d train": ("torch.nn.BatchNorm1d(3)", (4, 3), ""),
    "BatchNorm2d train": ("torch.nn.BatchNorm2d(2)", (2, 2, 2, 2), ""),
    "InstanceNorm1d": ("torch.nn.InstanceNorm1d(2)", (1, 2, 5), ""),
    "LSTM": ("torch.nn.LSTM(3, 2)", (4, 1, 3), "[0]"),
    "LSTM state": ("torch.nn.LSTM(3, 2, batch_first=True)", (2, 4, 3), "[1][1]"),
    "LSTM bidirectional": ("torch.nn.LSTM(3, 2, 2, bidirectional=True)", (3, 2, 3), "[0]"),
    "GRU": ("torch.nn.GRU(3, 2)", (4, 2, 3), "[0]"),
    "RNN": ("torch.nn.RNN(3, 2, nonlinearity='relu')", (4, 3), "[1]"),
    "GRUCell": ("torch.nn.GRUCell(3, 2)", (2, 3), ""),
    "LSTMCell": ("torch.nn.LSTMCell(3, 2)", (2, 3), "[0]"),
    "MultiheadAttention": ("torch.nn.MultiheadAttention(4, 2)", (3, 2, 4), "ATTENTION"),
    "TransformerEncoderLayer": (
        "torch.nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)", (1, 3, 4), ""),
    "TransformerDecoderLayer": (
        "torch.nn.TransformerDecoderLayer(4, 2, 8).eval()", (3, 1, 4), "TWO"),
    "Sequential": (
        "torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 1))",
        (2, 3), ""),
    "PReLU": ("torch.nn.PReLU()", (5,), ""),
    "Bilinear": ("torch.nn.Bilinear(3, 3, 2)", (2, 3), "TWO"),
    "MaxPool1d": ("torch.nn.MaxPool1d(2)", (1, 2, 5), ""),
    "AvgPool2d": ("torch.nn.AvgPool2d(2)", (1, 1, 4, 4), ""),
    "AdaptiveAvgPool1d": ("torch.nn.AdaptiveAvgPool1d(2)", (1, 2, 5), ""),
    "Upsample": ("torch.nn.Upsample(scale_factor=2, mode='bilinear')", (1, 1, 2, 3), ""),
    "Dropout eval": ("torch.nn.Dropout(0.5).eval()", (5,), ""),
    "Embedding": ("torch.nn.Embedding(10, 3)", (2, 3), "INDEX"),
    "Embedding padded": ("torch.nn.Embedding(10, 2, padding_idx=0)", (4,), "INDEX"),
    "EmbeddingBag": ("torch.nn.EmbeddingBag(10, 3)", (2, 3), "INDEX"),
    "WeightNorm": (
        "torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))", (2, 3), ""),
}  # fmt: skip


def draw_module(drawing: Drawing) -> Statement | None:
    kind = drawing.choose(list(MODULES))
    make, shape, call = MODULES[kind]
    name = drawing.fresh()
    x = drawing.variable(lambda value: value.numel() > 0 and not value.is_complex())
    if x is None:
        return None
    dtype = drawing.choose(
        {"torch.float32": 6, "torch.bfloat16": 3, "torch.float16": 1, "torch.float64": 2}
    )
    converted = "" if dtype == "torch.float32" else f".to({dtype})"
    setup = f"self.m{name[1:]} = {make}{converted}"
    value = f"~(torch.nan_to_num({_reshaped(x, *shape)}.to({dtype}), 0.3, 2.0, -2.0).clamp(-3, 3))~"
    module, suffix = f"self.m{name[1:]}", call
    operands = value
    if call == "INDEX":
        numbers = f"torch.nan_to_num({_reshaped(x, *shape)} * 1.0, 0.3, 2.0, -2.0).clamp(-1e6, 1e6)"
        operands, suffix = f"{numbers}.to(torch.int64) % 10", ""
    elif call == "TWO":
        operands, suffix = f"{value}, {value}", ""
    elif call == "ATTENTION":
        operands, suffix = f"{value}, {value}, {value}", "[0]"
    result = f"{name} = ~~({module}({operands}){suffix})~"
    if drawing.random.random() < 0.25 and dtype == "torch.float32":
        result = f'with torch.autocast("cpu", torch.bfloat16):\n    {result}'
    return drawing.statement((name,), result, ("module", f"module {kind}"), setup)


def draw_functional(drawing: Drawing) -> Statement | None:
    """Functions with shapes of their own: convolutions, attention, pooling, losses."""
    name, x, y = drawing.fresh(), drawing.variable(_is_float), drawing.variable(_is_float)
    if x is None or y is None:
        return None
    dtype = drawing.choose(["torch.float32", f"{x}.dtype", "torch.bfloat16"])

    def tensor(source: str, *shape: int) -> str:
        return f"~({_reshaped(source, *shape)}.to({dtype}))~"

    labels = "torch.tensor([0, 2])"
    text = drawing.choose(
        [
            f"F.conv1d({tensor(x, 1, 2, 5)}, {tensor(y, 3, 2, 2)})",
            f"F.conv2d({tensor(x, 1, 1, 4, 4)}, {tensor(y, 2, 1, 3, 3)}, padding='same')",
            f"F.scaled_dot_product_attention(*[{tensor(x, 1, 3, 4)}] * 3, is_causal=True)",
            f"F.avg_pool1d({tensor(x, 1, 2, 6)}, 2)",
            f"F.max_pool2d({tensor(x, 1, 1, 4, 4)}, 2)",
            f"F.cross_entropy({tensor(x, 2, 3)}, {labels})",
            f"F.nll_loss({tensor(x, 2, 3)}, {labels})",
            f"F.cross_entropy({tensor(x, 2, 3)}, {labels}, label_smoothing=0.1)",
            f"F.binary_cross_entropy(torch.sigmoid({tensor(x, 3)}), torch.sigmoid({tensor(y, 3)}))",
            f"F.glu({tensor(x, 2, 4)})",
            f"F.interpolate({tensor(x, 1, 1, 4)}, scale_factor=2)",
            f"F.pad({tensor(x, 1, 2, 4)}, (1, 1), mode='reflect')",
            f"F.pixel_shuffle({tensor(x, 1, 4, 1, 1)}, 2)",
            f"F.softmax({tensor(x, 2, 3)}, -1)",
            f"torch.cumsum({tensor(x, 6)}, 0)",
            f"F.linear({tensor(x, 2, 3)}, {tensor(y, 4, 3)}, {tensor(y, 4)})",
            f"F.adaptive_avg_pool1d({tensor(x, 1, 2, 5)}, 2)",
            f"F.unfold({tensor(x, 1, 1, 3, 3)}, 2)",
            f"F.local_response_norm({tensor(x, 1, 3, 4)}, 2)",
            f"F.grid_sample({tensor(x, 1, 1, 2, 2)}, {tensor(y, 1, 2, 2, 2)})",
            f"torch.fft.rfft({tensor(x, 6)}).abs()",
            f"torch.linalg.solve({tensor(x, 2, 2)} + torch.eye(2), {tensor(y, 2)})",
        ]
    )
    tags = ("functional", f"functional {str(text).split('(')[0]}")
    return drawing.statement((name,), f"{name} = ~~({text})~", tags)


def draw_derivative(drawing: Drawing) -> Statement | None:
    name, x = drawing.fresh(), drawing.variable(_is_float)
    if x is None:
        return None
    y = expression(drawing, ["a"], 2)
    kind = drawing.choose(["grad", "backward", "func grad", "vmap", "jvp", "detach", "vjp"])
    lines = {
        "grad": [
            f"a = {x}.detach().clone().requires_grad_()",
            f"{name} = ~~(torch.autograd.grad(({y}).sum(), a)[0])~",
        ],
        "backward": [
            f"a = {x}.detach().clone().requires_grad_()",
            f"({y}).sum().backward()",
            f"{name} = ~~(a.grad)~",
        ],
        "func grad": [f"{name} = ~~(torch.func.grad(lambda a: ({y}).sum())({x}))~"],
        "vmap": [f"{name} = torch.func.vmap(lambda a: {y})({x})"],
        "jvp": [f"{name} = ~~(torch.func.jvp(lambda a: {y}, ({x},), (torch.ones_like({x}),))[1])~"],
        "detach": [f"a = {x}.detach() * 1", f"{name} = {y} + a"],
        "vjp": [
            f"n{name[1:]}, pull = torch.func.vjp(lambda a: {y}, {x})",
            f"{name} = ~~(pull(torch.ones_like(n{name[1:]}))[0])~",
        ],
    }[kind]
    if kind in ("grad", "backward"):
        lines = ["with torch.enable_grad():", indent("\n".join(lines), 4)]
    return drawing.statement((name,), "\n".join(lines), ("derivative", f"derivative {kind}"))


def draw_composite(drawing: Drawing) -> Statement | None:
    table: dict[Callable[[Drawing], Statement | None], float] = {
        draw_loop: 4,
        draw_expression: 5,
        draw_autocast: 2,
        draw_module: 7,
        draw_functional: 3,
        draw_derivative: 2,
    }
    statement: Statement | None = drawing.choose(table)(drawing)
    return statement
