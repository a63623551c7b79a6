"""The textual form of graphs: printer, parser, files."""
