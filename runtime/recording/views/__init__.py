"""Views of recorded arrays: indexing, assignment, and changes of shape in place."""
