"""Sixty small NumPy programs with one planted fault each, and sixty without.

A module holds the programs of one class of loss: six marked `@faulty`, in which the line that ends
with the comment `# guilty` loses, and six marked `@clean`, in which the same ops are harmless: the
operands fit, a wide dtype holds them, or nothing at the output shows the loss. No program imports
graphir. `exact` computes the result that is meant in float64 or in Python's integers. So that
reports are measured by them, a program never changes once it stands here.
"""
