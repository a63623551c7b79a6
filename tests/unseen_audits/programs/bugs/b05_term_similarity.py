"""Cosine similarity of documents to a query from raw term counts."""
import numpy as np

VOCAB = ("wind", "rain", "snow", "cloud", "front", "ridge", "storm", "calm")


def make_inputs():
    rng = np.random.default_rng(55)
    counts = rng.poisson(40.0, size=(14, len(VOCAB)))
    counts[[2, 5, 9, 12], 6] += np.array([260, 310, 420, 275])
    query = np.array([1, 2, 0, 1, 0, 0, 3, 0])
    return counts, query


def run(counts, query):
    tf = counts.astype(np.float16)
    dots = counts @ query
    norms = np.sqrt((tf * tf).sum(axis=1))
    similarity = dots / norms / np.sqrt((query * query).sum())
    top_term = counts.argmax(axis=1)
    best = int(np.argmax(dots))
    print(f"largest overlap: document {best}, top term {VOCAB[top_term[best]]}")
    return {
        "dots": dots,
        "similarity": similarity,
        "doc_lengths": counts.sum(axis=1),
        "top_term": top_term,
    }


ANSWER = {
    "line": 18,
    "fix_line": 16,
    "outputs": {
        "dots": {"differ": 0},
        "similarity": {"differ": 14},
        "doc_lengths": {"differ": 0},
        "top_term": {"differ": 0},
    },
    "why": "squares of counts above 255, and their sums above 65504, are infinite in float16, and the rest is rounded to 11 bits",
}
