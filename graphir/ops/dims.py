"""Symbolic dims: integer expressions of named sizes in a canonical form.

A dim is a polynomial with integer coefficients over atoms. An atom is a named size or a floor
division. Sorted terms give equal polynomials one form, so shape inference compares dims by `==`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral, Number
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from graphir.errors import GraphError, ParseError, ShapeError
from graphir.location import user_location

# A monomial is a tuple of sorted atoms: ("n", "n", "m") is n*n*m, () is 1. An atom is a name or a
# Floor.
Atom: TypeAlias = "str | Floor"
Monomial: TypeAlias = tuple[Atom, ...]


class NoSizeError(ShapeError, TypeError):
    """A computation that needs the value of a named size."""


def _is_size(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, (Dim, Integral))


def _refusing(sign: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Return a method for an operator that dims lack."""

    def operator(self: Dim, other: Any) -> Any:
        return self._beside(sign, other, reflected)  # pyright: ignore[reportPrivateUsage]

    return operator


def _refusing_call(name: str) -> Callable[..., Any]:
    """Return a method for a function of numbers that dims lack."""

    def function(self: Dim, *_: Any) -> Any:
        raise self._valueless(f"{name}({self})")  # pyright: ignore[reportPrivateUsage]

    return function


class Dim:
    """A polynomial with integer coefficients over named sizes, such as `2*n - m + 1`.

    Equal polynomials compare equal, hash equal and print alike. Arithmetic with ints and dims gives
    a Dim, or an int if no named size remains.
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        if not isinstance(terms, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError(
                "a dim is not constructed from terms", fix="use Dim.of(...)", got=repr(terms)
            )
        self.terms = tuple(sorted(((m, c) for m, c in terms.items() if c), key=_term_order))
        self._hash = hash(self.terms)

    @staticmethod
    def of(value: DimLike) -> Size:
        """Return the dim for an int, a name, the text of an expression, or a Dim.

        The method raises ShapeError for other values and negative ints, GraphError for other text.
        """
        if isinstance(value, str):
            value = _read(value)
        if isinstance(value, Dim):
            return value
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ShapeError("a dim is an int, a name or an expression of names", got=f"{value!r}")
        size = int(value)
        if size < 0:
            raise ShapeError("a dim is at least 0", got=str(size))
        return size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Dim], tuple[dict[Monomial, int]]]:
        return Dim, (dict(self.terms),)

    def __add__(self, other: Size) -> Size:
        return total((self, other)) if _is_size(other) else self._beside("+", other)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return total((self, other * -1)) if _is_size(other) else self._beside("-", other)

    def __rsub__(self, other: Size) -> Size:
        return total((other, self * -1)) if _is_size(other) else self._beside("-", other)

    def __mul__(self, other: Size) -> Size:
        if not _is_size(other):
            return self._beside("*", other)
        product: dict[Monomial, int] = {}
        for m, c in self.terms:
            for n, d in _terms(other):
                key = tuple(sorted(m + n, key=str))
                product[key] = product.get(key, 0) + c * d
        return _lowered(product)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Size:
        if type(divisor) is not int or divisor <= 0:
            raise ShapeError("a dim is divided by positive ints only", got=f"{divisor}")
        if all(c % divisor == 0 for _, c in self.terms):
            return _lowered({m: c // divisor for m, c in self.terms})
        return Dim({(Floor(self, divisor),): 1})

    if not TYPE_CHECKING:  # a type checker should refuse them
        __truediv__, __rtruediv__ = _refusing("/"), _refusing("/", True)
        __mod__, __rmod__ = _refusing("%"), _refusing("%", True)
        __pow__, __rpow__ = _refusing("**"), _refusing("**", True)
        __rfloordiv__ = _refusing("//", True)
        __lt__, __le__, __gt__, __ge__ = map(_refusing, ("<", "<=", ">", ">="))
        __float__, __int__, __index__ = map(_refusing_call, ("float", "int", "index"))

        def __getattr__(self, name: str) -> Any:
            """Refuse the methods by which NumPy's functions compute objects: np.sqrt(n)."""
            if name.isidentifier() and isinstance(getattr(np, name, None), np.ufunc):
                return partial(_refusing_call(f"np.{name}"), self)
            raise AttributeError(name)

    def _beside(self, sign: str, other: Any, reflected: bool = False) -> Any:
        """Refuse an operator beside a number; NotImplemented beside any other object."""
        is_whole = sign == "/" and not reflected and type(other) is int and other > 1
        if not isinstance(other, (Dim, Number)):
            return NotImplemented
        sides = (other, self) if reflected else (self, other)
        whole = (f"write {self} // {other} for a whole size",) if is_whole else ()
        raise self._valueless(f"{sides[0]} {sign} {sides[1]}", whole)

    def _valueless(self, text: str, fixes: tuple[str, ...] = ()) -> ShapeError:
        error = NoSizeError(
            f"{text}: the size {self} has a name, and no value while the program is traced",
            fix=(*fixes, "write the size as a number, as in float32[8]"),
        )
        return error.at(user_location())

    def names(self) -> Iterator[str]:
        """Yield the named sizes in the expression, with repetitions."""
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    yield atom
                else:
                    yield from atom.dividend.names()

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """Return the value for given sizes of the names; KeyError names a name without a size."""
        total = 0
        for monomial, coefficient in self.terms:
            for atom in monomial:
                coefficient *= sizes[atom] if isinstance(atom, str) else atom.evaluate(sizes)
            total += coefficient
        return total

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            factors = [str(a) for a in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+" if text else ""
            text += sign + "*".join(factors)
        return text

    def __repr__(self) -> str:
        return f"Dim.of({str(self)!r})"


class Floor:
    """The atom `dividend // divisor`: the size of a strided axis whose step may leave a rest."""

    __slots__ = ("_text", "dividend", "divisor")

    def __init__(self, dividend: Dim, divisor: int) -> None:
        self.dividend, self.divisor = dividend, divisor
        self._text = f"(({dividend})//{divisor})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Floor):
            return False
        return self.divisor == other.divisor and self.dividend == other.dividend

    def __hash__(self) -> int:
        return hash((self.dividend, self.divisor))

    def __reduce__(self) -> tuple[type[Floor], tuple[Dim, int]]:
        return Floor, (self.dividend, self.divisor)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """Return the value for given sizes of the names."""
        return self.dividend.evaluate(sizes) // self.divisor

    def __str__(self) -> str:
        return self._text


Size: TypeAlias = int | Dim
DimLike: TypeAlias = int | str | Dim
Shape: TypeAlias = tuple[Size, ...]
ShapeLike: TypeAlias = "DimLike | Sequence[DimLike]"


def shape_of(value: ShapeLike) -> Shape:
    """Return the shape for a single dim or a sequence of dims."""
    if isinstance(value, (str, Dim)) or not isinstance(value, Iterable):
        return (Dim.of(value),)
    return tuple(Dim.of(dim) for dim in value)


def shape_text(shape: Iterable[Size]) -> str:
    """Return a shape in the form in which types print it: `[n, 3]`."""
    return f"[{', '.join(map(str, shape))}]"


def product(dims: Iterable[Size]) -> Size:
    """Return the product of dims, such as the number of elements of a shape."""
    result: Size = 1
    for dim in dims:
        result = result * dim
    return result


def quotient(dim: Size, divisor: Size) -> Size | None:
    """Return `dim / divisor` if the division provably leaves no remainder, else None."""
    if isinstance(dim, int) and isinstance(divisor, int):
        return dim // divisor if divisor and dim % divisor == 0 else None
    if dim == divisor:
        return 1
    divisors = tuple(_terms(divisor))
    if len(divisors) != 1:
        return None
    (atoms, coefficient), result = divisors[0], dict[Monomial, int]()
    for monomial, c in _terms(dim):
        rest = list(monomial)
        for atom in atoms:
            if atom not in rest:
                return None
            rest.remove(atom)
        if not coefficient or c % coefficient:
            return None
        result[tuple(rest)] = c // coefficient
    return _lowered(result)


def evaluate(dim: Size, sizes: Mapping[str, int]) -> int:
    """Return the size of a dim after its names are bound.

    The function raises ShapeError if a name has no size or if the result is negative.
    """
    if isinstance(dim, int):
        return dim
    try:
        size = dim.evaluate(sizes)
    except KeyError as error:
        raise ShapeError(f"nothing binds {error.args[0]!r}, which dim {dim} needs") from None
    if size < 0:
        bound = ", ".join(f"{name}={sizes[name]}" for name in sorted(set(dim.names())))
        raise ShapeError(f"dim {dim} is {size} for {bound}")
    return size


def with_sizes(value: Any, sizes: Mapping[str, int]) -> Any:
    """Return the value of an attribute with an int in place of each dim."""
    if isinstance(value, Dim):
        return evaluate(value, sizes)
    if isinstance(value, tuple):
        return tuple(with_sizes(item, sizes) for item in cast("tuple[Any, ...]", value))
    return value


def _terms(dim: Size) -> Iterable[tuple[Monomial, int]]:
    if isinstance(dim, Dim):
        return dim.terms
    if isinstance(dim, bool) or not isinstance(dim, Integral):
        raise ShapeError("dims are computed with ints and dims", got=f"{dim!r}")
    return (((), int(dim)),)


def _term_order(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    return -len(term[0]), [str(atom) for atom in term[0]]


def total(dims: Iterable[Size]) -> Size:
    """Return the sum of dims."""
    coefficients: dict[Monomial, int] = {}
    for dim in dims:
        for monomial, coefficient in _terms(dim):
            coefficients[monomial] = coefficients.get(monomial, 0) + coefficient
    return _lowered(coefficients)


def _lowered(terms: dict[Monomial, int]) -> Size:
    dim = Dim(terms)
    if not dim.terms:
        return 0
    return dim.terms[0][1] if dim.terms[0][0] == () else dim


def _read(text: str) -> Size:
    """Return the dim for a text: a name directly, an expression by the parser of graphs."""
    if text.isidentifier():
        return Dim({(text,): 1})
    from graphir.ops.grammar import read_dim  # deferred: the grammar imports this module

    try:
        return read_dim(text)
    except ParseError as error:
        raise GraphError(
            f"{brief(text)} is not a dim",
            reason=f"at column {error.column}, {error.summary}",
            fix="write names, ints, + - * // and parentheses",
        ) from None
