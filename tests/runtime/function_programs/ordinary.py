"""Statements that people write most: arithmetic, indexing, reductions, reshapes, loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.runtime.function_programs.draft import Draft

REDUCTIONS = {
    "sum": 10,
    "mean": 8,
    "max": 5,
    "min": 4,
    "std": 3,
    "var": 3,
    "prod": 1,
    "any": 2,
    "all": 2,
    "argmax": 2,
    "argmin": 1,
    "cumsum": 2,
    "ptp": 1,
    "median": 1,
    "count_nonzero": 1,
    "nansum": 1,
    "nanmax": 0.5,
    "nanmean": 0.5,
    "average": 1,
    "linalg.norm": 2,
    "trapezoid": 0.5,
}


def arithmetic(draft: Draft) -> bool:
    return bool(draft.assign("arithmetic", draft.expression(draft.random.randint(1, 3))))


def reduction(draft: Draft) -> bool:
    name = draft.expression(1) if draft.chance(0.4) else draft.array(min_ndim=1)
    value = draft.evaluate(name)
    kind = draft.weighted(REDUCTIONS)
    arguments: list[str] = []
    if np.ndim(value) and draft.chance(0.6):
        axis = draft.choice(range(-np.ndim(value), np.ndim(value)))
        arguments.append(f"axis={axis}" if draft.chance(0.8) else str(axis))
    elif np.ndim(value) > 1 and draft.chance(0.15):
        arguments.append("axis=(0, 1)")
    if draft.chance(0.2):
        arguments.append("keepdims=True")
    if kind in ("sum", "mean", "prod", "std", "var", "cumsum") and draft.chance(0.15):
        arguments.append(f"dtype={draft.choice(['np.float64', 'np.float32', 'np.int64'])}")
    if kind in ("std", "var") and draft.chance(0.3):
        arguments.append("ddof=1")
    if kind in ("sum", "max", "min", "prod") and draft.chance(0.1):
        arguments.append(f"initial={draft.choice(['0', '1', '2.5'])}")
        if draft.chance(0.5) and name.isalnum():
            arguments.append(f"where={draft.mask(name)}")
    is_method = hasattr(np.ndarray, kind) and draft.chance(0.6)
    if is_method:
        return bool(draft.assign("reduction", f"({name}).{kind}({', '.join(arguments)})"))
    return bool(draft.assign("reduction", f"np.{kind}({', '.join([name, *arguments])})"))


def _basic_index(draft: Draft, length: int) -> str:
    options = ["0", "-1", ":", "1:", ":-1", "::2", "::-1", ":2", "1:-1", "..., 0", "None", "-3:"]
    options += [str(length // 2), f":{max(length // 2, 1)}", "..., None, :1"]
    return draft.choice(options)


def index_text(draft: Draft, name: str, allow_masks: bool = False) -> str:
    """An index into a variable, of known size."""
    value = draft.live[name]
    kind = draft.random.random()
    if kind < 0.45 or not value.ndim or not value.size:
        return _basic_index(draft, len(value) if value.ndim else 0)
    if kind < 0.72 and value.ndim > 1:
        return f"{_basic_index(draft, value.shape[0])}, {_basic_index(draft, value.shape[1])}"
    if kind < 0.78:
        return f"({draft.choice(['0', '-1', 'slice(None, None, 2)'])},)"
    if kind < 0.88 or not allow_masks:
        places = [draft.random.randrange(value.shape[0]) for _ in range(3)]
        form = draft.choice(["{}", "np.array({})", "np.array({}, np.int32)", "..., [0]"])
        return form.format(places)
    return draft.mask(name)


def index(draft: Draft) -> bool:
    name = draft.array(min_ndim=1)
    text = f"{name}[{index_text(draft, name)}]"
    if draft.chance(0.35):
        pattern = draft.choice(
            ["{} * 2", "{} - {}", "{}.sum()", "np.sqrt(np.abs({}))", "{}.copy()"]
        )
        text = pattern.replace("{}", text)
    if draft.chance(0.1):
        text = f"{name}[1:] {draft.choice('+-*')} {name}[:-1]"
    if draft.chance(0.05):
        text = f"np.take({name}, [0, -1], axis={draft.choice([0, -1])})"
    return bool(draft.assign("index", text))


RESHAPES = (
    "{}.T",
    "{}.reshape(-1)",
    "{}.ravel()",
    "{}.flatten()",
    "{}.reshape(-1, 1)",
    "{}.reshape(1, -1)",
    "{0}.reshape({0}.shape[::-1])",
    "{0}.reshape({0}.shape + (1,))",
    "{0}.reshape({0}.shape[0], -1)",
    "{}[:, None]",
    "{}[None, :]",
    "{}[..., np.newaxis]",
    "np.expand_dims({}, 0)",
    "np.squeeze({})",
    "np.transpose({})",
    "np.swapaxes({}, 0, 1)",
    "{}.transpose(1, 0)",
    "np.moveaxis({}, -1, 0)",
    "np.atleast_2d({})",
    "np.concatenate([{0}, {1}])",
    "np.concatenate(({0}, {1}), axis=-1)",
    "np.stack([{0}, {1}])",
    "np.stack([{0}, {1}], axis=-1)",
    "np.hstack([{0}, {1}])",
    "np.vstack([{0}, {1}])",
    "np.column_stack([{0}, {1}])",
    "np.append({0}, {1})",
    "np.append({0}, 1.0)",
    "np.tile({}, 2)",
    "np.repeat({}, 2)",
    "np.repeat({}, 2, axis=0)",
    "np.roll({}, 1)",
    "np.flip({}, axis=0)",
    "np.pad({}, 1)",
    "np.pad({}, 1, mode='edge')",
    "np.split({}, [1])[1]",
    "np.broadcast_to({0}, (2,) + {0}.shape)",
    "np.broadcast_arrays({0}, 1.0)[0]",
    "np.insert({}, 0, 0)",
    "np.delete({}, 0)",
    "np.delete({}, 0, axis=0)",
    "np.diag({})",
    "np.triu({})",
    "np.tril({}, -1)",
    "np.meshgrid({0}[:3], {1}[:2])[0]",
    "np.block([[{0}], [{1}]])",
)


def reshape(draft: Draft) -> bool:
    name = draft.array(min_ndim=1)
    value = draft.live[name]
    pattern = draft.choice(RESHAPES)
    if value.size > 400 and ("[:, None]" in pattern or "diag(" in pattern) and value.ndim == 1:
        return False
    return bool(draft.assign("reshape", pattern.format(name, draft.pick_like(name))))


SELECTIONS = (
    "np.where({m}, {0}, {1})",
    "np.where({m}, {0}, 0)",
    "np.where({m}, 1.0, {0})",
    "np.where({m}, {0}, {0} * 2).astype(np.int64)",
    "np.clip({0}, -1, 1)",
    "{0}.clip(0, 2)",
    "{0}.clip(min=0)",
    "np.clip({0}, {1}, None)",
    "np.maximum({0}, {1})",
    "np.minimum({0}, 0.5)",
    "np.select([{m}, {0} < 1], [{0}, {1}], default=0)",
    "np.isfinite({0})",
    "np.nan_to_num({0}, nan=1.0)",
    "{0} * ({m})",
    "({m}).sum()",
    "({m}).mean(axis=0)",
    "np.isclose({0}, {1})",
    "np.allclose({0}, {0})",
    "np.array_equal({0}, {1})",
    "np.sum({0}[{m}])",
    "{0}[{m}].max(initial=0)",
    "np.any({m}, axis=-1)",
    "np.logical_not({m})",
    "np.diff({0})",
    "np.diff({0}, axis=0)",
    "np.cumsum({0}, axis=-1)",
    "np.cumsum({0})",
    "np.cumprod({0}, axis=0)",
    "np.gradient({0}, axis=0)",
    "np.interp({0}, [0.0, 1.0, 2.0], [0.0, 5.0, 3.0])",
    "np.sort({0})",
    "np.sort({0}, axis=0)",
    "np.argsort({0}, kind='stable')",
    "np.argsort({0}, axis=-1)",
    "np.sort({0})[::-1]",
    "np.searchsorted(np.sort({0}.ravel()), [0.5, 1.5])",
    "np.digitize({0}, [-1, 0, 1])",
    "np.quantile({0}, 0.5)",
    "np.percentile({0}, [25, 75], axis=0)",
    "np.median({0}, axis=0)",
    "np.convolve({0}.ravel(), [1, 2, 1], mode='same')",
    "np.take_along_axis({0}, np.argsort({0}, axis=-1), axis=-1)",
    "np.histogram({0}, bins=4)[0]",
    "np.isin({0}, [0, 1, 2])",
    "np.round({0}, 2)",
    "np.modf({0})[0]",
    "divmod({0}, 2)[1]",
)


def selection(draft: Draft) -> bool:
    name = draft.array(min_ndim=1)
    pattern = draft.choice(SELECTIONS)
    text = pattern.replace("{m}", draft.mask(name)).format(name, draft.pick_like(name))
    return bool(draft.assign("selection", text, value_dependent="[{m}]" in pattern))


def in_place(draft: Draft) -> bool:
    """Write to an array that may be an argument: by an operator, a slice, a mask or `out=`."""
    name = draft.array(min_ndim=1)
    if draft.chance(0.4):
        copied = draft.name()
        form = draft.choice([".copy()", " * 1.0", " + 0", ".astype(float)"])
        if draft.attempt("in-place", f"{copied} = {name}{form}"):
            name = copied
    value = draft.literal() if draft.chance(0.6) else draft.expression(1, name)
    where = index_text(draft, name, allow_masks=True)
    operator = draft.choice(["=", "=", "=", "+=", "*=", "-=", "/="])
    lines = draft.choice(
        [
            f"{name} {operator if operator != '=' else '+='} {value}",
            f"{name}[{where}] {operator} {value}",
            f"{name}[{where}] {operator} {value}",
            f"{name}[...] = {value}",
            f"np.add({name}, {value}, out={name})",
            f"np.sqrt(np.abs({name}), out={name})",
            f"np.multiply({name}, {value}, {name})",
            f"{name}[{draft.mask(name)}] = {draft.literal()}",
            f"{name}[{draft.mask(name)}] += 1",
            f"{name}[1:] = {name}[:-1]",
            f"{name}[1:-1] += {name}[2:] - {name}[:-2]",
            f"{name}.sort()",
            f"{name}.fill({draft.literal()})",
            f"np.copyto({name}, {value})",
            f"{name}[0], {name}[-1] = {name}[-1].copy(), {name}[0].copy()",
        ]
    )
    return draft.attempt("in-place", lines)


PRODUCTS = (
    "{0} @ {0}.T",
    "{0}.T @ {0}",
    "{0} @ {1}",
    "{0}.dot({1})",
    "np.dot({0}, {1}.T)",
    "np.matmul({0}, {1})",
    "{0} @ {0}[0]",
    "np.inner({0}, {1})",
    "np.einsum('ij,ij->i', {0}, {1})",
    "np.einsum('ij->ji', {0})",
    "np.einsum('ij,kj->ik', {0}, {1})",
    "np.einsum('i,i', {0}, {1})",
    "np.vdot({0}, {1})",
    "np.tensordot({0}, {1}, axes=([0], [0]))",
    "np.trace({0})",
    "np.linalg.norm({0}, axis=-1)",
    "np.linalg.norm({0})",
    "np.linalg.matrix_power({0}, 2)",
    "np.outer({0}[:5], {1}[:5])",
    "np.kron({0}[:2], {1}[:2])",
    "np.cross({0}[..., :3], {1}[..., :3])",
    "np.cov({0})",
    "np.corrcoef({0})",
)
SOLVES = (
    "np.linalg.inv({s})",
    "np.linalg.solve({s}, {s}[0])",
    "np.linalg.det({s})",
    "np.linalg.cholesky({s})",
    "np.linalg.eigvalsh({s})",
    "np.linalg.pinv({s})",
    "np.linalg.slogdet({s})[1]",
    "np.linalg.qr({s})[1]",
)


def linear_algebra(draft: Draft) -> bool:
    name = draft.array("iufc", min_ndim=1 if draft.chance(0.3) else 2, max_ndim=2)
    value = draft.live[name]
    if draft.chance(0.12) and value.ndim == 2 and value.shape[0] <= 8:
        square = f"({name} @ {name}.T + np.eye({value.shape[0]}))"
        return bool(draft.assign("solve", draft.choice(SOLVES).format(s=square)))
    pattern = draft.choice(PRODUCTS)
    if value.ndim == 1 and value.size > 4000 and "inner" not in pattern and "vdot" not in pattern:
        pattern = draft.choice(["np.dot({0}, {1})", "{0} @ {1}", "np.einsum('i,i', {0}, {1})"])
    return bool(draft.assign("linear algebra", pattern.format(name, draft.pick_like(name))))


CREATIONS = (
    "np.zeros({0}.shape)",
    "np.zeros_like({0})",
    "np.ones_like({0})",
    "np.ones_like({0}, dtype=np.float32)",
    "np.full({0}.shape, 2.5)",
    "np.full_like({0}, 3)",
    "np.arange({0}.size).reshape({0}.shape)",
    "np.arange(len({0}))",
    "np.linspace(0, 1, len({0}))",
    "np.eye(3)",
    "np.identity(2)",
    "np.array([1.0, 2.0, 3.0])",
    "np.array([[1, 2], [3, 4]])",
    "np.asarray({0}, dtype=np.float64)",
    "np.array({0})",
    "np.array({0}, dtype='float32')",
    "np.zeros({0}.shape, {0}.dtype) + {0}",
    "np.arange(0, 1, 0.25)",
    "np.array([{0}.sum(), {0}.mean()])",
    "np.array([{0}[0], {0}[-1]])",
    "np.zeros(({0}.shape[0], 2))",
    "np.tri(3)",
    "np.logspace(0, 1, 4)",
    "np.indices((2, 3))[0]",
    "np.empty({0}.shape)",
)


def creation(draft: Draft) -> bool:
    name = draft.array(min_ndim=1)
    pattern = draft.choice(CREATIONS)
    if pattern.startswith("np.empty"):
        fresh = draft.name()
        lines = (f"{fresh} = {pattern.format(name)}", f"{fresh}[...] = {draft.expression(1, name)}")
        return draft.attempt("creation", *lines)
    return bool(draft.assign("creation", pattern.format(name)))


def loop(draft: Draft) -> bool:
    """A loop over rows, indices or a range; a comprehension."""
    name = draft.array(min_ndim=1)
    value = draft.live[name]
    target, other = draft.name(), draft.pick_like(name)
    if not value.shape[0]:
        return False
    if value.shape[0] > 24:
        lines = draft.choice(
            [
                (
                    f"{target} = {name} * 1.0",
                    "for _ in range(3):",
                    f"    {target} = {target} * 0.5",
                ),
                (
                    f"{target} = 0.0",
                    "for step in (1, 2, 3):",
                    f"    {target} += {name}[step] * step",
                ),
                (f"{target} = [{name} * k for k in (1, 2.0)]",),
                (f"{target} = {name}.copy()", "for i in range(3):", f"    {target}[i] = i"),
            ]
        )
        return draft.attempt("loop", *lines)
    lines = draft.choice(
        [
            (f"{target} = 0", f"for row in {name}:", f"    {target} = {target} + row"),
            (f"{target} = 0", f"for row in {name}:", f"    {target} += row * 2"),
            (
                f"{target} = np.zeros({name}.shape)",
                f"for i in range(len({name})):",
                f"    {target}[i] = {name}[i] * i",
            ),
            (
                f"{target} = []",
                f"for i, row in enumerate({name}):",
                f"    {target}.append(row * i)",
                f"{target} = np.array({target})",
            ),
            (f"{target} = [row.sum() for row in {name}]",),
            (f"{target} = np.array([row.max() for row in {name}])",),
            (f"{target} = sum(row for row in {name})",),
            (f"{target} = [one * two for one, two in zip({name}, {other})]",),
            (f"{target} = {{i: row for i, row in enumerate({name})}}",),
            (f"{target} = np.stack([row[::-1] for row in {name}])",),
            (f"{target} = functools.reduce(operator.add, list({name}))",),
            (f"{target} = {name}.copy()", f"for row in {target}:", "    row *= 2"),
            (
                f"{target} = {name}.copy()",
                f"for i in range(1, {name}.shape[0]):",
                f"    {target}[i] = {target}[i - 1] * 0.5 + {name}[i]",
            ),
            (
                f"{target} = 0.0",
                f"for i in range({name}.shape[0]):",
                f"    for j in range({name}.shape[-1]):",
                f"        {target} += {name}[i, j] * (i - j)",
            ),
            (f"{target}, *{draft.name()} = {name}",),
        ]
    )
    return draft.attempt("loop", *lines)


CONDITIONS = (
    "{0}.dtype.kind == 'f'",
    "{0}.ndim > 1",
    "len({0}) > 3",
    "{0}.shape[0] % 2 == 0",
    "{0}.dtype == np.float64",
    "np.issubdtype({0}.dtype, np.floating)",
    "{0}.size and {0}.shape[-1] > 2",
    "np.iscomplexobj({0})",
    "isinstance({0}, np.ndarray)",
    "isinstance({0}.sum(), float)",
    "isinstance({0}.sum(), np.floating)",
    "np.isscalar({0}.sum())",
    "type({0}) is np.ndarray",
    "{0}.dtype in (np.float32, np.float64)",
    "{0}.itemsize == 8",
    "{0}.nbytes > 100",
    "{0}.flags.c_contiguous",
    "{0}.flags['F_CONTIGUOUS']",
    "{0}.strides[0] > 0",
    "np.can_cast({0}.dtype, np.float32)",
    "np.result_type({0}, 1.0) == np.float64",
    "{0} is {1}",
    "{0} is None",
    "callable({0})",
    "np.ndim({0}) == 2",
    "np.shape({0}) == np.shape({1})",
    "{0}.base is None",
    "np.finfo({0}.dtype).bits == 64",
    "1 < len({0}) <= 5",
    "0 < {0}.ndim < 3",
    "{0}.dtype.name.startswith('float')",
    "{0}.dtype.itemsize > {1}.dtype.itemsize",
    "str({0}.dtype) == 'int64'",
)


def type_decision(draft: Draft) -> bool:
    """A branch of Python on a dtype, a shape, a flag or a type."""
    name = draft.array(min_ndim=1)
    other = draft.pick_like(name)
    condition = draft.choice(CONDITIONS).format(name, other)
    target = draft.name()
    first, second = draft.expression(1, name), draft.expression(1, name)
    if draft.chance(0.3):
        return bool(draft.assign("type decision", f"{first} if {condition} else {second}"))
    lines = (f"if {condition}:", f"    {target} = {first}", "else:", f"    {target} = {second}")
    return draft.attempt("type decision", *lines)


HELPERS = (
    ("def {h}(x):", "    return x * 2 + 1"),
    ("def {h}(x, scale=0.5):", "    return x * scale"),
    ("def {h}(x):", "    y = x - x.mean()", "    return y / (x.std() + 1e-6)"),
    ("def {h}(x, *more):", "    for one in more:", "        x = x + one", "    return x"),
    ("def {h}(x, **settings):", "    return np.sum(x, **settings)"),
    ("{h} = lambda x: np.maximum(x, 0)",),
    ("{h} = functools.partial(np.multiply, 3)",),
    ("def {h}(x):", "    if x.ndim < 1:", "        return x", "    x = x.copy()",
     "    x[0] = 0", "    return x"),
    ("def {h}(x):", "    def inner(y):", "        return y + x", "    return inner(x) * 2"),
    ("def {h}(x, n=3):", "    return x if n == 0 else {h}(x * 0.5, n - 1)"),
    ("class {h}:", "    def __new__(cls, x):", "        return x + 1"),
    ("@functools.wraps(np.exp)", "def {h}(x):", "    return np.exp(-np.abs(x))"),
)  # fmt: skip


def helper_call(draft: Draft) -> bool:
    helper = draft.name("h")
    lines = [line.replace("{h}", helper) for line in draft.choice(HELPERS)]
    if not draft.declare("helper", *lines):
        return False
    return bool(draft.assign("helper", f"{helper}({draft.expression(1)})"))


SCALARS = (
    "{0}.sum()",
    "{0}.mean()",
    "{0}.max(initial=1)",
    "{0}.ravel()[0]",
    "{0}[0]",
    "np.sqrt(np.sum({0} * {0}))",
    "{0}.size",
    "len({0})",
    "{0}.shape[0] * 0.5",
    "{0}.shape",
    "math.sqrt({0}.size)",
    "{0} / np.linalg.norm({0})",
    "{0} - {0}.mean(axis=0)",
    "{0} / {0}.sum(axis=-1, keepdims=True)",
    "({0} - {0}.min()) / ({0}.max() - {0}.min() + 1)",
    "np.sum({0} ** 2) / {0}.size",
    "{0}.var() + 1",
    "np.mean({0}) * {0}.shape[0]",
    "np.dot({0}.ravel(), {0}.ravel())",
    "{0}.dtype.type(2) * {0}",
    "np.float32(1.5) * {0}",
    "np.float64(0.1) + {0}",
    "np.exp({0} - np.max({0})) / np.sum(np.exp({0} - np.max({0})))",
    "{0}.argmax()",
    "{0}.any()",
    "np.finfo(np.float64).eps + {0}",
    "abs({0}.sum()) ** 0.5",
)


def scalar(draft: Draft) -> bool:
    name = draft.array(min_ndim=1)
    return bool(draft.assign("scalar", draft.choice(SCALARS).format(name)))


CONVERSIONS = (
    "{0}.astype(np.float32)",
    "{0}.astype('float64')",
    "{0}.astype(int)",
    "{0}.astype(np.int8)",
    "{0}.astype(bool)",
    "{0}.astype({1}.dtype)",
    "{0}.astype(np.float16)",
    "{0}.astype(np.complex64)",
    "{0}.astype(np.uint8)",
    "{0}.astype(float, copy=False)",
    "{0}.astype(np.float32, order='F')",
    "np.float32({0})",
    "np.asarray({0}, np.float32)",
    "{0}.view(np.ndarray)",
    "({0} * 2).astype({0}.dtype)",
    "np.around({0}).astype(np.int64)",
    "{0}.real",
    "{0}.imag",
    "{0}.astype(np.int64) // 2",
    "{0}.astype(np.int32) << 1",
    "np.bitwise_and({0}.astype(np.int64), 3)",
    "np.asanyarray({0})",
    "np.ascontiguousarray({0})",
    "{0}.view('i8')",
)


def conversion(draft: Draft) -> bool:
    name = draft.array()
    pattern = draft.choice(CONVERSIONS)
    return bool(draft.assign("conversion", pattern.format(name, draft.pick_like(name))))


ORDINARY: dict[str, tuple[float, Callable[[Draft], bool]]] = {
    "arithmetic": (26, arithmetic),
    "reduction": (13, reduction),
    "index": (11, index),
    "reshape": (9, reshape),
    "selection": (10, selection),
    "in_place": (10, in_place),
    "linear_algebra": (6, linear_algebra),
    "creation": (5, creation),
    "loop": (5, loop),
    "type_decision": (4, type_decision),
    "helper_call": (4, helper_call),
    "scalar": (6, scalar),
    "conversion": (5, conversion),
}
