"""Drawings of lattices and graphs: SVG, DOT, Mermaid."""
