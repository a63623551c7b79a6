"""Where nodes come from: their names and layers, lines of Python, and passes of exporters."""

from __future__ import annotations

import re
from typing import Any

from graphir import Location
from graphir.runtime.sources.onnx_.model import text_of

_TORCH = "pkg.torch.onnx."
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')

PASSES = {
    r"^Inserted(PrecisionFree)?Cast_|CastTransformer": "onnxruntime.InsertCastTransformer",
    r"(^graph|_)_?(in|out)put_cast_?\d*$": "onnxconverter_common.float16",
}
"""Passes of exporters and engines by the names that they give to their casts."""


def location_of(node: Any, place: int, outer: str) -> Location:
    """Return the location of a node: its name, or its op and its place, and its layer.

    A node of PyTorch's exporter has the line of the program instead, which the model states.
    """
    metadata = {text_of(entry.key): text_of(entry.value) for entry in node.metadata_props}
    name = text_of(node.name) or f"{text_of(node.op_type)}_{place}"
    layer = name.strip("/").rpartition("/")[0]
    scopes = re.findall(r"'([^']*)'", metadata.get(f"{_TORCH}name_scopes", ""))
    layer = "/".join(part for part in (outer, scopes[-2] if len(scopes) > 1 else layer) if part)
    frames = _FRAME.findall(metadata.get(f"{_TORCH}stack_trace", ""))
    frames = [frame for frame in frames if "/site-packages/" not in frame[0]] or frames
    if frames:
        file, line = frames[-1]
        return Location.at(file, min(int(line[:9]), 10**8), layer=layer)
    return Location.at(name, 0, layer=layer)


def exporter_pass(node: Any) -> str:
    """Return the pass that has inserted a cast, by the node's name; "" if it tells none."""
    name = text_of(node.name)
    return next((title for pattern, title in PASSES.items() if re.search(pattern, name)), "")
