"""Statements of drawn programs, by kind: see fuzz_programs.py.

`{x}` and `{y}` are values, `{z}` is a copy of `{x}` that a statement updates. `{axis}`, `{axes}`,
`{last}` and `{kept}` are keywords: of one axis or several, of one axis, and with the axes kept.
`{t}` is a dtype of the size of `{x}`. `turns`, `choice`, `rows` and `shifted` are functions of
fuzz_programs.py.
"""

from __future__ import annotations

UNARY = [
    *("np.exp({x})", "np.exp(-np.abs({x}))", "np.log(np.abs({x}) + 1)", "np.tanh({x})", "-{x}"),
    *(
        "np.sqrt(np.abs({x}))",
        "{x} * 2",
        "{x} ** 2",
        "np.log1p(np.abs({x}))",
        "1 / (1 + {x} * {x})",
    ),
    *("np.maximum({x}, 0)", "np.expm1({x} * 0.1)", "np.abs({x})", "np.clip({x}, -1, 2)", "{x} > 0"),
    *("np.log({x})", "np.sin({x})", "np.rint({x})", "{x} + 0.5", "3 - {x}", "np.sign({x})"),
]
BINARY = [
    *("{x} + {y}", "{x} - {y}", "{x} * {y}", "np.maximum({x}, {y})", "{x} / (np.abs({y}) + 1)"),
    *(
        "np.where({x} > {y}, {x}, {y})",
        "{x} * 0.9 + {y} * 0.1",
        "np.minimum({x}, {y})",
        "{x} < {y}",
    ),
]
REDUCTIONS = [
    *("{x}.sum({axis})", "{x}.mean({axis})", "{x}.max({axis})", "{x}.min({axis})"),
    *("np.sum({x} * {x}, {axis})", "np.sum(np.exp(-np.abs({x})), {axis})", "{x}.std({axis})"),
    *(
        "np.any({x} > 0, {axis})",
        "np.all({x} > -2, {axis})",
        "{x}.var({axis})",
        "np.prod({x}, {axis})",
        "np.argmax({x}, {axis})",
        "np.argmin(-{x}, {axis})",
    ),
]
ROWS = [
    *("{x} - {x}.mean({kept})", "({x} - {x}.mean({kept})) / ({x}.std({kept}) + 1)"),
    *("np.exp({x} - {x}.max({kept}))", "{x} / np.sqrt(np.mean({x} * {x}, {kept}) + 1)"),
    *("np.exp({x} - {x}.max({kept})) / np.exp({x} - {x}.max({kept})).sum({kept})",),
    *("np.sort({x}, {last})", "np.cumsum({x}, {last})", "np.argsort({x}, {last}, kind='stable')"),
    *(
        "np.argmax({x}, {last})",
        "np.argmin({x}, {last})",
        "{x} - np.max({x}, {last}, keepdims=True)",
    ),
]
MOVES = [
    *(
        "{x}[..., ::-1]",
        "{x}.T",
        "{x}[1:-1]",
        "{x}[::2]",
        "{x}[..., 1:]",
        "{x}[:, None]",
        "{x}[None]",
    ),
    *("np.swapaxes({x}, -1, -2)", "{x}.reshape(-1)", "np.concatenate([{x}, {x}[:1]])", "{x}[0]"),
    *(
        "np.roll({x}, 1, 0)",
        "np.pad({x}, 1)",
        "{x}[np.array([1, 0, 1])]",
        "{x}[..., None]",
        "{x}[-1]",
    ),
    *("np.stack([{x}, {x}], -1)", "{x}.astype(np.float32)", "{x}.astype(np.float64)", "{x}.copy()"),
    *(
        "{x}.astype(np.int32)",
        "{x}.astype(np.int8)",
        "{x}.astype(np.float16)",
        "{x}.astype(np.uint8)",
    ),
    *("np.diff({x})", "np.broadcast_to({x}, (3, *{x}.shape))", "np.take({x}, [0, 1, 0], -1)"),
]
STENCILS = [
    *("{x}[:-2] + {x}[2:] - 2 * {x}[1:-1]", "{x}[..., :-1] * 0.5 + {x}[..., 1:] * 0.5"),
    *("{x}[1:-1, 1:-1] + 0.1 * ({x}[:-2, 1:-1] + {x}[2:, 1:-1] + {x}[1:-1, :-2])",),
    *("np.roll({x}, 1, 0) + np.roll({x}, -1, 0)", "{x}[1:] * 0.5 - {x}[:-1]"),
]
UPDATES = [
    *(
        "{z}[1:-1] += 0.1 * ({z}[:-2] + {z}[2:] - 2 * {z}[1:-1])",
        "{z}[0] = 0",
        "{z}[..., 0] += {z}[..., 1]",
    ),
    *(
        "{z}[1:-1] = {x}[2:] - {x}[:-2]",
        "{z}[-1] = {z}[-2]",
        "{z}[:, 1:] = {z}[:, :-1]",
        "{z}[1:-1, 1:-1] += 0.1 * {z}[:-2, 1:-1]",
        "{z} *= 0.5",
        "{z}[::2] = 1",
    ),
]
PRODUCTS = [
    *(
        "{x} @ {y}",
        "{x} @ np.swapaxes({y}, -1, -2)",
        "np.maximum({x} @ np.swapaxes({y}, -1, -2) + 1, 0)",
    ),
    *("{x} @ {x}.T", "np.sum(({x}[:, None] - {y}[None]) ** 2, -1)", "np.dot({x}, {y})"),
    *(
        "np.einsum('ij,kj->ik', {x}, {y})",
        "np.outer({x}, {y})",
        "{x}.astype(np.int32) @ {x}.astype(np.int32).T",
    ),
    *("np.einsum('...ij,...kj->...ik', {x}, {y})", "np.sum({x}[:, None] * {y}[None], 1)"),
    *(
        "{x} / (1 + np.abs({x} @ {x}.reshape(-1)[: {x}.shape[-1]])[..., None])",
        "np.stack([{x}, {y}, {x}], -1) * {x}[..., None] + np.arange(3)",
    ),
]
KINDS = [
    UNARY,
    UNARY,
    BINARY,
    BINARY,
    REDUCTIONS,
    REDUCTIONS,
    ROWS,
    ROWS,
    MOVES,
    STENCILS,
    UPDATES,
    PRODUCTS,
]
COPIES = [
    *(
        "{z}[::2] = 0",
        "{z}[1:] = {z}[:-1]",
        "{z}[0] = 3",
        "{z}[..., ::2] *= 2",
        "{z}[:] = {x}[::-1]",
    ),
    *("{z}[2:5] = {x}[:3]", "{z}[:, :-1] = 3", "{z}[1:-1] = {x}[2:]", "{z}[-1] += {z}[0]"),
    *(
        "{z}[{z} > 1] = 0",
        "{z}[...] = np.where({z} > 0, {z}, 1)",
        "{z}[1:-1, 1:] = {x}[1:-1, :-1] * 2",
    ),
]
SAME_SIZE = [("f8", "i8", "u8"), ("f4", "i4", "u4"), ("f2", "i2", "u2"), ("i1", "u1", "?")]
TYPED = [
    *("np.where({x} > 1, {x}, {x}.dtype.type(1)).astype('{t}')", "{x}.astype('{t}')"),
    *("np.where({x} > 0, {x}.astype('{t}'), {x}.astype('{t}') + 1)", "({x} > 0).astype('{t}')"),
    *(
        "np.count_nonzero(np.where({x} > 1, {x}, {x}.dtype.type(0)))",
        "np.count_nonzero({x}, {last})",
    ),
    *(
        "np.where({x} > 1, {x}, {x}.dtype.type(1)).astype('{t}').sum({axis})",
        "{x}.astype('{t}') * 2",
    ),
    *("np.where({x} > 0, {x}, {x}[..., ::-1])", "np.where({y} > 0, {x}, {x}.dtype.type(2)) + {y}"),
    *("np.where({x} > 1, {x}, {x}.dtype.type(0)).sum({axis})", "np.maximum({x}, 1).astype('{t}')"),
    *(
        "np.where({x}, {x}, {x}.dtype.type(1)).astype('{t}')[..., 1:]",
        "{x}.astype('{t}').sum({axis})",
    ),
]
INDICES = [
    *("{x}[np.arange(1, {x}.shape[0], 2)]", "np.take({x}, np.arange({x}.shape[-1])[::2], -1)"),
    "{x}[np.abs({y}).reshape(-1)[:9].astype(np.int64) % {x}.shape[0]]",
    "np.take_along_axis({x}, np.argsort({x}, {last}, kind='stable'), {last})",
    "np.searchsorted(np.sort({x}.reshape(-1)), {y})",
    *("np.searchsorted(np.sort({x}.reshape(-1)), {y}, side='right')", "np.argsort({x}, {last})"),
    *("np.interp({x}, np.sort({y}.reshape(-1)), {y}.reshape(-1))", "np.digitize({x}, [0.0, 1.0])"),
    *(
        "np.sort({x}, {last})[..., ::-1]",
        "np.median({x}, {last})",
        "np.percentile({x}, 30, {last})",
    ),
]
ACCUMULATED = [
    *("np.cumsum({x}, {last})", "np.cumprod({x}, {last})", "np.maximum.accumulate({x}, {last})"),
    *(
        "np.cumsum({x} * 2, {last}) + {x}",
        "np.add.reduceat({x}, [0, 2])",
        "np.gradient({x}, {last})",
    ),
    *("np.cumsum({x}, {last}, dtype=np.float64)", "np.diff({x}, {last})", "np.trace({x})"),
]
SEVERAL_AXES = [
    *("{x}.sum({axes})", "{x}.mean({axes})", "{x}.max({axes})", "np.any({x} > 0, {axes})"),
    *("{x} - {x}.mean({axes})", "({x} * {x}).sum({axes})", "np.nansum({x}, {axes})"),
    *("{x}.std({axes})", "{x}.var({axes}, ddof=1)", "np.ptp({x}, {axes})", "np.prod({x}, {axes})"),
    *("np.linalg.norm({x}, {last})", "np.average({x}, {last})", "np.count_nonzero({x}, {axes})"),
]
MADE = [
    *("{x} * np.arange({x}.shape[-1])", "{x} @ np.eye({x}.shape[-1])", "np.tril({x})"),
    *("np.triu({x}, 1)", "np.where(np.arange({x}.shape[-1]) % 2 == 0, {x}, 0)", "np.tile({x}, 2)"),
    *("np.repeat({x}, 2, {last})", "np.flip({x}, {last})", "np.rot90({x})", "np.cov({x})"),
    *("np.lib.stride_tricks.sliding_window_view({x}, 3, -1).mean(-1)", "np.moveaxis({x}, 0, -1)"),
    *("np.lib.stride_tricks.sliding_window_view({x}, 2, 0).max(-1)", "np.insert({x}, 1, 0, 0)"),
    *("np.lib.stride_tricks.sliding_window_view({x}, 3, -1) * {x}.dtype.type(2)", "np.vander({x})"),
    *("np.zeros_like({x}) + {y}", "np.full({x}.shape, 2, {x}.dtype)", "np.ones(3, {x}.dtype)"),
    *("np.broadcast_to({x}[..., :1], {x}.shape) + {x}", "np.diagonal({x})", "np.kron({x}, [1, 2])"),
]
LIBRARY = [
    *("np.exp2({x})", "np.partition({x}, 1)", "np.ldexp({x}, 2)", "np.ravel({x}, 'F')"),
    *("np.einsum('ij,ij->i', {x}, {y})", "np.fft.fft({x}).real", "np.convolve({x}, [1, 2, 1])"),
]
FUNCTIONS = [
    *("np.logaddexp({x}, {y})", "np.hypot({x}, {y})", "np.arctan2({x}, {y})", "{x} ** 3"),
    *("np.abs({x}) ** 0.5", "2.0 ** {x}", "{x} // ({y} + 7)", "{x} % 3", "np.fmod({x}, 3)"),
    *("np.log2(np.abs({x}) + 1)", "np.cbrt({x})", "np.isnan({x})", "np.nan_to_num({x})"),
    *("np.logical_xor({x} > 0, {y} > 0)", "np.round({x}, 1)", "np.copysign({x}, {y})", "~{x}"),
    *("np.select([{x} > 0, {x} < -1], [{x}, {y}], 0)", "{x} & {y}", "{x} | 3", "{x} ^ {y}"),
    *("{x} << 2", "{x} >> 1", "np.heaviside({x}, 0.5)", "({x} + 1j * {y})", "np.conj({x})"),
    *("np.abs({x}) ** {y}", "np.real({x} * 1j)", "np.floor({x})", "np.trunc({x})", "np.cos({x})"),
    *(
        "np.sinh({x})",
        "np.arctan({x})",
        "np.square({x})",
        "np.reciprocal({x} + 1)",
        "np.angle({x})",
    ),
]
NUMBERS = [
    *("{x}.reshape(-1)[np.abs({y}.sum()).astype(np.int64) % {x}.size]", "{x}.sum() ** 2.5"),
    *("np.sqrt(np.abs({x}.sum()))", "{x}.max() * 2 + {x}.min()", "{x}.reshape(-1)[0] * 3 - 1"),
    *("{x} * {y}.sum()", "np.where({x}.sum() > {y}.sum(), {x}, {x} + 1)", "{x}.mean() // 2"),
    *(
        "np.exp(-np.abs({x}.mean())) + {x}.std()",
        "np.linalg.norm({x}) ** 2",
        "{x}.sum() == {y}.sum()",
    ),
    *(
        "{x}.sum().astype(np.float32) * np.float64(0.3)",
        "{x}.sum().astype(np.int32) % 5",
        "{x}.any() & {y}.all()",
    ),
]
BATCHES = [
    *("({x} @ np.swapaxes({y}, -1, -2)) @ {y}", "{x} @ {y}.reshape(-1)[: {x}.shape[-1]]"),
    *("np.exp({x} @ np.swapaxes({x}, -1, -2) * 0.1) @ {x}", "np.tensordot({x}, {y}, ([-1], [-1]))"),
    "(lambda s: np.exp(s - s.max(-1, keepdims=True)) @ {x})({x} @ np.swapaxes({x}, -1, -2))",
    "(lambda s: s / (1 + s.sum(-1, keepdims=True)) @ s)(np.abs({x} @ np.swapaxes({x}, -1, -2)))",
    "(lambda q: np.swapaxes(np.exp(q @ np.swapaxes(q, -1, -2) / 9) @ q, -2, -3).reshape({x}.shape))"
    "(np.swapaxes({x}.reshape(*{x}.shape[:-1], 2, -1), -2, -3))",
    "({x} @ np.swapaxes({y}, -1, -2)).sum(-1, keepdims=True) * {x}",
    "({x} @ np.swapaxes({x}, -1, -2)).reshape({x}.shape[0], -1) * 2",
    "np.swapaxes(({x} @ np.swapaxes({x}, -1, -2)) * 2, -1, -2) @ {x}",
    "({x} * 2) @ {x}.reshape(-1)[: {x}.shape[-1]] + 1",
    "({x} @ {x}.reshape(-1)[: {x}.shape[-1]])[..., None] * {x}",
    "(({x} - {x}.mean(-1, keepdims=True)) @ np.swapaxes({x}, -1, -2)).max(-1)",
    "np.swapaxes({x}, 0, 1) @ np.swapaxes(np.swapaxes({y}, 0, 1), -1, -2)",
    "np.maximum({x} @ np.swapaxes({y}, -1, -2) + {x}[..., :1], 0)",
    "{x}.astype(np.uint8) @ np.swapaxes({y}.astype(np.uint8), -1, -2)",
    "{x}.astype('i1').astype(np.int32) @ np.swapaxes({y}.astype('i1').astype(np.int32), -1, -2)",
    "np.swapaxes({x}.astype(np.int16), -1, -2).astype(np.int64) @ {x}.astype(np.int64)",
]
CHANNELS = [
    "(lambda f: f[..., 0] * f[..., 1] - f[..., 2])({x}.astype(np.float32) * 2)",
    "(lambda f: f[:-1] + f[1:])({x}.astype(np.float64))",
    "({x} + np.broadcast_to({x}[:1], {x}.shape))[::2] * 2",
    "({x} + np.full({x}.shape, 2, {x}.dtype))[..., 1:2] * 2",
    "(lambda f: f[0] - f[-1].sum())({x} * {x})",
    "(({x}[:, None] - {y}[None]) ** 2).sum(-1)",
]
PLACES = [
    *("{z}[:2], {z}[2:4] = {x}[:2] * 2, {x}[2:4] + 1", "{z}[0], {z}[-1] = {x}[1] * 2, {x}[1] + 1"),
    "{z}.reshape(-1)[np.abs({y}.sum()).astype(np.int64) % {z}.size] = {x}.max()",
    *("{z}[np.array([0, 2])] = {x}[:2]", "{z}[np.arange(0, len({z}), 2)] += 1", "{z}[0, 0] = 7"),
    *(
        "{z}.T[...] = {x}.T",
        "{z}[[1, 0]] = {z}[[0, 1]]",
        "{z}[..., ::-1] += {z}",
        "{z} -= {z}.mean(0)",
    ),
    *(
        "{z}[1:] += {x}[:-1]",
        "{z}.reshape(-1)[::3] = 0",
        "np.add({z}, 1, out={z})",
        "{z}[:1] *= {z}[-1:]",
    ),
    *(
        "{z}[...] = np.sqrt(np.abs({z}))",
        "{z}[1:-1] = {z}[:-2] + {z}[2:]",
        "{z}[::2] = {z}[::-1][::2]",
    ),
]
LOOPS = [
    "turns(3, lambda i, v: (v * 0.5 + {x}).astype({x}.dtype), {x})",
    "turns(5, lambda i, v: np.where(v > i, v, {x}), {x})",
    "turns(4, lambda i, v: np.concatenate([v[1:], v[:1]]), {x})",
    "turns(3, lambda i, v: shifted(v), {x} + 1)",
    "turns(40, lambda i, v: (v + np.abs(v).max(-1, keepdims=True) * 0).astype({y}.dtype), {y})",
    "choice({x}.sum() > 0, lambda v: (v * 2).astype({x}.dtype), shifted, {x})",
    "rows(lambda c, row: ((c + row).astype({x}.dtype), row * c), {x}[0], {x})[1]",
    "rows(lambda c, row: (np.maximum(c, row), np.sort(row, -1)), {x}[-1], {x})[1] * 2",
    "rows(lambda c, row: (c * row.dtype.type(1), c.sum()), {x}[0], {x})[1]",
]
BROAD = [
    *(INDICES, ACCUMULATED, SEVERAL_AXES, MADE, FUNCTIONS, FUNCTIONS, NUMBERS, BATCHES, BATCHES),
    *(
        CHANNELS,
        LOOPS,
        PLACES,
        PLACES,
        COPIES,
        UNARY,
        BINARY,
        REDUCTIONS,
        ROWS,
        MOVES,
        STENCILS,
        TYPED,
        LIBRARY,
    ),
]
UPDATING = [COPIES, COPIES, COPIES, TYPED, TYPED, TYPED, UPDATES, UNARY, BINARY, MOVES, REDUCTIONS]
VIEWS = ["{x}.T", "{x}[..., ::2]", "{x}[1:]", "{x}[None]", "{x}[..., ::-1]", "{x}.reshape(-1)"]
