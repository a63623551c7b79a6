"""The configuration of the site: `sphinx-build -W docs site`, with the extra `docs`."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # reference_entries.py is beside this file

project = "graphir"
release = metadata.version("graphir")
html_title = f"graphir {release}"
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
extensions = ["myst_parser", "sphinx.ext.autodoc", "reference_entries"]
myst_enable_extensions = ["colon_fence", "html_image"]
myst_heading_anchors = 3
default_role = "code"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "inherited-members": "object, Enum, BaseException, Sequence, NamedTuple, tuple",
}
autodoc_type_aliases = {"DTypeLike": "DTypeLike"}  # a union of forty names
python_maximum_signature_line_length = 88
