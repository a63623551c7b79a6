"""The library of a program: by its class, by the names that it uses, by its arguments."""

from __future__ import annotations

from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphir import GraphError
from graphir.runtime.sources.libraries import library_of

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")

SOURCE = """
import helpers
import numpy as np
{imports}
SCALE = {scale}

def logged(function):
    @wraps(function)
    def run(*args):
        return function(*args)
    return run

class Net{base}:
    def __call__(self, x):
        return x

def plain(x): return x * 2
def numeric(x): return np.sin(x)
def lax(x): return jnp.sin(np.float32(x))
def tensor(x): return torch.sin(x)
def by_helper(x): return lax(x) + 1
def by_import(x):
    import torch
    return torch.sin(x)
def by_constant(x): return x * SCALE
def nested(x): return [jnp.sin(each) for each in x]
def both(x): return jnp.asarray(torch.sin(x).numpy())
def by_module(x): return helpers.double(x)
decorated = logged(lax)
def closing(f):
    def run(x): return f(x)
    return run
closed = closing(lax)
jitted = jax.jit(plain) if "jax" in globals() else None
grad = jax.grad(plain) if "jax" in globals() else None
bound = partial(tensor, 3)
free = torch.no_grad()(plain) if "torch" in globals() else None
net = Net()
"""


def module(path: Path, imports: str = "", scale: str = "2", base: str = "") -> Any:
    helpers = ModuleType("helpers")
    helpers.__dict__.update(__file__=str(path / "helpers.py"))
    if imports:
        helpers.__dict__["jax"] = jax
    source = SOURCE.format(imports=imports, scale=scale, base=base)
    code = compile(source.replace("import helpers\n", ""), str(path / "program.py"), "exec")
    program = ModuleType("program")
    program.__dict__.update(helpers=helpers, wraps=wraps, partial=partial)
    exec(code, program.__dict__)
    return program


BOTH = "import jax, torch\nimport jax.numpy as jnp"


@pytest.mark.parametrize(
    ("name", "library"),
    [
        *(("numeric", "numpy"), ("lax", "jax"), ("tensor", "torch"), ("by_helper", "jax")),
        *(("by_import", "torch"), ("nested", "jax"), ("decorated", "jax"), ("jitted", "jax")),
        *(("grad", "jax"), ("bound", "torch"), ("free", "torch"), ("by_module", "jax")),
        ("closed", "jax"),
    ],
)
def test_the_names_that_a_function_uses(name: str, library: str, tmp_path: Path) -> None:
    assert library_of(getattr(module(tmp_path, BOTH), name)) == library


@pytest.mark.parametrize("name", ["plain", "both"])
def test_ambiguous_functions_are_refused_with_the_option(name: str, tmp_path: Path) -> None:
    program = module(tmp_path, BOTH)
    with pytest.raises(GraphError, match="name the library, as in --library jax"):
        library_of(getattr(program, name), [np.ones(3)])


def test_arguments_constants_and_imports_decide(tmp_path: Path) -> None:
    program = module(tmp_path, BOTH)
    assert library_of(program.plain, [{"w": [torch.ones(3)]}]) == "torch"
    assert library_of(program.plain, [(jax.numpy.ones(3), np.ones(3))]) == "jax"
    assert library_of(module(tmp_path, BOTH, "jnp.ones(3)").by_constant) == "jax"
    assert library_of(module(tmp_path).plain, [np.ones(3)]) == "numpy"


def test_classes_and_their_objects(tmp_path: Path) -> None:
    program = module(tmp_path, "import torch", base="(torch.nn.Module)")
    assert library_of(program.Net) == library_of(program.net) == "torch"
    assert library_of(program.net.forward) == "torch"
    assert library_of(torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))) == "torch"
    assert library_of(jax.nn.relu) == "jax" and library_of(np.sin) == "numpy"
