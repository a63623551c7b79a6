"""Promotion bugs of NumPy users, re-created: plain programs that do not import graphir.

A module holds one program, in the structure in which the public bug hid: helper functions, classes,
configuration, buffers, memory maps, structured arrays, files. Its docstring cites the thread. In a
module

- `program(*inputs(folder))` is the call to audit; `inputs` may write data files into the folder;
- `shows_fault(result)` tells a wrong value or dtype from a right one;
- the comment `# guilty` marks the line whose expression widens, wraps or loses bits;
- the comment `# born` marks the line that makes the wide or narrow operand, where that is another.

`cases.py` lists for each program the kind of loss, the operand at fault and a fix, which replaces
the marked line. So that reports are measured by them, a program never changes once it stands here.
"""
