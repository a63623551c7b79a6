"""The interface between the planner and a tier, which runs regions as machine code.

The planner depends on these protocols alone. The package of a tier calls `provide` when it is
imported. Without a tier every region runs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from graphir import Symbol
    from runtime.program.cutting import Region
    from runtime.program.steps import Partition, PlanRun, RegionStep, ScalarStep, Taker, Work

Mode: TypeAlias = Literal["auto", "now", "off"]
"""When the tier compiles regions: "auto" once compilation pays, "now" at once, "off" never."""


class RegionTask(Protocol):
    """One call of a compiled region."""

    def cut(self, run: PlanRun, threads: int) -> Partition:
        """Return the ranges of the iteration space for the threads, and the summation trees."""
        ...

    def work(self, outs: Sequence[Any], partition: Partition, takers: Sequence[Taker]) -> Work:
        """Return the function by which a thread computes ranges and stores them into `outs`."""
        ...


class PlacedRegion(Protocol):
    """A kernel of a region, its record without addresses, and the cells of the record's operands.

    `arrays` are the first operands, the inputs, in the form that the kernel reads.
    """

    @property
    def record(self) -> Sequence[int]: ...  # noqa: D102
    @property
    def cells(self) -> Sequence[int]: ...  # noqa: D102
    @property
    def arrays(self) -> Sequence[Any]: ...  # noqa: D102


class CompiledRegion(Protocol):
    """One region in the tier: a kernel for each layout of the inputs, compiled once it pays."""

    def spend(self, time: float, /) -> None:
        """Charge nanoseconds that NumPy has spent on the region."""
        ...

    @property
    def worth(self) -> bool:
        """Whether the region has machine code, or has earned it."""
        ...

    def task(self, step: RegionStep, values: Sequence[Any]) -> RegionTask | None:
        """Return a task for the layouts of `values`; None if the region stays in NumPy."""
        ...

    def placed(self, step: RegionStep, values: Sequence[Any]) -> PlacedRegion | None:
        """Return the kernel of a region for operands of which the caller sets the addresses.

        `values` have the layouts of all operands. The answer is None if there is no such kernel.
        """
        ...

    def together(
        self,
        kernels: Sequence[tuple[Any, Sequence[int], Sequence[tuple[int, int, int]]]],
        room: int,
        count: int,
        /,
    ) -> Callable[[int, int], None]:
        """Return the function that runs kernels on a range of rows, `room` rows at a time.

        Each kernel comes with its record, in which the addresses of outer operands stand, and with
        its inner operands: the place in the record, the address of memory for the rows of a block,
        and the bytes of a row. `count` is the number of all rows.
        """
        ...

    def entry(
        self,
        step: RegionStep | ScalarStep,
        reads: Sequence[Symbol],
        writes: Sequence[Symbol],
        values: Sequence[Any],
    ) -> Callable[..., Any] | None:
        """Return a built-in function that maps arrays of `reads` to arrays of `writes`.

        The answer is None if the tier has not compiled this function yet.
        """
        ...

    def threads(self, step: RegionStep | ScalarStep) -> int:
        """Return the number of threads that the work of a step justifies."""
        ...

    def status(self, step: Any, values: Sequence[Any]) -> str:
        """Return, as text, the tier that runs the region for the layouts of `values`.

        If NumPy runs the region, the text has the reason. Without a bound step the answer covers
        all layouts.
        """
        ...

    def listing(
        self, step: RegionStep | ScalarStep | None, values: Sequence[Any]
    ) -> tuple[str, str] | None:
        """Return the kernel as LLVM IR and as assembly; None if the tier cannot compile it."""
        ...


class Tier(Protocol):
    """A compiler of regions."""

    def __call__(
        self,
        region: Region,
        materialized: Collection[int],
        on_eviction: Callable[[], Callable[[], None] | None],
        shared: dict[Any, Any],
        /,
    ) -> CompiledRegion:
        """Return a region as a compiled region.

        The regions of a program share what they keep in `shared`.

        `materialized` are the indices of symbols whose values lie in memory. `on_eviction` is a
        weak reference to the function that the tier calls when it evicts a kernel of the region.
        """
        ...

    def product(
        self, multiply: Callable[[Any, Any], Any], dtype: np.dtype[Any], threads: int, /
    ) -> Callable[[Any, Any], Any]:
        """Return the product of matrices of integers by machine code, on at most some threads.

        The product converts its operands to `dtype`. It calls `multiply`, which does the same, as
        long as there is no machine code, and where that is faster. No operand may be empty.
        """
        ...


Choice: TypeAlias = Callable[[Mode], tuple[Tier | None, str]]

_choices: list[Choice] = []


def provide(choice: Choice) -> None:
    """Register a tier by the function that chooses it for a mode (see `tier`)."""
    _choices[:] = [choice]


def tier(mode: Mode) -> tuple[Tier | None, str]:
    """Return the tier for a mode, with an empty reason; or None and the reason for NumPy alone.

    Raises ExecutionError for an unknown mode.
    """
    return _choices[0](mode) if _choices else (None, "there is no such tier")
