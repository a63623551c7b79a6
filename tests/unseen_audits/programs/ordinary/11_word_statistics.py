"""Zipf law, vocabulary growth, letter statistics and keyness for two short artificial texts.

The texts are drawn from a Pitman-Yor like process over invented words. Counting is done with np.unique on
string arrays, letters with bincount on bytes, and the two texts are compared by log-likelihood ratios.
"""
# outputs: 29
# (3 returned, 25 numbers printed, 1 arrays written)
import numpy as np

CONSONANTS = list("bdfgklmnprstvz")
VOWELS = list("aeiou")


def invent_words(n, rng):
    """n distinct words of one to four syllables, frequent ones short."""
    words, seen = [], set()
    while len(words) < n:
        syllables = 1 + min(3, int(rng.exponential(0.5 + len(words) / n)))
        w = "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(syllables))
        if w not in seen:
            seen.add(w)
            words.append(w)
    return np.array(words)


def write_text(words, length, theta, rng):
    rank = np.arange(1, words.size + 1)
    p = 1.0 / (rank + 2.7) ** theta
    p /= p.sum()
    return words[rng.choice(words.size, size=length, p=p)]


def zipf_fit(counts):
    """Exponent from the log-log regression over ranks with more than two tokens."""
    c = np.sort(counts)[::-1]
    c = c[c > 2]
    r = np.arange(1, c.size + 1)
    slope, intercept = np.polyfit(np.log(r + 2.7), np.log(c), 1)
    return -slope, np.exp(intercept)


def vocabulary_growth(tokens, at):
    _, first = np.unique(tokens, return_index=True)
    return np.searchsorted(np.sort(first), at, side="left")


def entropy(counts):
    p = counts[counts > 0] / counts.sum()
    return -(p * np.log2(p)).sum()


def letter_counts(tokens):
    raw = np.frombuffer(" ".join(tokens).encode("ascii"), dtype=np.uint8)
    letters = raw[raw != ord(" ")] - ord("a")
    return np.bincount(letters, minlength=26), raw


def bigram_table(raw):
    code = np.where(raw == 32, 26, raw.astype(np.int64) - 97)
    pair = code[:-1] * 27 + code[1:]
    return np.bincount(pair, minlength=27 * 27).reshape(27, 27)


def keyness(tokens_a, tokens_b):
    vocabulary, inverse = np.unique(np.concatenate([tokens_a, tokens_b]), return_inverse=True)
    a = np.bincount(inverse[: tokens_a.size], minlength=vocabulary.size)
    b = np.bincount(inverse[tokens_a.size:], minlength=vocabulary.size)
    expect_a = tokens_a.size * (a + b) / (tokens_a.size + tokens_b.size)
    expect_b = tokens_b.size * (a + b) / (tokens_a.size + tokens_b.size)
    la = np.zeros(vocabulary.size)
    lb = np.zeros(vocabulary.size)
    np.log(a / expect_a, out=la, where=a > 0)
    np.log(b / expect_b, out=lb, where=b > 0)
    g2 = 2 * (a * la + b * lb)
    return vocabulary, np.where(a / tokens_a.size > b / tokens_b.size, g2, -g2)


def main():
    rng = np.random.default_rng(1935)
    words = invent_words(600, rng)
    novel = write_text(words, 2600, 1.05, rng)
    shuffled = words.copy()
    move = rng.choice(40, 12, replace=False)
    shuffled[np.sort(move)] = words[move]
    report = write_text(shuffled, 1900, 1.2, rng)

    for title, tokens in (("novel", novel), ("report", report)):
        vocabulary, counts = np.unique(tokens, return_counts=True)
        exponent, scale = zipf_fit(counts)
        hapax = np.count_nonzero(counts == 1)
        lengths = np.char.str_len(tokens)
        print(f"{title:8s} types {vocabulary.size} hapax {hapax} exponent {exponent:.4f} "
              f"entropy {entropy(counts):.4f} mean length {lengths.mean():.4f}")
        top = counts.argsort(kind="stable")[::-1][:4]
        print("   ", ", ".join(f"{vocabulary[k]} ({counts[k]})" for k in top))

    at = np.array([100, 300, 1000, 2600])
    growth = vocabulary_growth(novel, at)
    heaps = np.polyfit(np.log(at), np.log(growth), 1)[0]
    print("vocabulary", *growth, "Heaps exponent", round(heaps, 4))

    letters, raw = letter_counts(novel)
    pairs = bigram_table(raw)
    joint = entropy(pairs.ravel())
    print("letter entropy %.4f, bigram %.4f" % (entropy(letters), joint))
    conditional = joint - entropy(pairs.sum(axis=1))

    vocabulary, g2 = keyness(novel, report)
    order = np.argsort(g2)
    print("typical of the report:", " ".join(vocabulary[order[:5]]))
    np.save("bigrams.npy", pairs.astype(np.uint16))
    return letters / letters.sum(), conditional, g2[order[[0, -1]]]


if __name__ == "__main__":
    main()
