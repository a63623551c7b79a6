"""Benchmarks: each prints graphir beside the peers that are installed, measured in one run."""
