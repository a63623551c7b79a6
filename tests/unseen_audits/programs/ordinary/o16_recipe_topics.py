"""Recipes as texts: token counts, tf-idf, cosine neighbours, topics by factorisation, collocations."""
import json
import re
from collections import Counter

import numpy as np

TOKEN = re.compile(r"[a-z]+")
STOP = {"the", "and", "with", "in", "a", "of", "for", "until", "to"}
STEMS = {
    "soup": "onion carrot leek stock simmer salt pepper parsley bowl spoon potato celery",
    "cake": "flour sugar butter egg bake oven vanilla cream whisk tin chocolate",
    "salad": "tomato lettuce oil vinegar salt pepper cucumber toss bowl onion feta",
    "bread": "flour yeast water salt knead oven bake loaf rise oil tin",
}


def make_inputs():
    rng = np.random.default_rng(1616)
    texts, kinds = [], []
    fillers = sorted(STOP)
    for i in range(36):
        kind = list(STEMS)[i % 4]
        words = STEMS[kind].split()
        weight = rng.dirichlet(np.full(len(words), 0.9))
        chosen = rng.choice(words, size=int(rng.integers(25, 60)), p=weight).tolist()
        extra = rng.choice(fillers, size=len(chosen) // 2).tolist()
        mixed = chosen + extra
        rng.shuffle(mixed)
        texts.append(" ".join(mixed).capitalize() + ".")
        kinds.append(kind)
    return texts, np.array(kinds), 4


def tokenise(texts):
    for text in texts:
        yield [t for t in TOKEN.findall(text.lower()) if t not in STOP]


def count_matrix(documents):
    vocabulary = sorted({t for doc in documents for t in doc})
    position = {t: i for i, t in enumerate(vocabulary)}
    counts = np.zeros((len(documents), len(vocabulary)), dtype=np.int32)
    for d, doc in enumerate(documents):
        for token, n in Counter(doc).items():
            counts[d, position[token]] = n
    return counts, np.array(vocabulary)


def tfidf(counts):
    tf = counts / counts.sum(axis=1, keepdims=True)
    df = np.count_nonzero(counts, axis=0)
    idf = np.log((1.0 + len(counts)) / (1.0 + df)) + 1.0
    weighted = tf * idf
    return (weighted / np.linalg.norm(weighted, axis=1, keepdims=True)).astype(np.float32)


def neighbours(vectors, k=3):
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -1.0)
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return nearest, np.take_along_axis(similarity, nearest, axis=1)


def factorise(counts, n_topics, rounds=120):
    """Non-negative factorisation with multiplicative updates for the divergence."""
    rng = np.random.default_rng(5)
    v = counts.astype(np.float64)
    w = rng.uniform(0.1, 1.0, (v.shape[0], n_topics))
    h = rng.uniform(0.1, 1.0, (n_topics, v.shape[1]))
    for _ in range(rounds):
        ratio = v / (w @ h + 1e-12)
        h *= (w.T @ ratio) / w.sum(axis=0)[:, None]
        ratio = v / (w @ h + 1e-12)
        w *= (ratio @ h.T) / h.sum(axis=1)
    fit = w @ h
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(v > 0, v * np.log(v / fit), 0.0)
    divergence = float((terms - v + fit).sum())
    return w, h, divergence


def collocations(documents, vocabulary, least=4):
    index = {t: i for i, t in enumerate(vocabulary)}
    pairs = np.array([(index[a], index[b]) for doc in documents for a, b in zip(doc, doc[1:])])
    code = pairs[:, 0] * len(vocabulary) + pairs[:, 1]
    values, counts = np.unique(code, return_counts=True)
    left = np.bincount(pairs[:, 0], minlength=len(vocabulary))
    right = np.bincount(pairs[:, 1], minlength=len(vocabulary))
    a, b = np.divmod(values, len(vocabulary))
    pmi = np.log2(counts * len(pairs) / (left[a] * right[b]))
    keep = np.flatnonzero(counts >= least)
    best = keep[np.argsort(-pmi[keep], kind="stable")][:5]
    return [(str(vocabulary[a[i]]), str(vocabulary[b[i]]), int(counts[i]), float(pmi[i])) for i in best]


def run(texts, kinds, n_topics):
    documents = list(tokenise(texts))
    counts, vocabulary = count_matrix(documents)
    vectors = tfidf(counts)
    nearest, similarity = neighbours(vectors)
    agreement = (kinds[nearest] == kinds[:, None]).mean(axis=0)
    w, h, divergence = factorise(counts, n_topics)
    topic = w.argmax(axis=1)
    names, kind_code = np.unique(kinds, return_inverse=True)
    confusion = np.zeros((names.size, n_topics), dtype=np.int64)
    np.add.at(confusion, (kind_code, topic), 1)
    top = [vocabulary[np.argsort(-row)[:4]].tolist() for row in h]
    for k, words in enumerate(top):
        print(f"topic {k}: {', '.join(words)}")
    pairs = collocations(documents, vocabulary)
    with open("topics.json", "w") as handle:
        json.dump({"topics": top, "pairs": [p[:3] for p in pairs]}, handle)
    lengths = np.array([len(d) for d in documents], dtype=np.int16)
    print("%d tokens, %d types, purity %.3f" % (lengths.sum(), vocabulary.size, confusion.max(axis=0).sum() / len(texts)))
    return counts, nearest, similarity, agreement, confusion, divergence, lengths, [p[3] for p in pairs]
