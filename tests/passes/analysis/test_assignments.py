"""Casts of assignments: the value that is cast, and what to type instead."""

import importlib.util
import textwrap

import numpy as np
import pytest

from graphir import Graph
from graphir.passes import cast_report
from graphir.runtime import record

STATEMENTS = [
    # statement, what is cast to float16, what to type instead
    ("a[:] = w", "w", 'a[:] = w.astype("float16")'),
    ("a[1:] = w[1:] * 2", "w[1:] * 2", 'a[1:] = (w[1:] * 2).astype("float16")'),
    ("a[a > 1] = w[0]", "w[0]", 'a[a > 1] = w[0].astype("float16")'),
    ("a[[0, 2]] = w[:2]", "w[:2]", 'a[[0, 2]] = w[:2].astype("float16")'),
    ("a.real = w", "w", 'a.real = w.astype("float16")'),
    ("if True: a[0] = w[0]", "w[0]", 'a[0] = w[0].astype("float16")'),
    ("b = 1; a[:] = (w\n    + 1)  # why", "(w + 1)", 'a[:] = (w + 1).astype("float16")'),
    ("a[:] = b = w", "w", 'a[:] = b = w.astype("float16")'),
    ("ä = a; ä[:] = w", "w", 'ä[:] = w.astype("float16")'),
    ("a += w - 1", "a += w - 1", 'a += (w - 1).astype("float16")'),
    ("a[:] = [0.1, w[0], 0.2]", "[0.1, w[0], 0.2]", ""),
    ("a[:], b = w, 1", "", ""),
    ("np.copyto(a, w, casting='unsafe')", "w", ""),
]


def program(tmp_path, statement):
    path = tmp_path / "assigning.py"
    body = textwrap.indent(statement, "    ")
    path.write_text(f"import numpy as np\n\ndef f(a, w):\n{body}\n    return a\n")
    spec = importlib.util.spec_from_file_location("assigning", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def stores(function):
    a, w = np.arange(3, dtype=np.float16), np.array([0.1, 0.2, 0.3])
    rows = record(function, a, w).report()
    return [row for row in rows if row.conversion.stores]


@pytest.mark.parametrize(("statement", "text", "fix"), STATEMENTS)
def test_the_value_is_what_an_assignment_casts(tmp_path, statement, text, fix):
    (row,) = stores(program(tmp_path, statement))
    assert (row.text, row.fix) == (text, fix)
    assert not row.others, "no rule set decides what an array's dtype is"
    assert row.target.name == "float16"


@pytest.mark.parametrize("fix", [fix for *_, fix in STATEMENTS if fix and "b =" not in fix])
def test_what_is_to_be_typed_casts_nothing_silently(tmp_path, fix):
    assert not stores(program(tmp_path, "ä = a\n" + fix))


def test_what_was_put_into_an_array_has_its_dtype(tmp_path):
    source = "a += w\nb = a * np.float64(0.1)\nreturn b"
    f = program(tmp_path, source)
    rows = record(f, np.arange(3, dtype=np.float16), np.ones(3)).report()
    (row,) = [row for row in rows if row.op == "multiply"]
    assert row.fix == 'a.astype("float64") * np.float64(0.1)'


def test_an_augmented_assignment_is_written_out_where_its_target_is_cast():
    g = Graph("sum", rules="jax")
    x, y = g.input("int16", ("n",), name="x"), g.input("float32", ("n",), name="y")
    x *= y - 1
    g.output(x)
    (row,) = cast_report(g).only(kind="implicit")
    assert row.fix == 'x = x.astype("float32") * (y - 1)'
