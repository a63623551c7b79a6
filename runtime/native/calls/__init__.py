"""Machine code for ops on whole arrays: products of integers, and searches in sorted vectors."""
