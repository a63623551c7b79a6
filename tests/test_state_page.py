"""docs/state.md lists the caches, tables, locks and context variables that the code has."""

from __future__ import annotations

from tests.support.process_state import HEAD, PAGE, UNKNOWN, rows, states, table

COMMAND = "python -m tests.support.process_state"


def test_the_page_lists_the_state_of_the_code_and_no_other() -> None:
    assert {(state.name, state.file) for state in states()} == rows().keys(), COMMAND


def test_each_state_has_the_bound_that_the_code_says() -> None:
    listed = rows()
    for state in states():
        row = listed[state.name, state.file]
        assert row.kind == state.kind, COMMAND
        assert state.bound in (UNKNOWN, row.bound), COMMAND
        assert UNKNOWN not in (row.bound, row.cleared), f"{PAGE.name} says no bound of {row.name}"


def test_the_table_is_as_its_command_writes_it() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), COMMAND
    assert table().startswith(HEAD) and len(rows()) > 150
