"""Draw loops, branches and transformations of JAX: carries weak and strong, derivatives, keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from .drawn_programs import Statement
from .jax_statements import Drawing


def _is_small(value: Any) -> bool:
    return value.ndim == 0


def _has_rows(value: Any) -> bool:
    return value.ndim >= 1 and 0 < value.shape[0] <= 6


def _is_float(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.floating))


def expression(drawing: Drawing, names: list[str], depth: int = 2) -> str:
    """An elementwise expression of the names, with scalars and casts."""
    rng = drawing.random
    if depth == 0 or rng.random() < 0.15:
        return str(rng.choice(names))
    first = expression(drawing, names, depth - 1)
    second = expression(drawing, names, depth - 1)
    number = drawing.scalar() if rng.random() < 0.3 else drawing.python_scalar()
    dtype = drawing.dtype_text()
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
                f"jnp.where({first} > {number}, {first}, {second})": 3,
                f"jnp.where({first} > 0, {number}, {second})": 2,
                f"~(jnp.sin({first}))~": 2,
                f"~(jnp.exp(-jnp.abs({first})))~": 1,
                f"({first}).astype({dtype})": 2,
                f"(2.0 * ({first} > 0) - 1.0)": 2,
                f"jnp.maximum({first}, {number})": 2,
                f"-({first})": 1,
                f"({first} > {second})": 1,
                f"~(jnp.tanh({first}))~": 2,
                f"jnp.minimum({first}, {second})": 1,
                f"({first}) ** 2": 1,
                f"({first}) % 3": 1,
                f"jnp.float32({first})": 0.5,
                f"lax.stop_gradient({first})": 0.3,
                f"jnp.asarray({first}, {dtype})": 0.5,
                f"({first}) // 2": 0.7,
            }
        )
    )


def _carry(drawing: Drawing) -> str:
    """An initial carry, weak or strong."""
    small = drawing.variable(_is_small)
    table = {
        "0": 3,
        "0.0": 4,
        "1": 2,
        "1.0": 2,
        "True": 0.5,
        "jnp.zeros(())": 3,
        "jnp.float32(0)": 2,
        "jnp.int32(1)": 2,
        "jnp.array(0.5)": 1,
        "jnp.zeros((), jnp.bfloat16)": 2,
        "np.float32(0.5)": 1,
        "jnp.array(2)": 1,
        "jnp.ones(3)": 2,
        "jnp.zeros(3, jnp.int32)": 1,
        f"jnp.zeros((), {drawing.dtype_text()})": 2,
        "jnp.asarray(1.0)": 1,
        "0j": 0.3,
        "jnp.float16(1)": 1,
        "np.float64(0.25)": 0.7,
    }
    if small:
        table[small] = 5
        table[f"{small} * 0"] = 1
    other = drawing.variable()
    if other:
        table[other] = 3
        table[f"jnp.zeros_like({other})"] = 2
    return str(drawing.choose(table))


def draw_scan(drawing: Drawing) -> Statement | None:
    rows = drawing.variable(_has_rows)
    name = drawing.fresh()
    number = name[1:]
    last, ys = name, f"v{int(number) + 1}"
    extra = drawing.choose(["", "", ", reverse=True", ", unroll=2"])
    xs = rows or "jnp.arange(3)"
    if rows is None or drawing.random.random() < 0.15:
        xs, extra = "None", ", length=3"
    names = ["c", "x"] if xs != "None" else ["c"]
    if drawing.random.random() < 0.25:
        new = [expression(drawing, [*names, "d"]), expression(drawing, ["d", *names])]
        lines = [
            f"def body{number}(carry, x):",
            "    c, d = carry",
            f"    return ({new[0]}, {new[1]}), {expression(drawing, [*names, 'd'])}",
            f"({last}, c{number}), {ys} = lax.scan("
            f"body{number}, ({_carry(drawing)}, {_carry(drawing)}), {xs}{extra})",
        ]
    else:
        result = drawing.choose(["c", "new", expression(drawing, [*names, "new"])])
        lines = [
            f"def body{number}(c, x):",
            f"    new = {expression(drawing, names)}",
            f"    return new, {result}",
            f"{last}, {ys} = lax.scan(body{number}, {_carry(drawing)}, {xs}{extra})",
        ]
    return drawing.statement((last, ys), "\n".join(lines), ("loop", "loop scan"))


def draw_fori(drawing: Drawing) -> Statement | None:
    name = drawing.fresh()
    bound = drawing.variable(lambda v: _is_small(v) and jnp.issubdtype(v.dtype, jnp.integer))
    upper = f"jnp.minimum({bound}, 4)" if bound and drawing.random.random() < 0.4 else "3"
    lower = drawing.choose(["0", "0", "1", "jnp.int32(0)", "-1"])
    body = expression(drawing, ["c", "c", "i"])
    text = f"{name} = lax.fori_loop({lower}, {upper}, lambda i, c: {body}, {_carry(drawing)})"
    return drawing.statement((name,), text, ("loop", "loop fori_loop"))


def draw_while(drawing: Drawing) -> Statement | None:
    name = drawing.fresh()
    body = expression(drawing, ["c", "c", "i"])
    step = drawing.choose(["i + 1", "i + 1", "i + jnp.int32(1)", "i + 1.0"])
    start = drawing.choose(["0", "0", "jnp.int32(0)", "0.0", "jnp.array(0)"])
    condition = drawing.choose(["s[0] < 3", "s[0] < 3", "(s[0] < 4) & jnp.all(s[1] < 50)"])
    lines = [
        f"def body{name[1:]}(state):",
        "    i, c = state",
        f"    return {step}, {body}",
        f"n{name[1:]}, {name} = lax.while_loop("
        f"lambda s: {condition}, body{name[1:]}, ({start}, {_carry(drawing)}))",
    ]
    return drawing.statement((name,), "\n".join(lines), ("loop", "loop while_loop"))


def draw_branch(drawing: Drawing) -> Statement | None:
    name = drawing.fresh()
    small, operand = drawing.variable(_is_small), drawing.variable()
    if small is None or operand is None:
        return None
    first, second = expression(drawing, ["a"]), expression(drawing, ["a"])
    if drawing.random.random() < 0.6:
        second = drawing.choose([second, f"jnp.asarray({second}, a.dtype)", first])
        predicate = drawing.choose([f"{small} > 0", f"{small} > 0", small, "True"])
        text = f"lax.cond({predicate}, lambda a: {first}, lambda a: {second}, {operand})"
        return drawing.statement((name,), f"{name} = {text}", ("branch", "branch cond"))
    branches = f"[lambda a: {first}, lambda a: {second}, lambda a: {first} * 1]"
    text = f"lax.switch({small}, {branches}, {operand})"
    return drawing.statement((name,), f"{name} = {text}", ("branch", "branch switch"))


def draw_map(drawing: Drawing) -> Statement | None:
    name, rows, other = drawing.fresh(), drawing.variable(_has_rows), drawing.variable(_has_rows)
    if rows is None or other is None:
        return None
    one = expression(drawing, ["a"])
    two = expression(drawing, ["a", "b"])
    number = drawing.python_scalar()
    text = drawing.choose(
        [
            f"lax.map(lambda a: {one}, {rows})",
            f"jax.vmap(lambda a: {one})({rows})",
            f"jax.vmap(lambda a, b: {two})({rows}, {other})",
            f"jax.vmap(lambda a, b: {two}, in_axes=(0, None))({rows}, {number})",
            f"jax.vmap(lambda a: ~(jnp.sum(~({one})~))~)({rows})",
            f"jax.vmap(lambda a: lax.cond(jnp.all(a > 0), jnp.abs, jnp.negative, a))({rows})",
            f"jax.vmap(lambda a: jnp.where(a > {number}, a, {number}), out_axes=-1)({rows})",
            f"lax.associative_scan(jnp.add, ~({rows})~)",
            f"jax.tree.map(lambda a: {one}, ({rows}, {other}))[0]",
            f"jnp.vectorize(lambda a: {one})({rows})",
            f"lax.map(lambda a: {one}, {rows}, batch_size=2)",
        ]
    )
    tag = str(text).split("(")[0]
    return drawing.statement((name,), f"{name} = {text}", ("map", f"map {tag}"))


def draw_derivative(drawing: Drawing) -> Statement | None:
    name, x = drawing.fresh(), drawing.variable(_is_float)
    if x is None:
        return None
    number = name[1:]
    y = expression(drawing, ["a"], 2)
    scalar = f"jnp.sum({y})"
    kind = drawing.choose(
        [
            "grad",
            "value_and_grad",
            "jvp",
            "vjp",
            "custom_jvp",
            "custom_vjp",
            "grad scan",
            "checkpoint",
            "jacfwd",
            "hessian",
            "linearize",
        ]
    )
    lines = {
        "grad": [f"{name} = ~~(jax.grad(lambda a: {scalar})({x}))~"],
        "value_and_grad": [
            f"n{number}, {name} = jax.value_and_grad(lambda a: {scalar})({x})",
            f"{name} = ~~({name})~",
        ],
        "jvp": [f"{name} = ~~(jax.jvp(lambda a: {y}, ({x},), (jnp.ones_like({x}),))[1])~"],
        "vjp": [
            f"n{number}, pull{number} = jax.vjp(lambda a: {y}, {x})",
            f"{name} = ~~(pull{number}(jnp.ones_like(n{number}))[0])~",
        ],
        "custom_jvp": [
            "@jax.custom_jvp",
            f"def g{number}(a):",
            f"    return {y}",
            f"g{number}.defjvps(lambda t, out, a: 0.5 * t)",
            f"{name} = ~~(jax.grad(lambda a: jnp.sum(g{number}(a) * 2))({x}))~ + g{number}({x})",
        ],
        "custom_vjp": [
            "@jax.custom_vjp",
            f"def g{number}(a):",
            f"    return {y}",
            f"g{number}.defvjp(lambda a: (g{number}(a), a), lambda r, g: (2.0 * r,))",
            f"{name} = ~~(jax.grad(lambda a: jnp.sum(g{number}(a)))({x}))~",
        ],
        "grad scan": [
            f"def loss{number}(a):",
            "    def body(c, x):",
            f"        new = {expression(drawing, ['c', 'x'])}",
            "        return new, new",
            f"    return jnp.sum(lax.scan(body, {_carry(drawing)}, a)[1])",
            f"{name} = ~~(jax.grad(loss{number})({x}))~",
        ],
        "checkpoint": [f"{name} = ~~(jax.grad(jax.checkpoint(lambda a: {scalar}))({x}))~"],
        "jacfwd": [f"{name} = ~~(jax.jacfwd(lambda a: {y})({x}))~"],
        "hessian": [f"{name} = ~~(jax.hessian(lambda a: jnp.sum({y} ** 2))({x}))~"],
        "linearize": [f"{name} = ~~(jax.linearize(lambda a: {y}, {x})[1](jnp.ones_like({x})))~"],
    }[kind]
    return drawing.statement((name,), "\n".join(lines), ("derivative", f"derivative {kind}"))


def draw_jit(drawing: Drawing) -> Statement | None:
    name, x, y = drawing.fresh(), drawing.variable(), drawing.operand()
    if x is None:
        return None
    inner = f"lambda a, b: {expression(drawing, ['a', 'b'])}"
    if drawing.random.random() < 0.3:
        lines = [f"g{name[1:]} = jax.jit({inner})", f"n{name[1:]} = g{name[1:]}({x}, {y})"]
        lines += [f"{name} = g{name[1:]}(n{name[1:]}, {drawing.python_scalar()}) + n{name[1:]}"]
    elif drawing.random.random() < 0.3:
        lines = [f"{name} = jax.jit({inner}, static_argnums=1)({x}, {drawing.python_scalar()})"]
    else:
        lines = [f"{name} = jax.jit({inner})({x}, {y})"]
    return drawing.statement((name,), "\n".join(lines), ("jit",))


def draw_random(drawing: Drawing) -> Statement | None:
    name, rng = drawing.fresh(), drawing.random
    make = drawing.choose(["random.key", "random.PRNGKey"])
    small = drawing.variable(lambda v: _is_small(v) and jnp.issubdtype(v.dtype, jnp.integer))
    key = f"{make}({rng.randint(0, 99)})"
    if small and rng.random() < 0.3:
        key = drawing.choose([f"{make}({small})", f"random.fold_in({key}, {small})"])
    key = drawing.choose([key, key, f"random.split({key})[1]", f"random.fold_in({key}, 3)"])
    dtype, other = drawing.dtype_text(), drawing.variable()
    shape = drawing.choose(["(3,)", "()", "(2, 3)", f"{other}.shape" if other else "(3,)"])
    text = drawing.choose(
        [
            f"random.uniform({key}, {shape})",
            f"random.uniform({key}, {shape}, {dtype})",
            f"~~(random.normal({key}, {shape}))~",
            f"~~(random.normal({key}, {shape}, {dtype}))~",
            f"random.bernoulli({key}, 0.3, {shape})",
            f"random.randint({key}, {shape}, 0, 9)",
            f"random.bits({key}, {shape})",
            f"random.permutation({key}, 4)",
            f"random.uniform({key}, {shape}, minval=-1, maxval=1)",
            f"random.key_data({key})",
            f"~~(random.truncated_normal({key}, -1, 1, {shape}))~",
            f"random.randint({key}, {shape}, 0, 100, {dtype})",
            f"~~(random.exponential({key}, {shape}))~",
            f"random.choice({key}, jnp.arange(5), {shape})",
            f"random.rademacher({key}, {shape}, {dtype})",
            f"random.categorical({key}, jnp.zeros(4))",
            f"random.split({key}.reshape(()), 2).shape[0] * jnp.ones(2)",
        ]
    )
    return drawing.statement((name,), f"{name} = {text}", ("random",))


def draw_transform(drawing: Drawing) -> Statement | None:
    table: dict[Callable[[Drawing], Statement | None], float] = {
        draw_scan: 5,
        draw_fori: 2,
        draw_while: 2,
        draw_branch: 3,
        draw_map: 3,
        draw_derivative: 4,
        draw_jit: 2,
        draw_random: 2,
    }
    statement: Statement | None = drawing.choose(table)(drawing)
    return statement
