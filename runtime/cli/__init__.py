"""The command line: `main` declares the commands, the other modules hold what they do."""

from typing import TYPE_CHECKING

from graphir.import_names import import_lazily

if TYPE_CHECKING:
    from graphir.runtime.cli.annotate_and_fix import run_annotate as run_annotate
    from graphir.runtime.cli.annotate_and_fix import run_fix as run_fix
    from graphir.runtime.cli.arguments import report_error as report_error
    from graphir.runtime.cli.arguments import rule_set as rule_set
    from graphir.runtime.cli.demo_and_doctor import run_completion as run_completion
    from graphir.runtime.cli.demo_and_doctor import run_demo as run_demo
    from graphir.runtime.cli.demo_and_doctor import run_doctor as run_doctor
    from graphir.runtime.cli.graphs_and_casts import gate_words as gate_words
    from graphir.runtime.cli.graphs_and_casts import policy_words as policy_words
    from graphir.runtime.cli.graphs_and_casts import run_audit as run_audit
    from graphir.runtime.cli.graphs_and_casts import run_casts as run_casts
    from graphir.runtime.cli.graphs_and_casts import run_diff as run_diff
    from graphir.runtime.cli.graphs_and_casts import run_draw as run_draw
    from graphir.runtime.cli.graphs_and_casts import run_export as run_export
    from graphir.runtime.cli.graphs_and_casts import run_lower as run_lower
    from graphir.runtime.cli.graphs_and_casts import run_plan as run_plan
    from graphir.runtime.cli.graphs_and_casts import run_run as run_run
    from graphir.runtime.cli.programs import user_traceback as user_traceback
    from graphir.runtime.cli.rules_and_lattices import lattice_or_file as lattice_or_file
    from graphir.runtime.cli.rules_and_lattices import lawful as lawful
    from graphir.runtime.cli.rules_and_lattices import operand as operand
    from graphir.runtime.cli.rules_and_lattices import rules_or_graph as rules_or_graph
    from graphir.runtime.cli.rules_and_lattices import run_lattice as run_lattice
    from graphir.runtime.cli.rules_and_lattices import run_laws as run_laws
    from graphir.runtime.cli.rules_and_lattices import run_promote as run_promote
    from graphir.runtime.cli.rules_and_lattices import run_rules as run_rules
    from graphir.runtime.cli.rules_and_lattices import run_table as run_table

import_lazily(
    __name__,
    {
        "graphir.runtime.cli.annotate_and_fix": "run_annotate run_fix",
        "graphir.runtime.cli.arguments": "report_error rule_set",
        "graphir.runtime.cli.graphs_and_casts": (
            "gate_words policy_words run_audit run_casts run_diff run_draw run_export "
            "run_lower run_plan run_run"
        ),
        "graphir.runtime.cli.demo_and_doctor": "run_completion run_demo run_doctor",
        "graphir.runtime.cli.programs": "user_traceback",
        "graphir.runtime.cli.rules_and_lattices": (
            "lattice_or_file lawful operand rules_or_graph run_lattice run_laws run_promote "
            "run_rules run_table"
        ),
    },
)
