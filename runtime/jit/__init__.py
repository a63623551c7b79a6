"""jit: trace, specialize and guard functions of arrays, and run them as Programs."""
