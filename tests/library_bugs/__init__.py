"""Public dtype bugs of JAX, PyTorch and ONNX programs, re-created: ten of each.

The programs do not import graphir. Each keeps the structure in which the bug hid: helper functions,
layers, an optimizer step, a loop, a configuration constant, an exporter. The docstring of a module
cites its thread; the comment `# guilty` marks the line whose expression (in ONNX: whose node)
widens or loses, `# born` the line that makes the operand at fault, where that is another.

- JAX and PyTorch: `program(*inputs())` is the call; `X64` tells whether JAX has 64-bit types.
- ONNX: `model()` builds the model with `onnx.helper`, `inputs()` are its named arrays.
- `shows_fault(result)` tells a wrong dtype or value from a right one. The result is the exception
  where the library raises one.

`cases.py` lists for each program the operand at fault, the rule behind it and a fix, which replaces
the marked line. So that reports are measured by them, a program never changes once it stands here.
"""
