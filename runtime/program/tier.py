"""The seam between the planner and a tier that runs regions as machine code.

The planner knows these protocols alone. A tier provides itself when its package is imported;
without one every region runs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from graphir import Symbol
    from runtime.program.cutting import Region
    from runtime.program.steps import Partition, PlanRun, RegionStep, ScalarStep, Taker, Work

Mode: TypeAlias = Literal["auto", "now", "off"]
"""When regions become machine code: once that is worth it, at once, or never."""


class RegionTask(Protocol):
    """One call of a compiled region."""

    def cut(self, run: PlanRun, threads: int) -> Partition:
        """The ranges of the iteration space for the threads, and the trees of its sums."""
        ...

    def work(self, outs: Sequence[Any], partition: Partition, takers: Sequence[Taker]) -> Work:
        """What a thread runs to compute ranges into the outputs."""
        ...


class CompiledRegion(Protocol):
    """One region in the tier: its kernels, by the layouts of its inputs, compiled when earned."""

    numpy_time: float
    """Nanoseconds that the region has taken in NumPy."""

    def task(self, step: RegionStep, values: Sequence[Any]) -> RegionTask | None:
        """A call for such values; None where the region stays in NumPy."""
        ...

    def entry(
        self,
        step: RegionStep | ScalarStep,
        reads: Sequence[Symbol],
        writes: Sequence[Symbol],
        values: Sequence[Any],
    ) -> Callable[..., Any] | None:
        """A built-in function that computes `writes` of `reads`; None where there is none yet."""
        ...

    def threads(self, step: RegionStep | ScalarStep) -> int:
        """The number of threads that a step is worth."""
        ...

    def status(self, step: Any, values: Sequence[Any]) -> str:
        """Which tier runs the region for such values, or for any, and why NumPy does."""
        ...

    def listing(
        self, step: RegionStep | ScalarStep | None, values: Sequence[Any]
    ) -> tuple[str, str] | None:
        """The kernel as LLVM IR and assembly; None where it cannot be compiled."""
        ...


class Tier(Protocol):
    """Makes regions compiled ones."""

    def __call__(
        self,
        region: Region,
        materialized: Collection[int],
        on_eviction: Callable[[], Callable[[], None] | None],
        /,
    ) -> CompiledRegion:
        """A region in the tier.

        `materialized` are the indices of symbols whose values lie in memory; `on_eviction` is a
        weak reference to what the tier calls when it evicts a kernel of the region.
        """
        ...


Choice: TypeAlias = Callable[[Mode], tuple[Tier | None, str]]

_choices: list[Choice] = []


def provide(choice: Choice) -> None:
    """Make a tier known, by the function that chooses it for a mode (see `tier`)."""
    _choices[:] = [choice]


def tier(mode: Mode) -> tuple[Tier | None, str]:
    """The tier for a mode; None, and the reason, where every region runs in NumPy.

    Raises ExecutionError for a mode that there is not.
    """
    return _choices[0](mode) if _choices else (None, "there is no such tier")
