"""Names on the syntax tree: a name says the thing, not the tense of a verb."""

from __future__ import annotations

from pathlib import Path

from tests.support.syntax import Syntax, syntax, syntax_of
from tests.support.tables import every

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ["graphir", "passes", "runtime"]
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

PARTICIPLES = frozenset(
    [
        "one",
        "found",
        "made",
        "known",
        "told",
        "given",
        "computed",
        "asked",
        "taken",
        "held",
        "kept",
        "seen",
        "shown",
        "written",
        "wanted",
        "met",
        "meant",
        "said",
        "lost",
        "had",
        "done",
        "begun",
        "brought",
        "thought",
        "chosen",
        "drawn",
        "stored",
        "moved",
        "listed",
        "counted",
        "wished",
        "named",
        "inferred",
        "joined",
        "merged",
        "traced",
        "summed",
        "rounded",
        "converted",
        "called",
        "dropped",
        "put",
        "gone",
    ]
)
"""Participles, and `one`: each stands for any thing, so none names one."""


def participles(facts: Syntax) -> list[tuple[str, int]]:
    """The bindings of a module whose name is a participle alone."""
    return [pair for pair in facts.bindings if pair[0].strip("_").lower() in PARTICIPLES]


def test_no_variable_is_named_by_a_participle() -> None:
    assert not {path: names for path in SOURCES if (names := participles(syntax(path)))}


PUBLIC_VERBS = frozenset(["put", "traced"])
"""`ndarray.put` is NumPy's name, and `jit(f).traced` is a documented method."""

GENERATED = "runtime/targets/python_/support.py"
"""The text of this module stands in exported programs, which import nothing of the project."""


def test_no_function_class_or_module_is_named_by_a_participle() -> None:
    for path in SOURCES:
        if "runtime/recording/" in path.as_posix():
            continue  # its functions keep their names until its tables are shared
        names = (*syntax(path).definitions, path.stem)
        words = {name.strip("_").lower() for name in names}
        assert not words & (PARTICIPLES - PUBLIC_VERBS), path


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, set[str]] = {}
    for path in SOURCES:
        place = path.relative_to(ROOT).as_posix()
        for name in syntax(path).classes:
            if not name.startswith("_") and place != GENERATED:
                places.setdefault(name, set()).add(place)
    assert not {name: files for name, files in places.items() if len(files) > 1}


@every(
    "source",
    [
        "found = 1",
        "def f(given): ...",
        "def f(*, told=1): ...",
        "f = lambda asked: 0",
        "x = [made for made in y]",
        "for one in x: ...",
        "with open(x) as kept: ...",
        "try: ...\nexcept Error as known: ...",
        "x._known = 1",
        "if (shown := x): ...",
        "import x as taken",
        "match x:\n    case [held, *_]: ...",
        "_KEPT = 1",
    ],
)
def test_each_kind_of_binding_is_seen(source: str) -> None:
    assert len(participles(syntax_of(source))) == 1
