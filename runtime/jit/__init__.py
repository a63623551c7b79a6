"""jit: functions of arrays, traced, specialized, guarded and run as Programs."""
