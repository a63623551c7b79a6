"""The ops of graphs: `ops.add(x, y)` adds one; CATALOGUE has all, by name.

The catalogue is in catalogue.py, a line for each op; the Op record, attributes, types and the rules
for dtypes and shapes are the other modules.
"""

from graphir.ops.catalogue import *  # noqa: F403
from graphir.ops.op import CATALOGUE as CATALOGUE
from graphir.ops.op import find as find
