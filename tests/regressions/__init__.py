"""Twelve dtype regressions, re-created in a small package whose tests do not notice them.

`project` is a package of pure NumPy, `fieldkit`, and its tests; neither imports graphir. `cases.py`
lists the regressions: a line of the package, the line that a public change made of it (the thread
is cited), and a line that mends it and need not be the first one. `project_with(folder, ...)` in
`cases.py` copies the project with one line replaced. The tests of the package pass in all three
states. So that tools are measured by them, the package never changes once it stands here.
"""
