"""Principal components of a set of small synthetic face-like images (float32).

Draws images as mixtures of smooth blobs, removes the mean image, computes the components with the SVD,
reconstructs held-out images with a growing number of components and reports the errors.
"""
# outputs: 19
# (2 returned, 15 numbers printed, 2 arrays written)
import numpy as np

SIDE = 12


def blob(cx, cy, w):
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    return np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / np.float32(2 * w * w))


def make_faces(n, rng):
    parts = np.stack([blob(3.5, 4, 1.4), blob(8.5, 4, 1.4), blob(6, 6.5, 1.2),
                      blob(6, 9.5, 1.8), blob(6, 6, 5.0)])
    strength = rng.normal([0.9, 0.9, 0.4, 0.7, 1.0], [0.2, 0.2, 0.15, 0.25, 0.1], size=(n, 5))
    strength[:, 1] = strength[:, 0] + 0.05 * rng.standard_normal(n)     # symmetric eyes
    images = np.tensordot(strength.astype(np.float32), parts, axes=1)
    images += 0.03 * rng.standard_normal(images.shape, dtype=np.float32)
    return images


class Eigenfaces:
    def __init__(self, k):
        self.k = k

    def fit(self, flat):
        self.mean_ = flat.mean(axis=0)
        centred = flat - self.mean_
        u, s, vt = np.linalg.svd(centred, full_matrices=False)
        # make signs reproducible: largest coefficient positive
        top = np.abs(vt).argmax(axis=1)
        sign = np.sign(vt[np.arange(len(vt)), top])
        self.components_ = (vt * sign[:, None])[: self.k]
        self.variance_ = (s ** 2 / (len(flat) - 1))
        self.ratio_ = self.variance_ / self.variance_.sum()
        return self

    def encode(self, flat, k=None):
        return (flat - self.mean_) @ self.components_[: k or self.k].T

    def decode(self, code):
        return code @ self.components_[: code.shape[1]] + self.mean_


def reconstruction_error(model, flat, k):
    back = model.decode(model.encode(flat, k))
    residual = flat - back
    return np.sqrt(np.mean(np.square(residual), axis=1))


def nearest(model, gallery, probes):
    a = model.encode(gallery)
    b = model.encode(probes)
    d2 = (a ** 2).sum(1)[None, :] - 2 * b @ a.T + (b ** 2).sum(1)[:, None]
    return d2.argmin(axis=1)


def ascii_art(image):
    ramp = np.array(list(" .:-=+*#%@"))
    lo, hi = image.min(), image.max()
    level = ((image - lo) / (hi - lo) * (len(ramp) - 1)).round().astype(int)
    return ["".join(line) for line in ramp[level]]


def main():
    rng = np.random.default_rng(1991)
    faces = make_faces(34, rng)
    flat = faces.reshape(len(faces), -1)
    train, test = flat[:26], flat[26:]

    model = Eigenfaces(8).fit(train)
    cumulative = np.cumsum(model.ratio_)
    print("components for nine tenths of the variance:", int(np.searchsorted(cumulative, 0.9)) + 1)

    errors = []
    for k in (1, 2, 4, 8):
        err = reconstruction_error(model, test, k)
        errors.append(err.mean())
        print(f"k = {k}  mean error {err.mean():.5f}  worst {err.max():.5f}")

    noisy = train[:10] + 0.05 * rng.standard_normal(train[:10].shape).astype(np.float32)
    match = nearest(model, train, noisy)
    print("recognised:", np.count_nonzero(match == np.arange(10)), "of", len(match))
    for line in ascii_art(model.mean_.reshape(SIDE, SIDE))[::3]:
        print("   |" + line + "|")

    gram = model.components_ @ model.components_.T
    orthogonal = np.allclose(gram, np.eye(8), atol=1e-4)
    if not orthogonal:
        raise RuntimeError("components are not orthogonal")
    np.save("eigenfaces.npy", model.components_.reshape(-1, SIDE, SIDE))
    np.save("codes.npy", model.encode(test))
    return np.array(errors), model.ratio_[:8]


if __name__ == "__main__":
    main()
