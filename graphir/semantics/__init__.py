"""What each op computes, on NumPy arrays."""
