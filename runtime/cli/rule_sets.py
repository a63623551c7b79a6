"""Rule sets as arguments of commands: by name, or one's own in a JSON file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from graphir import GraphError, PromotionRules, rules


class RulesFile:
    """A JSON file of a lattice whose joins are a rule set; read when the command runs.

    What is wrong in the file is an error of the command (status 1), not of its usage (status 2).
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self) -> PromotionRules:
        """The rule set, registered under its name; GraphError for what is wrong in the file."""
        return rules(PromotionRules.from_lattice(self.path))


def rule_set(text: str) -> PromotionRules | RulesFile:
    """The rule set that an argument names, or the file that has one."""
    try:
        return rules(text)
    except GraphError as error:
        if Path(text).suffix == ".json":
            return RulesFile(text)
        raise argparse.ArgumentTypeError(f"{error}; or name a JSON file of a lattice") from None


def add_rule_set(command: Any, default: str = "max", what: str = "a rule set") -> None:
    """Let a command take `--rules`."""
    command.add_argument(
        "--rules",
        type=rule_set,
        default=default,
        metavar="RULES",
        help=f"{what}: a name that `graphir rules` lists, or a JSON file of a lattice",
    )


def read_rule_files(asked: argparse.Namespace) -> None:
    """Replace each file among the arguments by the rule set in it."""
    for name, value in vars(asked).items():
        if isinstance(value, RulesFile):
            setattr(asked, name, value.read())
