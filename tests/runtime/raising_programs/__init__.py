"""Programs that raise by dtypes or lost values; `# named` marks the lines that a note names."""
