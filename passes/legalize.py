"""Exotic dtypes in terms of dtypes that a machine computes in."""

from __future__ import annotations

from graphir import DType, Graph, Origin, Symbol, TensorType
from graphir.attributes import with_dtypes
from graphir.evaluation import machine
from graphir.location import LEGALIZE
from passes.rewriting import Casts, Rewriter, uncollected


@uncollected
def legalize(graph: Graph) -> Graph:
    """Make arithmetic happen only in bool, intN, uintN, float32, float64, complex64, complex128.

    An op on any other dtype becomes: widen the operands exactly, compute, round the result once,
    with casts marked as legalization; sums and products of many accumulate in the wide dtype.
    index and address compute as uint64. Movement keeps the dtypes it has. Runs on an explicit
    graph; returned as it is where every op is legal.
    """
    if all(_legal(symbol) for symbol in graph.symbols):
        return graph
    rewriter = Rewriter(graph)
    casts = Casts(rewriter.new)
    for symbol in graph.symbols:
        if _legal(symbol):
            rewriter.copy(symbol)
        else:
            rewriter.replace(_legalized(rewriter, casts, symbol))
    casts.finish()
    return rewriter.finish()


def _legal(symbol: Symbol) -> bool:
    if not symbol.op.computes:
        return True
    return _LEGAL[symbol.type.dtype] and all(_LEGAL[arg.type.dtype] for arg in symbol.args)


_LEGAL = {dtype: machine(dtype) is dtype for dtype in DType}


def _legalized(rewriter: Rewriter, casts: Casts, symbol: Symbol) -> Symbol:
    op, graph = symbol.op, rewriter.new
    args = list[Symbol]()
    for position, old in enumerate(symbol.args):
        arg = rewriter.values[old.index]
        wide = machine(arg.dtype)
        if wide is not arg.dtype:
            arg = casts.insert(arg, wide, _origin(symbol, op.operand(position), arg.dtype, wide))
        args.append(arg)
    inferred = graph.infer(op, args, with_dtypes(symbol.attrs, machine))
    wide_result = graph.append(op, tuple(args), inferred.attrs, inferred.type, symbol.source)
    return _rounded(casts, wide_result, symbol, inferred.type)


def _rounded(casts: Casts, value: Symbol, symbol: Symbol, wide: TensorType) -> Symbol:
    if wide is symbol.type:
        return value
    return casts.insert(value, symbol.dtype, _origin(symbol, "result", wide.dtype, symbol.dtype))


def _origin(symbol: Symbol, operand: str, source: DType, target: DType) -> Origin:
    return Origin(operand, symbol.op.name, symbol.location, LEGALIZE, source, target)
