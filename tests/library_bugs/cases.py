"""The facts about each program of this folder, and how a library runs it."""

from __future__ import annotations

import importlib
import re
from types import ModuleType
from typing import Any, NamedTuple

from tests.support.guilty_lines import BORN, GUILTY


class LibraryBug(NamedTuple):
    """One program: where it is, what is at fault by which rule, a line that mends it."""

    library: str
    name: str
    operand: str
    """The operand at fault, as the guilty line spells it; of ONNX, the name of the value."""
    rule: str
    """The dtypes that meet and what they give, or the conversion that loses."""
    fix: str
    """Lines that replace the marked line."""
    fix_at: str = GUILTY
    node: str | None = None
    """The name of the guilty node, of an ONNX model."""

    @property
    def module(self) -> ModuleType:
        return importlib.import_module(f"tests.library_bugs.{self.library}_bugs.{self.name}")

    @property
    def thread(self) -> str:
        found = re.search(r"https://\S+(?<!\.)", self.module.__doc__ or "")
        assert found, f"{self.name}: the docstring cites no thread"
        return found[0]


def outcome(library: str, module: ModuleType) -> Any:
    """What the library makes of the program: a result, or the exception that it raises."""
    run = {"jax": _run_jax, "torch": _run_torch, "onnx": _run_onnx}[library]
    try:
        return run(module)
    except Exception as error:  # of any library: the result is the fault
        return error


def _run_jax(module: ModuleType) -> Any:
    import jax

    with jax.enable_x64(module.X64):
        return module.program(*module.inputs())


def _run_torch(module: ModuleType) -> Any:
    import torch

    with torch.no_grad():
        return module.program(*module.inputs())


def _run_onnx(module: ModuleType) -> Any:
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = module.model()
    onnx.checker.check_model(model, full_check=True)
    return ReferenceEvaluator(model).run(None, module.inputs())


