"""The registry of rule sets: `rules(name)` finds one, `register` adds one."""

from __future__ import annotations

import difflib

from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.promotion.array_api import ARRAY_API
from graphir.promotion.defaults import default, set_default
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
from graphir.promotion.python import PYTHON
from graphir.promotion.rules import PromotionRules
from graphir.promotion.tensorflow import TENSORFLOW
from graphir.promotion.tf_legacy import TF_LEGACY
from graphir.promotion.tf_modes import TF_ALL, TF_SAFE
from graphir.promotion.torch import TORCH

__all__ = [
    "PromotionRules",
    "implicit_cast_type",
    "register",
    "rule_sets",
    "rules",
    "rules_in_force",
    "set_default_rules",
]

_REGISTRY: dict[str, PromotionRules] = {}


def register(new: PromotionRules) -> PromotionRules:
    """Make a rule set findable by its name; GraphError where the name is taken by another.

    One made of an equal lattice is no other: the first is returned.
    """
    if not isinstance(new, PromotionRules):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError(f"register() takes a PromotionRules, not {new!r}")
    known = _REGISTRY.setdefault(new.name, new)
    if known is not new and not _alike(known, new):
        raise GraphError(
            f"a rule set named {new.name!r} is registered already, as rules({new.name!r}); give "
            "another one another name"
        )
    return known


def _alike(a: PromotionRules, b: PromotionRules) -> bool:
    """Whether both say just what one lattice says."""
    if not (type(a) is type(b) is PromotionRules and a.lattice and b.lattice):
        return False
    return a.lattice.edges == b.lattice.edges


def rules(which: str | PromotionRules | None = None) -> PromotionRules:
    """The rule set of that name; without one, the default.

    The default is that of the innermost `with rules(...)` block, else what set_default_rules() was
    given last, else "max".

    A rule set given itself is registered by that, so that text and reports find it by its name.
    `with rules("max_strict"):` makes a rule set the default inside the block.
    """
    if which is None:
        return rules_in_force(MAX)
    if isinstance(which, PromotionRules):
        return register(which)
    try:
        return _REGISTRY[which]
    except (KeyError, TypeError):
        near = difflib.get_close_matches(str(which), _REGISTRY, n=3) or _REGISTRY
        raise GraphError(
            f"no rule set is named {which!r}; there is {', '.join(near)}, and register() adds one"
        ) from None


def rules_in_force(otherwise: PromotionRules) -> PromotionRules:
    """The rule set of the innermost `with rules(...)`, else the process's, else another."""
    return default() or otherwise


def rule_sets() -> tuple[PromotionRules, ...]:
    """Every registered rule set, in order of registration."""
    return tuple(_REGISTRY.values())


def set_default_rules(which: str | PromotionRules | None) -> None:
    """Make a rule set the default of the process, outside of `with rules(...)`; None: "max"."""
    set_default(None if which is None else rules(which))


def implicit_cast_type(
    lhs: object, rhs: object, rules: str | PromotionRules | None = None
) -> DType:
    """The dtype in which two operands meet under a rule set (see PromotionRules.promote)."""
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
