"""The sentences of reports on JAX functions: widenings, second compilations, refused carries."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir import GraphError
from graphir.passes import cast_report
from graphir.runtime import audit, from_jax, interpret
from graphir.runtime.sources.jax_ import frames

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

X = np.arange(6, dtype="float32").reshape(2, 3)
WIDTH = np.float64(2.0)
BITS = np.array([1, 3], "int32")


def line_of(function: Any, offset: int) -> str:
    return f"line {function.__code__.co_firstlineno + offset}"


def test_a_wide_constant_is_named_beside_a_cast_that_follows_it() -> None:
    def fit(x: Any, targets: Any) -> Any:
        gram = jnp.exp(x / WIDTH)
        return gram @ targets.astype(gram.dtype)

    with jax.enable_x64(True):
        (sentence,) = cast_report(from_jax(fit, X, X[0])).sentences
    assert f"{line_of(fit, 1)} divides by `WIDTH`, a float64" in sentence


def test_a_cast_that_the_program_asks_for_is_no_widening() -> None:
    with jax.enable_x64(True):
        report = cast_report(from_jax(lambda x: x.astype("float64") * 2, X))
    assert report.sentences == []


def test_a_cast_to_the_default_float_is_named() -> None:
    def load(x: Any) -> Any:
        return jnp.asarray(x, dtype=float) * 2

    with jax.enable_x64(True):
        (sentence,) = cast_report(from_jax(load, X)).sentences
    assert f"{line_of(load, 1)} converts float32 to `float`, which is float64 under jax" in sentence
    assert sentence.endswith('write jnp.asarray(x, dtype="float32") (inferred: float32)')


def test_a_sign_that_no_input_has_is_named_with_its_operand() -> None:
    def mix(words: Any) -> Any:
        return words + (words >> BITS)

    (sentence,) = cast_report(from_jax(mix, np.array([7, 9], "uint32"))).sentences
    assert f"the result is int32 because {line_of(mix, 1)} has right_shift of `BITS`" in sentence
    assert sentence.endswith('write words >> BITS.astype("uint32") (inferred: uint32)')


def test_a_weak_argument_that_becomes_strong_compiles_its_function_twice() -> None:
    @jax.jit
    def step(state: Any, x: Any) -> Any:
        return {"sum": state["sum"] + x.sum(), "count": state["count"] + 1}

    def run(x: Any) -> Any:
        state = {"sum": 0.0, "count": jnp.int32(0)}
        for row in x:
            state = step(state, row)
        return state

    (sentence,) = cast_report(from_jax(run, X)).sentences
    assert sentence.startswith("step is compiled twice: `state['sum']` is weak_float in one call")
    assert f'{line_of(step.__wrapped__, 2)} has add of `state["sum"]`' in sentence
    assert sentence.endswith("start it with jnp.float32(0.0)")


def test_a_function_that_is_compiled_once_has_no_note() -> None:
    @jax.jit
    def step(total: Any, x: Any) -> Any:
        return total + x.sum()

    def run(x: Any) -> Any:
        return step(step(jnp.float32(0), x[0]), x[1])

    assert cast_report(from_jax(run, X)).sentences == []


def test_a_refused_carry_is_named_with_the_op_that_widens_it() -> None:
    def scale(carry: Any, x: Any) -> Any:
        count, total = carry
        return (count + 1, total + WIDTH * x), None

    def run(x: Any) -> Any:
        return lax.scan(scale, (jnp.int32(0), jnp.zeros(3, "float32")), x)[0]

    with jax.enable_x64(True), pytest.raises(GraphError) as error:
        from_jax(run, X)
    text = str(error.value)
    assert "scan: a carry changes its dtype; carry[1] is float32 before a round" in text
    assert f"{line_of(scale, 2)} multiplies by `WIDTH`, a float64" in text
    assert 'write WIDTH.astype("float32") * x' in text


def test_a_refused_weak_carry_is_named_with_the_value_that_starts_it() -> None:
    def shift(carry: Any, x: Any) -> Any:
        return [carry[0] + x, carry[1] + carry[0]], None

    def run(x: Any) -> Any:
        start = [0.0, 0.0]
        return lax.scan(shift, start, x)[0]

    with pytest.raises(GraphError) as error:
        from_jax(run, X[0].astype("float16"))
    assert "carry[1] is weak_float before a round and float16 after it" in str(error.value)
    assert "start carry[1] of `start` with a value of float16" in str(error.value)


def test_other_errors_of_a_trace_stay() -> None:
    filtering = jax.config.jax_traceback_filtering
    with pytest.raises(TypeError, match="same number of dimensions"):
        from_jax(lambda x: lax.add(x, x[0]), X)
    assert jax.config.jax_traceback_filtering == filtering


def test_an_effect_that_the_graph_lacks_is_said() -> None:
    def loud(x: Any) -> Any:
        jax.debug.print("{}", x)
        return x + 1

    graph = from_jax(loud, X)
    assert cast_report(graph).sentences == [
        f"debug_print of {line_of(loud, 1)} is left out of the graph"
    ]


def test_results_that_are_no_arrays_are_no_outputs() -> None:
    graph = from_jax(lambda x: {"loss": x.sum(), "name": "net", "type": jax.typeof(x), "n": 3}, X)
    loss, count = interpret(graph, X)
    assert (loss, count) == (15.0, 3)


def test_a_closed_array_has_the_line_of_its_use() -> None:
    table = jnp.arange(3.0)

    @jax.jit
    def add(x: Any) -> Any:
        y = x * 2
        return y + table

    graph = from_jax(lambda x: add(x), X)
    (constant,) = (x for x in graph.symbols if x.op.name == "constant" and x.rank)
    assert f"line {constant.location.line}" == line_of(add.__wrapped__, 3)


def test_a_function_of_jax_that_is_traced_once_has_the_lines_of_all_its_calls() -> None:
    def twice(x: Any) -> Any:
        a = jnp.var(x)
        b = jnp.var(x)
        return a, b

    lines = {f"line {x.location.line}" for x in from_jax(twice, X).symbols if x.args}
    assert lines == {line_of(twice, 1), line_of(twice, 2)}


def test_a_cast_inside_a_package_names_the_function_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def halved(x, n):\n    return x.astype('bfloat16') * n\n"
    (tmp_path / "narrowing.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(frames, "SITE_PACKAGES", (str(tmp_path),))
    monkeypatch.setattr(frames, "INSTALLED", (*frames.INSTALLED, str(tmp_path)))
    narrowing = importlib.import_module("narrowing")
    graph = from_jax(lambda x, n: narrowing.halved(x, n), np.ones(3, "f4"), np.ones(3, "i4"))
    rows = cast_report(graph).rows
    operands = {(row.operand, row.op) for row in rows}
    assert operands == {("intermediate", "narrowing.halved"), ("rhs", "multiply")}
    assert {row.location.layer for row in rows} == {"narrowing.halved"}
    assert {Path(row.location.file).name for row in rows} == {Path(__file__).name}


def test_the_weak_carry_in_a_body_is_a_cast_of_jax() -> None:
    def total(x: Any) -> Any:
        return jax.lax.scan(lambda carry, row: (carry * 0.5 + row, row), 0.0, x)[0]

    rows = cast_report(from_jax(total, np.ones(3, "f4"))).rows
    assert "explicit" not in {row.kind for row in rows}


def test_an_array_that_a_constructor_narrows_is_a_cast_at_its_line() -> None:
    table = np.linspace(0.001, 1.0, 8, dtype=np.float32)

    def rotated(x: Any) -> Any:
        rate = jnp.asarray(table, dtype=jnp.bfloat16)
        return jnp.cos(x * rate.astype(jnp.float32))

    report = audit(from_jax(rotated, X[0, 0]), np.float32(4000))
    (sentence,) = [x for x in report.sentences if "because" in x]
    line = rotated.__code__.co_firstlineno + 1
    assert f"because line {line} changes" in sentence and "by float32 -> bfloat16" in sentence


@pytest.mark.filterwarnings("ignore:overflow")  # that of JAX
def test_a_number_that_the_other_dtype_does_not_hold_keeps_its_value() -> None:
    def masked(x: Any) -> Any:
        return (1.0 - x) * (-1e9) + x

    graph = from_jax(masked, jnp.ones(8, jnp.float16))
    (number,) = [x for x in graph.symbols if x.attrs.get("literal") == -1e9]
    assert np.isneginf(number.attrs["value"])
    report = audit(graph, np.ones(8, np.float16))
    assert report.outputs[0].broken
    assert "a number: -1000000000.0 becomes -inf" in report.sentences[0]
