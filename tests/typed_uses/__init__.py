"""Forty right and forty wrong uses of the public API, for type checkers.

`right` has programs that run, with `assert_type` where the result has one type; a checker accepts
every line. `wrong` has programs that raise, each at the line that ends with the comment `# wrong`;
a checker refuses that line, and no other. So that the types are measured by them, a program never
changes once it stands here.
"""
