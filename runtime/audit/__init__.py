"""The dynamic audit: what every cast of a graph does to real data, and to the results."""
