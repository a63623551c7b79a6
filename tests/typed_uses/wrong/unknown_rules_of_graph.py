from graphir import Graph

Graph("g", rules="numpi")  # wrong
