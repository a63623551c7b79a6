"""Make a program that fails smaller: fewer calls, statements, results, and simpler operands."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from dataclasses import replace

from tests.runtime.function_programs.programs import Program, Statement
from tests.runtime.function_programs.runs import Outcome, run_program


def normalized(text: str) -> str:
    """A message without places, numbers and names of variables."""
    text = re.sub(r"\S*program_\d+_\d+\.py(:\d+)*", "FILE", text.partition("\n")[0])
    text = re.sub(r"0x[0-9a-f]+|%?\b[a-z]{1,2}\d+\b", "X", text)
    text = re.sub(r"\[[^\[\]]*\]|\([^()]*\)", "", text)
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "N", text)[:110].strip()


def identity(outcome: Outcome) -> tuple[str, str, str]:
    """What a smaller program must still show."""
    is_message = outcome.status in ("refused", "crashed")
    return outcome.status, outcome.kind, normalized(outcome.detail) if is_message else ""


def culprits(program: Program) -> list[str]:
    """The functions, methods, operators and statements that a small program uses."""
    text = "".join(one.text() for one in (*program.preamble, *program.body, program.result))
    text = re.sub(
        r"\b(if|else|for|try|except|finally|with|while|lambda|def|class)\b", r" .\1 ", text
    )
    text = re.sub(r"'[^']*'|\be-\d+", "", text)
    found = re.findall(
        r"np(?:\.\w+)+|\.[a-z]\w*|\b\w+(?==[^=])|\*\*|//|[-+*/%@&|^<>\[]|[=!]=", text
    )
    return sorted({one.lstrip(".") if one.startswith(".") else one for one in found})


def _fewer_calls(program: Program, place: int) -> Iterator[Program]:
    calls = program.calls[: place + 1]
    if len(calls) > 1:
        yield replace(program, calls=calls[-1:])
        yield replace(program, calls=(calls[0], calls[-1]))
    if len(calls) < len(program.calls):
        yield replace(program, calls=calls)


def _smaller_results(program: Program) -> Iterator[Program]:
    names = re.findall(r"\bt\d+\b", program.result.lines[0])
    assigned = re.findall(r"\b[ta]\d+\b", program.source())
    for name in dict.fromkeys([*names, *reversed(assigned)]):
        text = f"return {name}"
        if text != program.result.lines[0]:
            yield replace(program, result=Statement((text,), ""))


def _fewer_statements(program: Program) -> Iterator[Program]:
    for statement in (*reversed(program.body), *reversed(program.preamble)):
        yield program.without(statement)


def _fewer_arguments(program: Program) -> Iterator[Program]:
    body = "".join(one.text() for one in (*program.body, program.result))
    for parameter in program.parameters:
        if re.search(rf"\b{parameter.partition('=')[0]}\b", body):
            continue
        calls = tuple(
            replace(
                call,
                arguments={k: v for k, v in call.arguments.items() if k != parameter},
                keywords=tuple(one for one in call.keywords if one != parameter),
            )
            for call in program.calls
        )
        left = tuple(one for one in program.parameters if one != parameter)
        yield replace(program, parameters=left, calls=calls)


def _inlined(program: Program) -> Iterator[Program]:
    """Put the expression of an assignment where its variable stands."""
    for place, statement in enumerate(program.body):
        name, _, text = statement.lines[0].partition(" = ")
        if len(statement.lines) > 1 or not name.isidentifier():
            continue
        text = text if re.fullmatch(r"[\w.]+(\([^()]*\))?", text) else f"({text})"

        def put(one: Statement, name: str = name, text: str = text) -> Statement:
            lines = (re.sub(rf"\b{name}\b", lambda _: text, line) for line in one.lines)
            return replace(one, lines=tuple(lines))

        later = tuple(put(one) for one in program.body[place + 1 :])
        yield replace(program, body=program.body[:place] + later, result=put(program.result))


def _simpler_lines(line: str) -> Iterator[str]:
    """The line with one expression of it replaced by a part of that expression."""
    indent = line[: len(line) - len(line.lstrip())]
    try:
        tree = ast.parse(line.strip())
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call | ast.Subscript | ast.IfExp):
            continue
        whole = ast.get_source_segment(line.strip(), node)
        for part in ast.iter_child_nodes(node):
            text = ast.get_source_segment(line.strip(), part) if isinstance(part, ast.expr) else ""
            if whole and text and not (isinstance(part, ast.Attribute) and "np." in text):
                yield indent + line.strip().replace(whole, f"{text}", 1)


def _simpler_statements(program: Program) -> Iterator[Program]:
    for statement in (*program.body, program.result):
        for place, line in enumerate(statement.lines):
            for simpler in _simpler_lines(line):
                lines = (*statement.lines[:place], simpler, *statement.lines[place + 1 :])
                changed = replace(statement, lines=lines)
                if statement is program.result:
                    yield replace(program, result=changed)
                else:
                    body = tuple(changed if one is statement else one for one in program.body)
                    yield replace(program, body=body)


def _simpler_arguments(program: Program) -> Iterator[Program]:
    """Fewer elements, then plain layouts, values and dtypes."""
    arguments = program.calls[0].arguments.values()
    if "as_strided" in program.source():
        return  # it would read beyond fewer elements
    for length in {n for one in arguments for n in one.shape or () if n > 3}:
        for shorter in (2, 3):
            calls = tuple(
                replace(
                    call,
                    arguments={
                        name: one.with_dimensions({length: shorter})
                        for name, one in call.arguments.items()
                    },
                )
                for call in program.calls
            )
            yield replace(program, calls=calls)
    for name in program.calls[0].arguments:
        for change in ({"layout": "C"}, {"kind": "integral"}, {"dtype": "float64"}):
            calls = tuple(
                replace(call, arguments={**call.arguments, name: replace(one, **change)})
                for call in program.calls
                if (one := call.arguments[name]).shape is not None
            )
            if calls and len(calls) == len(program.calls) and calls != program.calls:
                yield replace(program, calls=calls)


def shrink(program: Program, front_end: str, outcome: Outcome, seconds: float = 4.0) -> Program:
    """The smallest program found in that time whose outcome is of the same kind."""
    deadline, wanted, place = time.monotonic() + seconds, identity(outcome), outcome.call

    def still_fails(candidate: Program) -> int | None:
        try:
            found = run_program(candidate, front_end, seconds=2.0)
        except Exception:
            return None
        return found.call if identity(found) == wanted else None

    passes = (
        lambda one: _fewer_calls(one, place),
        _smaller_results,
        _fewer_statements,
        _fewer_arguments,
        _inlined,
        _simpler_statements,
        _simpler_arguments,
    )
    progress = True
    while progress:
        progress = False
        for candidates in passes:
            found = True
            while found:
                found = False
                for candidate in candidates(program):
                    if time.monotonic() > deadline:
                        return program
                    is_smaller = len(candidate.text()) < len(program.text())
                    if candidate == program or not (is_smaller or candidates is passes[-1]):
                        continue
                    failing = still_fails(candidate)
                    if failing is not None:
                        program, place, found, progress = candidate, failing, True, True
                        break
    return program
