"""Drawings of lattices, graphs and promotion tables: SVG, DOT, Mermaid."""

from typing import TYPE_CHECKING

from graphir.import_names import import_lazily

if TYPE_CHECKING:
    from graphir.drawing.formats import LATTICE_FORMATS as LATTICE_FORMATS
    from graphir.drawing.promotion_tables import table_svg as table_svg

import_lazily(
    __name__,
    {
        "graphir.drawing.formats": "LATTICE_FORMATS",
        "graphir.drawing.promotion_tables": "table_svg",
    },
)
