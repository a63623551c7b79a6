"""Collect the distinct device hashes seen in several message batches."""
import pickle

import numpy as np


def make_inputs():
    rng = np.random.default_rng(4096)
    pool = np.sort(rng.integers(2**58, 2**62, size=90))
    pool[:10] = np.arange(10) * 17 + 100          # test benches with short serials
    batches = [rng.choice(pool, size=s) for s in (40, 0, 75, 60)]
    return (batches,)


def run(batches):
    seen = np.array([])
    sizes = []
    for batch in batches:
        if len(batch) == 0:
            sizes.append(0)
            continue
        seen = np.append(seen, batch)
        sizes.append(np.unique(batch).size)

    ids, hits = np.unique(seen, return_counts=True)
    ids = ids.astype(np.int64)
    with open("registry.pkl", "wb") as fh:
        pickle.dump({"ids": ids, "hits": hits, "sizes": sizes}, fh)
    return ids[np.argmax(hits)]


def exact(batches):
    tally = {}
    for b in batches:
        for v in b.tolist():
            tally[v] = tally.get(v, 0) + 1
    ids = sorted(tally)
    top = max(tally.values())
    return (next(i for i in ids if tally[i] == top), ids, [tally[i] for i in ids],
            [len(set(b.tolist())) for b in batches])


ANSWER = {
    "line": 22,
    "kind": "rounding",
    "operation": "appending int64 ids to np.array([]) (float64) converts them to float64; above 2**53 they lose their last digits",
    "outputs": {
        "most frequent id (returned)": {"size": 1, "differ": 1},
        "registry.pkl ids": {"size": 77, "differ": 68},
        "registry.pkl hits": {"size": 77, "differ": 0},
        "registry.pkl sizes": {"size": 4, "differ": 0},
    },
    "fix_line": 16,
    "fix": "seen = np.array([], dtype=np.int64)",
}
