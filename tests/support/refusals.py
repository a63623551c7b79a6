"""Assertions on the fields of errors, which hold whatever words the errors use."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from graphir import GraphirError


@contextmanager
def refuses(
    kind: type[GraphirError], *dtypes: str, fix: str = "", **fields: Any
) -> Generator[pytest.ExceptionInfo[GraphirError]]:
    """A block that raises an error of a class, whose operands have these dtypes.

    `fix` is part of one of its ways out, `fields` are what other fields of it are.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert not dtypes or [str(operand.dtype) for operand in error.operands] == [*dtypes]
    assert {name: getattr(error, name) for name in fields} == fields
    assert not fix or (error.fixes and fix in str(error)), error
