"""MinHash signatures of documents from rolling byte shingles, and their Jaccard estimates.

Application: near-duplicate removal in text corpora.  Every 5-byte shingle of a document gets an FNV-like uint32 hash;
64 random permutations modulo the Mersenne prime 2^61-1 in wrapping uint64; the minimum over the shingles is the
signature; signatures are compared pairwise.
Public code with such a loop: datasketch MinHash.update_batch (https://github.com/ekzhu/datasketch), text-dedup
(https://github.com/ChenghaoMou/text-dedup).
"""
import numpy as np

TOLERANCE = 0.0

MERSENNE = np.uint64((1 << 61) - 1)
MAX_HASH = np.uint64((1 << 32) - 1)


def shingle_hashes(doc, width=5):
    n = len(doc) - width + 1
    h = np.full(n, 2166136261, dtype=np.uint32)
    for i in range(width):
        h = (h ^ doc[i:i + n]) * np.uint32(16777619)
    return h ^ (h >> 15)


def signature(hashes, a, b):
    phv = ((hashes.astype(np.uint64)[:, None] * a + b) % MERSENNE) & MAX_HASH
    return phv.min(axis=0).astype(np.uint32)


def main(docs, a, b):
    sig = np.empty((len(docs), len(a)), dtype=np.uint32)
    for i, doc in enumerate(docs):
        sig[i] = signature(shingle_hashes(doc), a, b)
    jaccard = (sig[:, None, :] == sig[None, :, :]).mean(axis=-1)
    return sig, jaccard


def inputs(rng):
    docs, length, perms = 24, 400, 64
    words = [rng.integers(97, 123, rng.integers(2, 9)).astype(np.uint8) for _ in range(200)]
    text = np.full((docs, length), 32, dtype=np.uint8)
    for i in range(docs):
        if i % 3 == 2:  # near-duplicate
            text[i] = text[i - 1]
            text[i, rng.integers(0, length, 5)] = 120
            continue
        pos = 0
        while pos < length - 10:
            w = words[int(200 * rng.random() ** 2)]
            text[i, pos:pos + len(w)] = w
            pos += len(w) + 1
    a = rng.integers(1, int(MERSENNE), perms, dtype=np.uint64)
    b = rng.integers(0, int(MERSENNE), perms, dtype=np.uint64)
    return text, a, b


try:
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
except ImportError:
    pass


def jax_main(docs, a, b, width=5):
    def signature(doc):
        n = doc.shape[0] - width + 1
        h = jnp.full(n, 2166136261, jnp.uint32)
        for i in range(width):
            h = (h ^ doc[i:i + n].astype(jnp.uint32)) * jnp.uint32(16777619)
        h = (h ^ (h >> 15)).astype(jnp.uint64)
        phv = ((h[:, None] * a + b) % jnp.uint64(MERSENNE)) & jnp.uint64(MAX_HASH)
        return phv.min(axis=0).astype(jnp.uint32)

    sig = jax.vmap(signature)(docs)
    return sig, (sig[:, None] == sig[None]).mean(axis=-1, dtype=jnp.float64)


try:
    import torch
except ImportError:
    pass


def torch_main(docs, a, b, width=5):
    # torch has no uint64 arithmetic: int64 with the same bits, and the remainder by the Mersenne identity
    a, b = a.view(torch.int64), b.view(torch.int64)
    prime = (1 << 61) - 1
    n = docs.shape[1] - width + 1
    h = torch.full((docs.shape[0], n), 2166136261, dtype=torch.int64)
    for i in range(width):
        h = ((h ^ docs[:, i:i + n]) * 16777619) & 0xFFFFFFFF
    h = h ^ (h >> 15)
    v = h[:, :, None] * a + b
    m = (v & prime) + ((v >> 61) & 7)
    m = torch.where(m >= prime, m - prime, m) & 0xFFFFFFFF
    sig = m.amin(dim=1)
    jaccard = (sig[:, None] == sig[None]).to(torch.float64).mean(-1)
    return sig, jaccard


def numba_main(docs, a, b, width=5):
    nd, length = docs.shape
    perms = len(a)
    sig = np.full((nd, perms), 0xFFFFFFFF, np.uint32)
    prime = np.uint64((1 << 61) - 1)
    mask = np.uint64(0xFFFFFFFF)
    for d in range(nd):
        for s in range(length - width + 1):
            h = np.uint64(2166136261)
            for i in range(width):
                h = ((h ^ np.uint64(docs[d, s + i])) * np.uint64(16777619)) & mask
            h = h ^ (h >> np.uint64(15))
            for p in range(perms):
                v = np.uint32(((h * a[p] + b[p]) % prime) & mask)
                if v < sig[d, p]:
                    sig[d, p] = v
    jaccard = np.empty((nd, nd))
    for i in range(nd):
        for j in range(nd):
            same = 0
            for p in range(perms):
                same += sig[i, p] == sig[j, p]
            jaccard[i, j] = same / perms
    return sig, jaccard
