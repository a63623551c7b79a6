"""Ranks candidate matches between a query graph and a target graph from the rows of a join on
the neighbours of both.

https://github.com/digicatapult/fornax/issues/14
"""
import numpy as np

CONFIG = {"hopping_distance": 2, "alpha": 0.3, "lambda_": 0.3}


class Table:
    columns, types = (), ()

    def __init__(self, *args, **kwargs):
        a = np.atleast_2d(np.array(*args, **kwargs))
        self.data = np.empty(len(a), dtype=list(zip(self.columns, self.types)))
        for i, (name, kind) in enumerate(zip(self.columns, self.types)):
            self.data[name] = a[:, i].astype(kind)

    def __len__(self):
        return len(self.data)

    def __getattr__(self, name):
        if name in type(self).columns:
            return self.data[name]
        raise AttributeError(name)

    def order_by(self, *names):
        order = np.lexsort([self.data[n] for n in reversed(names)])
        self.data = self.data[order]
        return self


class NeighbourTable(Table):
    columns = ("match_start", "match_end", "query_node_id", "target_node_id", "query_distance",
               "target_distance", "weight")
    types = (np.int64, np.int64, np.int64, np.int64, np.float32, np.float32, np.float32)


def proximity(h, alpha, distances):
    return np.where(distances <= h, alpha ** distances, 0).astype(np.float32)


def delta_plus(x, y):
    return np.where(x > y, x - y, 0)


def community_costs(rows, config):
    h, alpha, lam = config["hopping_distance"], config["alpha"], config["lambda_"]
    gap = delta_plus(proximity(h, alpha, rows.query_distance),
                     proximity(h, alpha, rows.target_distance))
    cost = lam * (1 - rows.weight) + (1 - lam) * gap
    pairs = np.stack([rows.match_start, rows.match_end], axis=1)
    keys, inverse = np.unique(pairs, axis=0, return_inverse=True)
    total = np.bincount(inverse.reshape(-1), weights=cost)
    return keys, total / np.bincount(inverse.reshape(-1))


def best_matches(keys, costs):
    order = np.lexsort([costs, keys[:, 0]])
    keys, costs = keys[order], costs[order]
    _, first = np.unique(keys[:, 0], return_index=True)
    return keys[first], costs[first]


def main(starts, ends, neighbours, distances, weights):
    records = [(s, e, q, t, d[0], d[1], w) for s, e, (q, t), d, w in
               zip(starts.tolist(), ends.tolist(), neighbours.tolist(), distances.tolist(),
                   weights.tolist())]
    rows = NeighbourTable(records).order_by("match_start", "match_end", "query_node_id")
    keys, costs = community_costs(rows, CONFIG)
    matches, cost = best_matches(keys, costs)
    return keys, matches, cost


def inputs():
    rng = np.random.default_rng(5)
    base = 7205759403792793600
    starts = np.repeat(np.arange(3), 12)
    ends = base + np.tile(np.repeat(np.arange(4), 3), 3) * 37 + 11
    neighbours = np.stack([np.tile(np.arange(3), 12), base + rng.integers(0, 400, 36)], axis=1)
    distances = rng.integers(1, 4, size=(36, 2)).astype(np.float64)
    return starts, ends, neighbours, distances, rng.random(36)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
