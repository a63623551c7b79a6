"""Promotion rule sets of the array libraries. The registry holds every rule set by its name."""

from __future__ import annotations

from graphir.dtypes import DType
from graphir.promotion.array_api import ARRAY_API
from graphir.promotion.explicit import EXPLICIT
from graphir.promotion.jax import JAX, JAX_STRICT, JAX_X32
from graphir.promotion.jax_2020 import JAX_2020
from graphir.promotion.jax_lax import JAX_LAX
from graphir.promotion.jep import JEP_OPTIONS
from graphir.promotion.max import MAX
from graphir.promotion.max_strict import MAX_STRICT
from graphir.promotion.numpy_ import NUMPY
from graphir.promotion.numpy_legacy import NUMPY_LEGACY
from graphir.promotion.numpy_like import CUPY, DASK
from graphir.promotion.operands import OperandLike
from graphir.promotion.python import PYTHON
from graphir.promotion.registry import (
    RulesLike,
    register,
    rule_sets,
    rules,
    rules_in_force,
    set_default_rules,
)
from graphir.promotion.rules import PromotionRules
from graphir.promotion.tensorflow import TENSORFLOW
from graphir.promotion.tf_legacy import TF_LEGACY
from graphir.promotion.tf_modes import TF_ALL, TF_SAFE
from graphir.promotion.torch import TORCH

__all__ = [
    "PromotionRules",
    "RulesLike",
    "implicit_cast_type",
    "register",
    "rule_sets",
    "rules",
    "rules_in_force",
    "set_default_rules",
]


def implicit_cast_type(lhs: OperandLike, rhs: OperandLike, rules: RulesLike | None = None) -> DType:
    """Return the dtype that type promotion gives two operands (see PromotionRules.promote).

    `rules` is a rule set or its name; None stands for the default rule set. The function raises
    PromotionError if the operands do not promote.
    """
    return _rules(rules).promote(lhs, rhs)


_rules = rules

for _each in (
    *(MAX, MAX_STRICT, EXPLICIT, PYTHON),
    *(JAX, JAX_X32, JAX_STRICT, JAX_LAX, JAX_2020),
    *(NUMPY, NUMPY_LEGACY, CUPY, DASK, TORCH),
    *(TENSORFLOW, TF_ALL, TF_SAFE, TF_LEGACY, ARRAY_API),
    *JEP_OPTIONS,
):
    register(_each)