CASES = (
    LibraryBug(
        "jax",
        "adam_learning_rate",
        "step",
        "NumPy: a power of a bfloat16 scalar is float32; jax: float32 * bfloat16 -> float32",
        "return jax.tree.map(lambda u: -step.astype(u.dtype) * u, updates)",
    ),
    LibraryBug(
        "jax",
        "kernel_width",
        'config["sigma"]',
        "jax: float32 / float64 -> float64; a NumPy scalar is not weak",
        'return jnp.exp(-pair_distances(x, y) / float(config["sigma"]) ** 2)',
    ),
    LibraryBug(
        "jax",
        "scan_of_products",
        "event_counts(batch, total.shape)",
        "jax: prod of int32 is int64; int32 + int64 -> int64",
        "total = total + event_counts(batch, total.shape).astype(total.dtype)",
    ),
    LibraryBug(
        "jax",
        "newton_loop",
        "DAMPING",
        "jax: float64 * float32 -> float64; a NumPy scalar is not weak",
        "return i + 1, x - float(DAMPING) * residual(x) / slope",
    ),
    LibraryBug(
        "jax",
        "weak_carries",
        "start",
        "jax: weak float32 + float16 -> float16, a carry a round",
        "start = [jnp.zeros((), samples.dtype)] * STAGES\n"
        "stages, trace = lax.scan(cascade, start, samples)",
    ),
    LibraryBug(
        "jax",
        "double_compilation",
        "total",
        "jax: weak float32 + float32 -> float32, no longer weak",
        'CONFIG = {"start": jnp.float32(0)}',
        fix_at='CONFIG = {"start": 0.0}',
    ),
    LibraryBug(
        "jax",
        "solver_state",
        "stepsize",
        "jax: weak float32 / float32 -> float32, no longer weak",
        "return SolverState(jnp.asarray(0, jnp.int32), jnp.float32(1), jnp.asarray(jnp.inf))",
        fix_at="return SolverState(jnp.asarray(0, jnp.int32), jnp.asarray(1.0), "
        "jnp.asarray(jnp.inf))",
    ),
    LibraryBug(
        "jax",
        "hash_shift",
        "shift",
        "jax without 64-bit types: uint32 >> int32 -> int32",
        "return words ^ (words >> shift.astype(words.dtype))",
    ),
    LibraryBug(
        "jax",
        "layer_norm",
        'params["scale"]',
        "jax: bfloat16 * float32 -> float32",
        'scale, bias = params["scale"].astype(x.dtype), params["bias"].astype(x.dtype)\n'
        "return normalized * scale + bias",
    ),
    LibraryBug(
        "jax",
        "default_float",
        "float",
        "jax with 64-bit types: dtype=float is float64",
        "return jnp.asarray(beta, dtype=jnp.result_type(beta, float))",
    ),
    LibraryBug(
        "torch",
        "rms_norm",
        "self.weight",
        "torch: float32 * bfloat16 -> float32",
        "return (self.weight * hidden_states).to(input_dtype)",
    ),
    LibraryBug(
        "torch",
        "autocast_bias",
        "self.bias",
        "torch: bfloat16 of autocast + float32 -> float32",
        "return out + self.bias.to(out.dtype)",
    ),
    LibraryBug(
        "torch",
        "rotary_scale",
        "self.scales(length)",
        "torch: bfloat16 * float32 -> float32",
        "return rotated * self.scales(length).to(x.dtype)",
    ),
    LibraryBug(
        "torch",
        "rotary_positions",
        "torch.arange(length)",
        "a cast of int64 to bfloat16, which does not hold 257",
        "t = torch.arange(length, dtype=torch.float32)",
    ),
    LibraryBug(
        "torch",
        "masked_scores",
        "mask",
        "an overflow of float16: -65504 + -64 is -inf",
        "scores = torch.clamp(scores + mask, min=torch.finfo(scores.dtype).min)",
    ),
    LibraryBug(
        "torch",
        "padding_planes",
        "padding",
        "an overflow of bfloat16: twice its lowest value is -inf",
        "return torch.minimum(causal[None], padding)",
    ),
    LibraryBug(
        "torch",
        "scheduler_sigmas",
        "size",
        "torch: float32 + float64 -> float64",
        "return latents + size.view(-1, 1, 1).to(latents.dtype) * velocity",
    ),
    LibraryBug(
        "torch",
        "collated_targets",
        "target",
        "torch: float32 - float64 -> float64",
        "error = prediction - target.to(prediction.dtype)",
    ),
    LibraryBug(
        "torch",
        "autocast_rope",
        "positions",
        "autocast: the operands of matmul are cast to bfloat16, which does not hold 65537",
        "angles = inv_freq * positions.unsqueeze(2)",
    ),
    LibraryBug(
        "torch",
        "position_embedding",
        "self.interpolated_positions(height, width)",
        "torch: bfloat16 + float32 -> float32",
        "positions = self.interpolated_positions(height, width)\n"
        "return hidden_states + positions.to(hidden_states.dtype)",
    ),
    LibraryBug(
        "onnx",
        "classifier_product",
        "coefficient",
        "MatMul has one type; got double and float",
        'helper.make_node("Cast", ["X"], ["x"], "Cast", to=TensorProto.FLOAT),\n'
        'helper.make_node("MatMul", ["x", "coefficient"], ["product"], "MatMul"),',
        node="MatMul",
    ),
    LibraryBug(
        "onnx",
        "grid_width",
        "width",
        "Mul has one type; got float and int64",
        'helper.make_node("Mul", ["whole", "divisor"], ["multiple"], "Mul_11"),',
        node="Mul_11",
    ),
    LibraryBug(
        "onnx",
        "double_constant",
        "onnx::2",
        "Sub has one type; got float and double",
        "tensor = numpy_helper.from_array(np.array(value, np.float32), result)",
        fix_at=BORN,
        node="Sub_1",
    ),
    LibraryBug(
        "onnx",
        "where_zero",
        "/attention/Constant_output_0",
        "Where has one type; got float and double",
        "tensor = numpy_helper.from_array(np.float32(value), name)",
        fix_at=BORN,
        node="/attention/Where",
    ),
    LibraryBug(
        "onnx",
        "half_power",
        "exponent",
        "Pow has one type before opset 12; got float16 and float",
        'return numpy_helper.from_array(np.array(value, np.float16), "exponent")',
        fix_at=BORN,
        node="Pow_1",
    ),
    LibraryBug(
        "onnx",
        "half_summary",
        "scaled",
        "an overflow of float16: 70000 is inf",
        'helper.make_node("Cast", ["scaled"], ["wide"], to=TensorProto.FLOAT),\n'
        'helper.make_node("ReduceSum", ["wide", "axes"], ["total"], "/ReduceSum"),',
        node="/ReduceSum",
    ),
    LibraryBug(
        "onnx",
        "half_norm",
        "x",
        "an overflow of float16: 280 squared is inf",
        'cast(x, "wide_x", TensorProto.FLOAT),\n'
        'helper.make_node("Pow", ["wide_x", two.name], [f"{PREFIX}/squares"], f"{PREFIX}/Pow"),',
        node="/layers.1.0/norm/Pow",
    ),
    LibraryBug(
        "onnx",
        "tree_threshold",
        "X",
        "a cast of double to float, which does not hold 0.1",
        'cast("X", "features", TensorProto.DOUBLE),',
        node="CastTransformer_X",
    ),
    LibraryBug(
        "onnx",
        "slice_ends",
        "records",
        "a cast of int64 to int32, which does not hold 3000000000",
        'cast("records", "weights", TensorProto.INT64),',
        node="records_cast",
    ),
    LibraryBug(
        "onnx",
        "integer_power",
        "x",
        "a cast of float to int64, which does not hold 0.5",
        'initializers, nodes = power(2.0, "x", "y")',
        fix_at='initializers, nodes = power(2, "x", "y")',
        node="Cast_1",
    ),
)
