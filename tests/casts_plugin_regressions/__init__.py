"""Twelve dtype regressions for the pytest plugin, in a package whose tests do not notice them.

`project` is a package of pure NumPy, `labkit`, and its tests; neither imports graphir. Each of its
modules has one line that regresses: `cases.py` lists the line, the line that a public change made
of it (the thread is cited), and a line that mends it and need not be the first one. The tests of
the package pass in all three states. So that the plugin is measured by them, neither the package
nor the lines change once they stand here.
"""
