"""What is known of integers beyond 64 bits, which wide arithmetic has as float64.

Float64 rounds them, so that a wide value may be equal to that of the run, or not, for its rounding
alone. But an integer op wraps: while a program only adds, subtracts, multiplies and moves integers,
its value in the run is the exact one modulo 2**bits. So the two are equal, or at least 2**bits
apart, and that much float64 can tell while it rounds by less than half of it.
"""

from __future__ import annotations

from collections.abc import Set

from graphir import Graph, Symbol, ops

RING = {
    *(ops.add, ops.subtract, ops.multiply, ops.negative, ops.square, ops.sum, ops.prod),
    *(ops.cumulative_sum, ops.cumulative_prod, ops.matmul, ops.tensordot, ops.outer),
}
MOVING = {
    *(ops.reshape, ops.broadcast_to, ops.permute, ops.transpose, ops.slice, ops.flip, ops.concat),
    *(ops.stack, ops.squeeze, ops.unsqueeze, ops.roll, ops.tile, ops.repeat),
}


def moduli(graph: Graph, rounded_places: Set[int]) -> dict[int, int | None]:
    """For the symbols whose wide values are rounded, or follow from such, the bits of a modulus.

    By it the value in the run and the exact one are congruent; None where nobody knows of one.
    `rounded` are the places of the symbols at which float64 rounded integers.
    """
    bits: dict[int, int | None] = {}
    moduli_by_place: dict[int, int | None] = {}
    for symbol in graph.symbols if rounded_places else ():
        bits[symbol.index] = _bits(symbol, bits)
        follows = any(arg.index in moduli_by_place for arg in symbol.args) and not _is_plain(symbol)
        if symbol.index in rounded_places or follows:
            moduli_by_place[symbol.index] = bits[symbol.index]
    return moduli_by_place


def _is_plain(symbol: Symbol) -> bool:
    """Whether a symbol is the float of a given integer: float64 rounds it once, as it is meant."""
    return symbol.op is ops.cast and not symbol.dtype.is_integer and not symbol.args[0].args


def _bits(symbol: Symbol, bits_by_place: dict[int, int | None]) -> int | None:
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
