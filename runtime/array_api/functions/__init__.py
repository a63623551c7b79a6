"""The standard's functions, a file for each chapter."""
