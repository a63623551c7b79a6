"""StableHLO text, verified by jaxlib's MLIR, run by XLA and by the reference interpreter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax.extend.backend import get_backend
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

REFUSED = (ir.MLIRError, ValueError)


def parsed(text: str) -> Any:
    """The module, verified; one of REFUSED for what is none."""
    with mlir.make_ir_context() as context:
        stablehlo.register_interpreter_dialect(context)
        module = ir.Module.parse(text)
        assert module.operation.verify()
        return module


def compiled(text: str) -> Callable[[Sequence[Any]], list[Any]]:
    """A module's main, compiled by XLA for the CPU: a function of its inputs."""
    parsed(text)
    backend = get_backend("cpu")
    devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
    program = backend.compile_and_load(text, devices, xla_client.CompileOptions())

    def run(inputs: Sequence[Any]) -> list[Any]:
        found = program.execute_sharded([jax.device_put(one) for one in inputs])
        return [np.asarray(one[0]) for one in found.disassemble_into_single_device_arrays()]

    return run


def run(text: str, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a module's main, by XLA."""
    return compiled(text)(inputs)


def interpreted(text: str, inputs: Sequence[Any], dtypes: Sequence[Any]) -> list[Any]:
    """The outputs of a module's main, of these dtypes of NumPy, by StableHLO's own interpreter.

    It is given and gives what NumPy itself has: a main around the module's own takes other dtypes
    apart and puts them together.
    """
    module = parsed(_wrapped(text))
    stablehlo.register_stablehlo_passes()
    with module.context:
        passes = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
        passmanager.PassManager.parse(passes).run(module.operation)
        given = [_attribute(part) for one in inputs for part in _apart(one)]
        found = iter([np.asarray(one) for one in stablehlo.eval_module(module, given)])
    return [_together(found, np.dtype(dtype)) for dtype in dtypes]


def _attribute(array: Any) -> Any:
    letter = {"f": "f", "i": "i", "u": "ui"}[array.dtype.kind]
    type_ = ir.Type.parse(f"{letter}{8 * array.itemsize}")
    return ir.DenseElementsAttr.get(array, type=type_, shape=array.shape)


_BY_VALUE = {"i1": "i8", "i2": "i8", "i4": "i8", "ui2": "ui8", "ui4": "ui8"}
_BY_VALUE |= dict.fromkeys(("f4E2M1FN", "f6E2M3FN", "f6E3M2FN"), "f32")


def _apart(array: Any) -> list[Any]:
    """An array as arrays of dtypes of NumPy itself."""
    array = np.asarray(array, order="C")
    if array.dtype.kind == "c":
        return [np.array(array.real), np.array(array.imag)]
    if array.dtype.name in ("bool", "int2", "int4"):
        return [array.astype(np.int8)]
    if array.dtype.name in ("uint2", "uint4"):
        return [array.astype(np.uint8)]
    if array.dtype.name.startswith(("float4_", "float6_")):
        return [array.astype(np.float32)]
    return [array if array.dtype.isbuiltin == 1 else array.view(f"i{array.itemsize}")]


def _together(found: Iterator[Any], dtype: np.dtype[Any]) -> Any:
    """The array of a dtype that the next ones are."""
    one = next(found)
    if dtype.kind == "c":
        made = np.empty(one.shape, dtype)
        made.real, made.imag = one, next(found)
        return made
    bits = dtype.name.startswith(("bfloat", "float8"))
    return one.view(dtype) if bits else one.astype(dtype)


def _wrapped(text: str) -> str:
    """The text, its main called by one whose arguments and results are of plain dtypes."""
    module = parsed(text)  # which owns what is read of it
    main = module.body.operations[0]
    taken, given = ([str(one) for one in types] for types in (main.type.inputs, main.type.results))
    lines, names, parameters = [], [], []
    for place, type_ in enumerate(taken):
        plain = _plain(type_)
        own = [f"%a{place}_{i}" for i in range(len(plain))]
        parameters += [f"{name}: {one}" for name, one in zip(own, plain, strict=True)]
        lines.append(_line(f"%i{place}", _how(type_, "complex"), own, plain, type_))
        names.append(f"%i{place}")
    arrow = f"({', '.join(taken)}) -> ({', '.join(given)})"
    lines.append(f"%r:{len(given)} = func.call @graph({', '.join(names)}) : {arrow}")
    results, types = list[str](), list[str]()
    for place, type_ in enumerate(given):
        plain = _plain(type_)
        hows = ["real", "imag"] if "complex" in type_ else [_how(type_, "")]
        for i, (how, one) in enumerate(zip(hows, plain, strict=True)):
            results.append(f"%o{place}_{i}")
            types.append(one)
            lines.append(_line(results[-1], how, [f"%r#{place}"], [type_], one))
    lines.append(f"return {', '.join(results)} : {', '.join(types)}")
    head = f"func.func public @main({', '.join(parameters)}) -> ({', '.join(types)}) {{"
    inner = text.replace("func.func public @main(", "func.func private @graph(", 1)
    return inner.replace(" {\n", " {\n" + "\n".join([head, *lines, "}"]) + "\n", 1)


def _line(name: str, how: str, operands: list[str], types: list[str], result: str) -> str:
    return f'{name} = "stablehlo.{how}"({", ".join(operands)}) : ({", ".join(types)}) -> {result}'


def _plain(type_: str) -> list[str]:
    """The types of tensors of NumPy's dtypes that one of MLIR is given as."""
    sizes, element = re.fullmatch(r"tensor<((?:\d+x)*)(.*)>", type_).groups()  # type: ignore[union-attr]
    if element.startswith("complex"):
        return [f"tensor<{sizes}{element[8:-1]}>"] * 2
    plain = {"bf16": "i16"}.get(element, "i8" if element.startswith("f8") else element)
    return [f"tensor<{sizes}{_BY_VALUE.get(element, plain)}>"]


def _how(type_: str, of_parts: str) -> str:
    element = type_[7:-1].split("x")[-1]
    if "complex" in type_:
        return of_parts
    return "bitcast_convert" if element == "bf16" or element.startswith("f8") else "convert"
