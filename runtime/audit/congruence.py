"""Congruence of integers beyond 64 bits, which wide arithmetic represents as float64.

Float64 rounds such integers, so that the rounding alone may make a wide value equal to the run's
value, or different. But integer ops wrap: while a program only adds, subtracts, multiplies and
moves integers, the run's value equals the exact value modulo 2**bits. So the two values are equal
or at least 2**bits apart. Float64 distinguishes the two cases while its rounding error is less than
half of 2**bits.
"""

from __future__ import annotations

from collections.abc import Set

from graphir import Graph, Symbol, ops

RING = {
    *(ops.add, ops.subtract, ops.multiply, ops.negative, ops.square, ops.sum, ops.prod),
    *(ops.cumulative_sum, ops.cumulative_prod, ops.matmul, ops.tensordot, ops.outer),
}
MOVING = {
    *(
        ops.reshape,
        ops.broadcast_to,
        ops.permute,
        ops.transpose,
        ops.slice,
        ops.item,
        ops.flip,
        ops.affine_view,
        ops.concat,
    ),
    *(ops.stack, ops.squeeze, ops.unsqueeze, ops.roll, ops.tile, ops.repeat),
}


def moduli(
    graph: Graph, rounded_places: Set[int], congruent_places: Set[int] = frozenset()
) -> dict[int, int | None]:
    """Return, for symbols whose wide values depend on rounded integers, the bits of a modulus.

    The run's value and the exact value are congruent modulo 2**bits; None if no modulus is known.
    `rounded_places` are the indices of the symbols at which float64 rounded integers, and
    `congruent_places` those of bitwise ops whose results do not depend on what wrapped. The result
    is keyed by symbol index.
    """
    bits: dict[int, int | None] = {}
    moduli_by_place: dict[int, int | None] = {}
    for symbol in graph.symbols if rounded_places else ():
        bits[symbol.index] = modulus(symbol, bits)
        follows = any(arg.index in moduli_by_place for arg in symbol.args) and not _is_plain(symbol)
        if symbol.index in congruent_places:
            continue
        if symbol.index in rounded_places or follows:
            moduli_by_place[symbol.index] = bits[symbol.index]
    return moduli_by_place


def _is_plain(symbol: Symbol) -> bool:
    """Whether a symbol converts an input or constant integer to float, which rounds by intent."""
    return symbol.op is ops.cast and not symbol.dtype.is_integer and not symbol.args[0].args


def modulus(symbol: Symbol, bits_by_place: dict[int, int | None]) -> int | None:
    """Return the bits of a symbol's modulus, for those of its operands by symbol index."""
    if not symbol.dtype.is_integer:
        return None
    own = symbol.dtype.bits
    if not symbol.args:
        return own
    of_args = [bits_by_place[arg.index] for arg in symbol.args]
    moduli = [modulus for modulus in of_args if modulus is not None]
    if len(moduli) < len(of_args):
        return None
    if symbol.op is ops.cast or symbol.op in RING or symbol.op in MOVING:
        return min(own, *moduli)
    return None
