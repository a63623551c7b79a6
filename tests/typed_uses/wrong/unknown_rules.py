from graphir import rules

rules("pytorch")  # wrong
