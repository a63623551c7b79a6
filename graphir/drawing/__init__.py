"""Drawings of lattices, graphs and promotion tables: SVG, DOT, Mermaid."""
