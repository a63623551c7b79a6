"""Draw a whole program: arguments, statements, result and calls.

Three programs in five hold ordinary statements alone; the others have one or two unusual ones among
them. NumPy runs each program before it is handed out, and one in ten may raise.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from tests.runtime.function_programs.arguments import Argument, evaluate_arguments
from tests.runtime.function_programs.comparison import is_comparable
from tests.runtime.function_programs.draft import Draft
from tests.runtime.function_programs.ordinary import ORDINARY
from tests.runtime.function_programs.programs import Call, Program, Statement, unload
from tests.runtime.function_programs.unusual import UNUSUAL

UNUSUAL_PROGRAMS = 0.38
RAISING_PROGRAMS = 0.6  # the share that is kept of programs that raise by chance
LITERAL_ARGUMENTS = (
    ("3", ("4", "2", "1")),
    ("2", ("5", "0", "-1")),
    ("0.5", ("0.25", "2.0", "-1.5")),
    ("1.5", ("3.0", "1e-3")),
    ("True", ("False",)),
    ("np.float32(1.5)", ("np.float32(2)",)),
    ("np.int64(2)", ("np.int64(3)",)),
    ("np.float64(0.1)", ("np.float64(7)",)),
)


def _draw_arrays(draft: Draft) -> None:
    d = draft.dimensions
    n, m, k, length = d["n"], d["m"], d["k"], d["length"]
    families = (
        (45, [(n, m), (n, m), (m,), (n, 1), (1, m), (n, m)]),
        (25, [(length,), (length,), (1,), (length,)]),
        (8, [(n, n), (n, n), (n,)]),
        (12, [(k, n, m), (k, n, m), (n, m), (m,)]),
        (3, [(), (n,), ()]),
        (7, [(m,), (n, m), (m,)]),
    )
    shapes = draft.random.choices(
        [shapes for _, shapes in families], [weight for weight, _ in families]
    )[0]
    dtype = draft.choice(["float64"] * 4 + ["float32"] * 2 + ["int64", "int32", ""])
    for shape in [shapes[0], *draft.random.sample(shapes[1:], draft.random.randint(0, 2))]:
        is_common = dtype and draft.chance(0.6)
        kind = "special" if draft.chance(0.06) else ""
        draft.new_array(shape, dtype if is_common else None, kind)


def _draw_other_arguments(draft: Draft) -> None:
    """A literal, a container of arrays, a function, or a view of another argument."""
    if draft.chance(0.25):
        literal, alternatives = draft.choice(LITERAL_ARGUMENTS)
        name = draft.name("a")
        draft.add_argument(name, Argument(literal=literal, alternatives=alternatives))
    drawn = draft.random.random()
    first = next(iter(draft.arguments))
    source = draft.arguments[first].source
    if drawn < 0.04:
        name = draft.name("a")
        draft.add_argument(name, Argument(literal=f"[{source}, {source}]"))
        text = draft.choice(
            ["{0}[0] + {0}[1]", "sum({0})", "np.stack({0})", "[one * 2 for one in {0}]"]
        )
        draft.assign("container argument", text.format(name))
    elif drawn < 0.08:
        name = draft.name("a")
        draft.add_argument(name, Argument(literal=f"{{'w': {source}, 'b': 2.0}}"))
        text = draft.choice(["{0}['w'] * {0}['b']", "{{k: v * 2 for k, v in {0}.items()}}"])
        draft.assign("container argument", text.format(name))
    elif drawn < 0.11:
        name = draft.name("a")
        options = ("np.sum", "np.sqrt", "np.cumsum", "lambda x: x * 2", "np.max")
        draft.add_argument(name, Argument(literal=draft.choice(options), alternatives=options))
        draft.assign("function argument", f"{name}({first})")
    elif drawn < 0.14 and draft.live[first].ndim:
        name = draft.name("a")
        views = ("{}[1:]", "{}", "{}[::-1]", "{}.T", "{}[:]", "{}.reshape(-1)")
        draft.add_argument(name, Argument(literal=draft.choice(views).format(first)))
        if draft.attempt("aliased arguments", f"{first} += 1"):
            draft.assign("aliased arguments", f"{name} * 2")
    elif drawn < 0.16:
        name = draft.name("a")
        options = ("'mean'", "'sum'", "'max'")
        draft.add_argument(name, Argument(literal=draft.choice(options), alternatives=options))
        draft.assign("text argument", f"getattr(np, {name})({first})")
    elif drawn < 0.18:
        name = draft.name("a")
        draft.add_argument(name, Argument(literal="None", alternatives=("None",)))
        draft.assign("text argument", f"{first} * 2 if {name} is None else {first} + {name}")


def _draw_statements(draft: Draft) -> None:
    count = draft.random.randint(2, 6)
    tables = [ORDINARY] * count
    if draft.chance(UNUSUAL_PROGRAMS):
        for _ in range(1 if draft.chance(0.7) else 2):
            tables[draft.random.randrange(count)] = UNUSUAL
    for table in tables:
        for _ in range(8):
            names, weights = list(table), [weight for weight, _ in table.values()]
            if table[draft.random.choices(names, weights)[0]][1](draft):
                break
        if draft.ends:
            break


def _draw_result(draft: Draft) -> Statement:
    names = [name for name in draft.variables if name[0] == "t"] or draft.variables[-1:]
    names = [name for name in names if is_comparable(draft.live[name])]
    if not names:
        return Statement((f"return {next(iter(draft.arguments))}",), "")
    last = names[-1]
    drawn = draft.random.random()
    chosen = draft.random.sample(names, draft.random.randint(1, len(names)))
    text = last
    if drawn < 0.4:
        text = ", ".join(names)
    elif drawn < 0.5:
        text = f"[{', '.join(chosen)}]"
    elif drawn < 0.6:
        text = f"{{{', '.join(f'{name!r}: {name}' for name in chosen)}}}"
    elif drawn < 0.65:
        text = f"{last}, ({', '.join(chosen)},)"
    elif drawn < 0.8:
        combined = draft.expression(1, last if hasattr(draft.live[last], "shape") else None)
        text = combined if draft.is_valid(combined) else last
    return Statement((f"return {text}",), "")


def _other_dimensions(draft: Draft) -> dict[int, int]:
    shift = draft.choice([1, 1, 2])
    return {n: n + shift for n in draft.dimensions.values() if n > 1}


def _draw_calls(draft: Draft) -> tuple[Call, ...]:
    first = draft.arguments
    second = {name: one.with_other_values(draft.random) for name, one in first.items()}
    keywords: tuple[str, ...] = ()
    if draft.chance(0.08):
        keywords = tuple(first)[draft.random.randrange(len(first)) :]
    calls = [Call(first, (), keywords), Call(second, tuple(draft.changes), keywords)]
    drawn = draft.random.random()
    third: dict[str, Argument] = {}
    if drawn < 0.4:
        third = {name: one.with_other_layout(draft.random) for name, one in second.items()}
    elif drawn < 0.6:
        third = {name: one.with_other_dtype(draft.random) for name, one in second.items()}
    elif drawn < 0.85:
        dimensions = _other_dimensions(draft)
        third = {name: one.with_dimensions(dimensions) for name, one in second.items()}
    else:
        third = {name: one.with_other_values(draft.random) for name, one in first.items()}
    return (*calls, Call(third, (), keywords))


def run_with_numpy(program: Program) -> list[BaseException | None]:
    """The exception of each call, or None; raises TypeError for a result of another type."""
    namespace = program.load()
    try:
        return _call_errors(program, namespace)
    finally:
        unload(namespace)


def _call_errors(program: Program, namespace: dict[str, Any]) -> list[BaseException | None]:
    errors: list[BaseException | None] = []
    for call in program.calls:
        for change in call.changes:
            exec(change, namespace)
        values = evaluate_arguments(call.arguments, namespace)
        try:
            result = call_program(namespace["program"], call, values)
        except Exception as error:
            errors.append(error)
        else:
            if not is_comparable(result):
                raise TypeError("the result cannot be compared")
            errors.append(None)
    return errors


def call_program(function: Any, call: Call, values: dict[str, Any]) -> Any:
    positional = [value for name, value in values.items() if name not in call.keywords]
    return function(*positional, **{name: values[name] for name in call.keywords})


def _draw_once(seed: int) -> Program:
    draft = Draft(seed)
    _draw_arrays(draft)
    _draw_other_arguments(draft)
    _draw_statements(draft)
    result = _draw_result(draft)
    parameters = [*draft.arguments, *(f"{name}={text}" for name, text in draft.defaults.items())]
    return Program(
        seed=seed,
        preamble=tuple(draft.preamble),
        parameters=tuple(parameters),
        body=tuple(draft.body),
        result=result,
        calls=_draw_calls(draft),
        size=draft.size,
    )


def draw_program(seed: int) -> Program:
    """The program of a seed, with calls that NumPy runs, but for one program in ten or so."""
    for attempt in range(50):
        candidate = seed * 64 + attempt
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            program = _draw_once(candidate)
            try:
                errors = run_with_numpy(program)
            except Exception:
                continue
            if errors[:2] == [None, None] and errors[2] is not None:
                program = replace(program, calls=program.calls[:2])
                return replace(program, seed=seed)
        is_kept = (candidate * 2654435761) % 100 < 100 * RAISING_PROGRAMS
        if not any(errors) or is_kept or "raises" in program.tags:
            return replace(program, seed=seed)
    raise RuntimeError(f"no program of seed {seed} runs")
