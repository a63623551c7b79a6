"""Views of arrays: the steps from a base to a view, and what a write to the view makes of it."""
