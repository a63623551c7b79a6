"""Rule sets as arguments of commands: by name, or as a JSON file of a lattice."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from graphir import GraphError, PromotionRules, rules


class RulesFile:
    """A JSON file of a lattice whose joins are a rule set; the command reads it when it runs.

    The deferred read makes an invalid file an error of the command (status 3), not of its usage
    (status 2).
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self) -> PromotionRules:
        """Register and return the rule set; raise GraphError for an invalid file."""
        return rules(PromotionRules.from_lattice(self.path))


def rule_set(text: str) -> PromotionRules | RulesFile:
    """Return the rule set that an argument names, or the RulesFile for a .json path."""
    try:
        return PromotionRules.find(text)
    except GraphError as error:
        if Path(text).suffix == ".json":
            return RulesFile(text)
        raise argparse.ArgumentTypeError(f"{error}; or name a JSON file of a lattice") from None


def add_rule_set(command: Any, default: str | None = "max", what: str = "a rule set") -> None:
    """Add the option --rules to a command."""
    command.add_argument(
        "--rules",
        type=rule_set,
        default=default,
        metavar="RULES",
        help=f"{what}: a name that `graphir rules` lists, or a JSON file of a lattice",
    )


def read_rule_files(arguments: argparse.Namespace) -> None:
    """Replace each RulesFile among the parsed arguments by the rule set in the file."""
    for name, value in vars(arguments).items():
        if isinstance(value, RulesFile):
            setattr(arguments, name, value.read())
