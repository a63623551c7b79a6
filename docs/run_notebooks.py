"""Runs the notebooks of docs/notebooks and stores their outputs.

    python -m docs.run_notebooks

It needs the extra `notebooks`, and runs in a checkout.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def run(path: Path) -> str:
    """Return a notebook with the outputs of a new run, as JSON without what differs between runs.

    Cells run in the root of the checkout. Raises nbclient's CellExecutionError if a cell fails.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=120, record_timing=False, resources={"metadata": {"path": ROOT}}
    ).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
    return json.dumps(json.loads(nbformat.writes(notebook)), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Run all notebooks and write them back."""
    for path in NOTEBOOKS:
        path.write_text(run(path), encoding="utf-8")


if __name__ == "__main__":
    main()
