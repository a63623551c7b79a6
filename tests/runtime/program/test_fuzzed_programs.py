"""Drawn NumPy programs of all kinds have `interpret`'s bits: see fuzz_programs.py."""

from __future__ import annotations

import pytest

from tests.runtime.program.drawn_statements import BROAD, UPDATING
from tests.runtime.program.fuzz_programs import PATHS, run
from tests.support.tables import every, quick


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(first, marks=pytest.mark.exhaustive) for first in range(4, 40, 4))],
)
def test_drawn_programs_have_the_bits_of_the_interpreter(first: int) -> None:
    ends = [run(number) for number in range(first, first + 4)]
    assert [end for end in ends if end not in ("equal", "refused")] == []
    assert ends.count("equal") >= 2


@every("seed", [2002256, 2005891, 2100137])
def test_batches_beside_steps_of_several_results(seed: int) -> None:
    assert run(seed) == "equal"


def test_blocks_go_into_an_array_that_is_not_in_c_order() -> None:
    """A region writes in place into a stack of operands in Fortran order, whose rows are long."""
    assert run(14_108_912) == "equal"


@pytest.mark.filterwarnings("ignore")
def test_drawn_programs_of_copies_that_are_updated_and_cast() -> None:
    ends = [run(number, UPDATING) for number in range(900_008, 900_016)]
    assert [end for end in ends if end not in ("equal", "refused")] == []
    assert {"several blocks", "region into a slice of a copy"} <= PATHS.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", quick([70_800_008, 70_800_012], 2))
def test_drawn_programs_of_broad_kinds(first: int) -> None:
    ends = [run(number, BROAD) for number in range(first, first + 4)]
    assert [end for end in ends if end not in ("equal", "refused")] == []
    assert ends.count("equal") >= 3


def test_steps_in_a_row_of_which_nothing_reads_a_result() -> None:
    """An update that is dead, because all slices of its result lie in rows that it leaves."""
    assert run(3_101_230) == "equal"


@pytest.mark.filterwarnings("ignore")
def test_reductions_of_outer_axes_of_repeated_elements() -> None:
    """Machine code read the windows of an input, whose strides are 0, as a contiguous array."""
    assert run(75_004_038, BROAD) == "equal"
