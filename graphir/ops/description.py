"""The help and the call signature of an op, from its record.

`help(ops.add)` prints the help; `inspect.signature(ops.add)` returns the signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphir.ops.op import Op


class OfInstance:
    """Descriptor: an attribute that a function computes for an instance.

    The class has its own value.
    """

    def __init__(self, function: Callable[[Any], Any], of_class: Any) -> None:
        self.function, self.of_class = function, of_class

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.of_class if instance is None else self.function(instance)


def call_signature(op: Op) -> Signature:
    """Return the parameters of a call of an op: its operands, then its attributes.

    A variadic op takes a list of operands as a single parameter.
    """
    either = Parameter.POSITIONAL_OR_KEYWORD
    operands = [Parameter(name, either) for name in op.operands]
    attributes = [
        Parameter(attr.name, either, default=Parameter.empty if attr.required else attr.default)
        for attr in op.attrs
    ]
    # Python allows no required positional parameter after an optional one, so a required attribute
    # after an optional one is keyword-only.
    parameters, optional = list[Parameter](), False
    for each in (*operands, *attributes):
        optional = optional or each.default is not Parameter.empty
        late = optional and each.default is Parameter.empty
        parameters.append(each.replace(kind=Parameter.KEYWORD_ONLY) if late else each)
    parameters.sort(key=lambda parameter: parameter.kind)
    return Signature(parameters)


def op_help(op: Op) -> str:
    """Return the help of an op: its sentence, call, operands, attributes, rules and errors."""
    return "\n".join([op.doc, "", f"{op.name}{call_signature(op)}", "", *_lines(op)])


def _lines(op: Op) -> Iterator[str]:
    if op.variadic:
        yield f"{op.operands[0]}: a list of symbols, arrays or Python numbers."
    elif op.operands:
        plural = "symbols, arrays or" if len(op.operands) > 1 else "a symbol, an array or a"
        number = "Python numbers" if len(op.operands) > 1 else "Python number"
        yield f"{', '.join(op.operands)}: {plural} {number}."
    for attr in op.attrs:
        default = "" if attr.required else f" Default: {attr.default!r}."
        yield f"{attr.name}: {_sentence(attr.normalize)}{default}"
    yield f"Dtype: {op.signature.doc or op.signature.name}"
    yield f"Shape: {_sentence(op.shape)}"
    yield "Raises PromotionError for dtypes that the graph's rules do not mix here, ShapeError for"
    yield "shapes that do not fit, GraphError for a wrong attribute or an operand of another graph."


def _sentence(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a function's docstring on one line."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
