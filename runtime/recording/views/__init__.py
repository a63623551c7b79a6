"""Views of recorded arrays: indexing, assignment, and rows of structured arrays."""
