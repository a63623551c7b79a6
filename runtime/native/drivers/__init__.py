"""Machine code that never changes and runs kernels: jobs of threads, sequences, blocks of rows."""
