"""Rewrites of a lowered graph, and of the bound steps of a plan; they keep all values of outputs.

Of graphs: axis_orders, early_slices, expansion, hoisting, reductions. Of steps: fusion,
operand_layouts, updates, wavefronts. runtime/program/planning.py has their order.
"""
