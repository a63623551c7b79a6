"""The tests of the project run in copies of it, not as tests of this repository."""

collect_ignore = ["project"]
