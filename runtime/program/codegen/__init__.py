"""Regions as Python functions: instructions over registers, conversions."""
