"""The names of JAX and PyTorch that no page of theirs documents, and on which the sources rely.

A test fails where a release has dropped one; what then becomes of a program stands beside it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tables import every

JAX = {
    "equation.source_info.traceback.raw_frames()": "the lines of all equations are lost",
    "equation.source_info.name_stack": "layers of flax have no names",
    "jaxpr.jaxpr.debug_info.func_src_info": "a function that is compiled twice has no note",
    "jaxpr.jaxpr.debug_info.func_filename": "lines inside of JAX's functions are those of a cache",
    "jaxpr.jaxpr.debug_info.arg_names": "inputs are named x0, x1",
    "equation.primitive.get_bind_params(equation.params)": "calls of primitives fail",
    "vars(equation.primitive)['impl']": "calls of primitives are compiled first",
    "jax.random.key(0).dtype._impl.name": "calls that take keys fail",
    "jax.config.jax_enable_x64": "graphs have 64 bits always",
}
SCAN = ("num_consts num_carry", "ft_in ft_out")
"""How scan counts its operands, to 0.10 and since 0.11; a scan with other names is a call."""

TORCH = {
    "torch._ops.HigherOrderOperator": "control flow fails without its name",
    "torch._decomp.decomposition_table": "ops without a row are calls",
    "torch._C._dispatch_has_kernel_for_dispatch_key": "ops without a row are calls",
    "torch._C._DisableAutocast": "values under autocast are converted twice",
    "torch._C._get_mkldnn_enabled": "an LSTM is one call",
    "torch._C._set_mkldnn_enabled": "an LSTM is one call",
    "torch.utils._pytree.tree_leaves": "nothing is imported",
    "torch.utils._python_dispatch.TorchDispatchMode": "nothing is imported",
    "torch.Tensor.__torch_dispatch__": "subclasses of Tensor are taken for tensors",
}


@every("name", JAX)
def test_jax_has(name: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jaxpr = jax.make_jaxpr(lambda x: x + 1)(1.0)
    eval(name, {"jax": jax, "jaxpr": jaxpr, "equation": jaxpr.eqns[0]})


def test_jax_counts_the_operands_of_a_scan() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jaxpr = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, y: (c + y, c), 0.0, x))(
        jax.numpy.ones(3)
    )
    params: dict[str, Any] = jaxpr.eqns[-1].params
    assert any(set(names.split()) <= params.keys() for names in SCAN)


def test_jax_expands_the_primitives_that_it_composes() -> None:
    """Since 0.12; without the names each is a call."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    jaxpr = jax.make_jaxpr(jax.numpy.frexp)(1.0)
    composed = [
        equation.params["_prim"]
        for equation in jaxpr.jaxpr.eqns
        if equation.primitive.name == "call_hi_primitive"
    ]
    assert all(hasattr(each, "expand") and hasattr(each, "in_tree") for each in composed)


@every("name", TORCH)
def test_torch_has(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    eval(name, {"torch": torch})
