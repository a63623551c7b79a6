"""Views of arrays: the steps from an array to a view, and the effect of a write to the view."""
