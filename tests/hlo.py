"""StableHLO text, parsed and verified by jaxlib's MLIR, and run by XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.extend.backend import get_backend

REFUSED = (ir.MLIRError, ValueError)


def parsed(text: str) -> Any:
    """The module, verified; one of REFUSED for what is none."""
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        return module


def run(text: str, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a module's main."""
    parsed(text)
    backend = get_backend("cpu")
    devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
    compiled = backend.compile_and_load(text, devices, xla_client.CompileOptions())
    given = [jax.device_put(one) for one in inputs]
    return [
        np.asarray(one[0])
        for one in compiled.execute_sharded(given).disassemble_into_single_device_arrays()
    ]
