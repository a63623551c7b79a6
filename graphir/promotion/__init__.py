"""Promotion rule sets of the array libraries. The registry holds every rule set by its name."""

from __future__ import annotations

from typing import Literal, TypeAlias

from graphir.dtypes import DType
from graphir.promotion.array_api import ARRAY_API
from graphir.promotion.jax import JAX, JAX_2020, JAX_LAX, JAX_STRICT, JAX_X32, JEP_OPTIONS
from graphir.promotion.library import EXPLICIT
from graphir.promotion.max import MAX, MAX_STRICT
from graphir.promotion.numpy_ import CUPY, DASK, NUMPY
from graphir.promotion.numpy_legacy import NUMPY_LEGACY
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
from graphir.promotion.tensorflow_modes import TF_ALL, TF_LEGACY, TF_SAFE
from graphir.promotion.torch import TORCH

RuleSetName: TypeAlias = Literal[
    "max",
    "max_strict",
    "explicit",
    "python",
    "jax",
    "jax_x32",
    "jax_strict",
    "jax_lax",
    "jax_2020",
    "numpy",
    "numpy_legacy",
    "cupy",
    "dask",
    "torch",
    "tensorflow",
    "tf_all",
    "tf_safe",
    "tf_legacy",
    "array_api",
    "jep_option_0",
    "jep_option_1",
    "jep_option_2",
    "jep_option_3",
]
"""The names of the rule sets of the project, in their order, for type checkers."""

__all__ = [
    "PromotionRules",
    "RuleSetName",
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

for _rule_set in (
    *(MAX, MAX_STRICT, EXPLICIT, PYTHON),
    *(JAX, JAX_X32, JAX_STRICT, JAX_LAX, JAX_2020),
    *(NUMPY, NUMPY_LEGACY, CUPY, DASK, TORCH),
    *(TENSORFLOW, TF_ALL, TF_SAFE, TF_LEGACY, ARRAY_API),
    *JEP_OPTIONS,
):
    register(_rule_set)
