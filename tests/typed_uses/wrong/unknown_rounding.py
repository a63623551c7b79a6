from graphir import Graph

Graph("g", tf32="odd")  # wrong
