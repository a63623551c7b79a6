"""TensorFlow 2.21 against its four rule sets, of tensors beside NumPy's scalars and arrays.

Wants an environment of tensorflow-cpu 2.21 with NumPy 2, this project and pytest.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed, so nothing is compared")

from graphir import DType
from tests.peers import Operand, ours
from tests.peers import tensorflow_ as peer
from tests.support.tables import every

RULES: dict[peer.Mode, str] = {
    "plain": "tensorflow",
    "all": "tf_all",
    "safe": "tf_safe",
    "legacy": "tf_legacy",
}
MODES = every("mode", RULES)
STRONG = tuple(peer.DTYPES)

# TensorFlow warns of complex numbers cast to real ones, NumPy of overflow.
pytestmark = pytest.mark.filterwarnings("ignore")

NUMPY_OPS = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "maximum"),
    *("atan2", "equal", "not_equal", "less", "greater_equal", "bitwise_and", "left_shift"),
    *("logical_or", "where", "clip", "stack", "matmul"),
)


def numpy_questions(op: str) -> Iterator[tuple[DType, DType, peer.Question]]:
    """A tensor and a NumPy scalar, 0-d array or array of every dtype, which comes last."""
    for tensor, dtype in product(STRONG, STRONG):
        array = np.ones((2, 2), dtype.to_numpy())
        for value in (array[0, 0], np.asarray(array[0, 0]), array):
            shape = () if op == "stack" and not value.ndim else (2, 2)
            operands: tuple[Any, ...] = ((tensor, shape), value)
            if op == "clip":
                operands = (*operands, value)
            if op == "where":
                operands = ((DType.bool, (2, 2)), *operands)
            yield tensor, dtype, (op, operands)


def explained_beside(op: str, tensor: DType, dtype: DType, mode: peer.Mode) -> bool:
    """Whether graphir refuses a NumPy operand that TensorFlow takes, and why."""
    if dtype.is_complex and not tensor.is_complex:
        return True  # TensorFlow drops imaginary parts, and warns
    masks = op == "multiply" and mode != "legacy" and tensor is DType.bool
    return masks and not (dtype.is_integer and dtype.bits < 64)  # int32 first, so 0.5 is False


@MODES
@every("op", NUMPY_OPS)
def test_numpy_operands_beside_tensors(op: str, mode: peer.Mode):
    asked = list(numpy_questions(op))
    answers = peer.answers([question for _, _, question in asked], mode)
    for (tensor, dtype, (_, operands)), theirs in zip(asked, answers, strict=True):
        us = ours(RULES[mode], op, *operands)
        if us is not theirs:
            explained = us is None and explained_beside(op, tensor, dtype, mode)
            assert explained, (tensor, dtype, type(operands[-1]), us, theirs)


def test_a_number_before_a_mask_is_refused_as_there():
    for mode, literal in product(RULES, (5, 1.5, True)):
        mask: Operand = (DType.bool, (2,))
        (theirs,) = peer.answers([("multiply", (literal, mask))], mode)
        us = ours(RULES[mode], "multiply", literal, mask)
        fraction = mode in ("all", "safe") and literal == 1.5  # which int32 truncates
        assert us is (None if fraction else theirs), (mode, literal, us, theirs)
