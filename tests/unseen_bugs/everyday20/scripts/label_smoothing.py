"""One-hot labels with smoothing, cross entropy and accuracy for a toy classifier."""
import numpy as np

CLASSES = ["cat", "dog", "bird", "fish"]


def one_hot(labels, k):
    out = np.zeros((len(labels), k), dtype=np.int8)
    out[np.arange(len(labels)), labels] = 1
    return out


def smooth(onehot, eps=0.1, per_sample=None):
    """Move eps of the weight to the other classes; some samples may have their own eps."""
    k = onehot.shape[1]
    soft = np.zeros_like(onehot)
    for i, row in enumerate(onehot):
        e = per_sample.get(i, eps) if per_sample else eps
        soft[i] = row * (1 - e) + e / k
    return soft


def log_softmax(z):
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def cross_entropy(logits, target):
    return -(target * log_softmax(logits)).sum(axis=1).mean()


def main():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, len(CLASSES), 32)
    logits = rng.normal(0, 1, (32, len(CLASSES)))
    logits[np.arange(32), labels] += 1.5

    target = one_hot(labels, len(CLASSES))
    soft = smooth(target, eps=0.1, per_sample={3: 0.2, 17: 0.4})
    guess = logits.argmax(axis=1)

    print(f"accuracy {np.mean(guess == labels):.3f}")
    print(f"hard loss {cross_entropy(logits, target):.4f}")
    print(f"smoothed loss {cross_entropy(logits, soft):.4f}")
    for c, name in enumerate(CLASSES):
        print(f"{name:5s} true {np.sum(labels == c):2d} guessed {np.sum(guess == c):2d}")


if __name__ == "__main__":
    main()
