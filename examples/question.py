"""What dtype does `x + y` have? Asked, answered, made explicit, run, explained."""

from graphir import DType, Graph, rules
from graphir.passes import cast_report, implicit_cast
from graphir.runtime import execute


def main() -> None:
    """Print the graph before and after its implicit cast becomes explicit, and why it is there."""
    g = Graph("question")
    x = g.scalar[DType.int16](1)
    y = g.scalar[DType.float32](1.0)
    z = x + y
    g.output(z)

    print(f"{x.dtype} + {y.dtype} is {z.dtype}, known as soon as it is written.\n")
    print(g)
    print("\nThe same with its implicit cast made explicit:\n")
    print(implicit_cast(g))
    print(f"\nIts value: {execute(g)!r}\n")
    print(cast_report(g))
    print()
    print(rules("max").explain(x, y))


if __name__ == "__main__":
    main()
