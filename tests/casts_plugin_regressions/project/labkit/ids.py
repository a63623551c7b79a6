"""Ids of nodes: local to a population, or global."""

import numpy as np


class Populations:
    def __init__(self, sizes):
        self.first = np.cumsum(sizes) - np.asarray(sizes)

    def global_ids(self, ids, population):
        """Global uint64 ids of nodes, from ids in their population."""
        first = self.first[population]
        return ids + np.uint64(first)

    def neighbours(self, ids, population):
        middle = self.global_ids(ids, population)
        one = np.uint64(1)
        return np.stack([middle - one, middle + one])
