"""Control flow of JAX: the rows of `cond`, `while` and `scan`."""

from __future__ import annotations

from collections.abc import Sequence

from graphir import Symbol, TensorType, ops
from graphir.runtime.sources.jax_.lax_rows import ROWS, Equation, Jaxpr, array_type
from graphir.runtime.sources.op_rows import Attribute, Emitted


def _cond(e: Equation, *args: Symbol, branches: Sequence[Attribute]) -> Emitted:
    inner = [x.type for x in args[1:]]
    order = range(len(inner))
    bodies = tuple(e.importer.body(branch, inner, order) for branch in branches)
    return e.importer.control(ops.control.cond, args, {"branches": bodies})


def _while(
    e: Equation,
    *args: Symbol,
    cond_jaxpr: Attribute,
    body_jaxpr: Attribute,
    cond_nconsts: int,
    body_nconsts: int,
) -> Emitted:
    """JAX's operands are constants of the condition, constants of the body, carries."""
    importer, first, last = e.importer, cond_nconsts, cond_nconsts + body_nconsts
    carries = len(args) - last
    carry_types = _carry_types(body_jaxpr, body_nconsts, carries)
    operands = [*importer.conformed_all(args[last:], carry_types), *args[:last]]
    inner = [*carry_types, *(x.type for x in args[:last])]
    places = range(carries), range(carries, carries + first), range(carries + first, len(args))
    order = [*places[1], *places[0]]
    guard = (cond_jaxpr, order) if cond_jaxpr.out_avals[0].shape else None  # of the vmap of a loop
    if guard is not None and any(type(type_) is not TensorType for type_ in e.types):
        return None
    condition = importer.body(cond_jaxpr, inner, order, is_test=True)
    body = importer.body(body_jaxpr, inner, [*places[2], *places[0]], carry_types, guard)
    return importer.control(
        ops.control.while_loop, operands, {"condition": condition, "body": body}
    )


def _scan(
    e: Equation,
    *args: Symbol,
    jaxpr: Attribute,
    length: int,
    reverse: bool,
    num_consts: int = 0,
    num_carry: int = 0,
    ft_in: Attribute = None,
    ft_out: Attribute = None,
) -> Emitted:
    """JAX's operands are constants, carries, what is scanned; since 0.11 trees of them say which.

    `ft_out` has the carries and the results of the rounds, as the jaxpr has.
    """
    importer, constants, carries = e.importer, num_consts, num_carry
    if ft_in is not None:
        constants, carries, _ = (len([*part]) for part in ft_in.unpack())
    inner = [array_type(variable.aval) for variable in jaxpr.jaxpr.invars]
    carry_types = inner[constants : constants + carries]
    started = importer.conformed_all(args[constants : constants + carries], carry_types)
    operands = [*started, *args[constants + carries :], *args[:constants]]
    order = [*range(len(args) - constants, len(args)), *range(len(args) - constants)]
    attrs = {
        "body": importer.body(jaxpr, [*inner[constants:], *inner[:constants]], order, carry_types),
        "carries": carries,
        "scanned": len(args) - constants - carries,
        "length": length,
        "reverse": reverse,
    }
    return importer.control(ops.control.scan, operands, attrs)


def _carry_types(jaxpr: Jaxpr, constants: int, carries: int) -> list[TensorType]:
    """Return the types in which a body takes its carries.

    JAX types them by the values before the first round, which it makes strong where only the body
    does. The results of the loop may be weak where the body takes strong carries.
    """
    variables = jaxpr.jaxpr.invars[constants : constants + carries]
    return [array_type(variable.aval) for variable in variables]


LOOPS = frozenset(("cond", "while", "scan"))
"""The primitives of control flow. Their rows take typed keys, which are arrays of their data."""

ROWS.update(cond=_cond, scan=_scan)
ROWS["while"] = _while
