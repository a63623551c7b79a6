"""Twenty questions about the code, each answered by one path that its name gives away.

A reader who knows the field tries the word beside the question. It occurs in the names of few files
and folders, and one of them holds the answer.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests import ROOT
from tests.support.tables import every

QUESTIONS = {
    "Where is dead code removed?": ("dead", "passes/dead_code.py", "dead_code"),
    "Where does bfloat16 round?": ("conversion", "graphir/conversions.py", "rounding"),
    "What happens without llvmlite?": ("native", "runtime/native/__init__.py", "is_installed"),
    "Where would I forbid int64?": ("polic", "passes/analysis/policies/policy.py", "Policy"),
    "Where is `x + y` typed?": ("dtype_rule", "graphir/ops/dtype_rules.py", "ARITHMETIC"),
    "Which shape has it?": ("shape_rule", "graphir/ops/shape_rules.py", "broadcast_shapes"),
    "Which ops are there?": ("catalogue", "graphir/ops/catalogue.py", "add"),
    "What does an op compute?": ("kernel", "graphir/semantics/kernels.py", "KERNELS"),
    "What does torch make of int64 and float16?": ("torch", "graphir/promotion/torch.py", "TORCH"),
    "Which casts does a symbol imply?": ("implied", "graphir/ir/implied_casts.py", "implied"),
    "Where do they become nodes?": ("implicit_cast", "passes/implicit_cast.py", "implicit_cast"),
    "What can a conversion lose?": ("loss", "graphir/loss.py", "loss"),
    "Which symbols are live?": ("liveness", "graphir/ir/liveness.py", "live_mask"),
    "Where is bad text refused?": ("parser", "graphir/text/parser.py", "parse"),
    "Where is SARIF written?": ("sarif", "passes/reports/sarif.py", "report_sarif"),
    "Where are inputs of a run checked?": ("binding", "runtime/binding.py", "bind"),
    "When does a jitted function trace anew?": ("guard", "runtime/jit/guards.py", "Guard"),
    "Where is np.einsum?": ("einsum", "graphir/numpy_api/einsum.py", "einsum"),
    "What makes an ONNX model?": ("onnx", "runtime/targets/onnx_/target.py", "onnx"),
    "What runs `graphir promote`?": (
        "rules_and",
        "runtime/cli/rules_and_lattices.py",
        "add_rules_and_lattices",
    ),
}
FLOORS = ("graphir", "passes", "runtime")
PATHS = sorted(
    path.relative_to(ROOT)
    for floor in FLOORS
    for path in (ROOT / floor).rglob("*")
    if "__pycache__" not in path.parts and (path.is_dir() or path.suffix == ".py")
)


def test_there_are_twenty() -> None:
    assert len(QUESTIONS) == 20
    assert len({path for _, path, _ in QUESTIONS.values()}) == 20


@every("question", QUESTIONS)
def test_a_question_is_answered_by_one_path(question: str) -> None:
    _, path, name = QUESTIONS[question]
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"^(?:(?:def|class) {name}\b|{name}(?:: [^=]*)? = )", text, re.M), name


@every("question", QUESTIONS)
def test_the_word_that_a_reader_tries_leads_there(question: str) -> None:
    """A name that has the word is the answer's, or that of a folder around it."""
    word, answer, _ = QUESTIONS[question]
    named = [path for path in PATHS if word in path.name]
    around = {Path(answer), *Path(answer).parents}
    assert 1 <= len(named) <= 4, named
    assert around & {*named}, named


def test_every_question_stands_in_the_architecture_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for question, (_, path, _) in QUESTIONS.items():
        assert re.search(rf"^\| {re.escape(question)} \| `{re.escape(path)}` \|$", page, re.M)
