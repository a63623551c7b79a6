"""Principal component analysis by SVD, with explained variance and reconstruction."""
import numpy as np


class PCA:
    def __init__(self, n_components):
        self.n_components = n_components

    def fit(self, X):
        self.mean_ = X.mean(axis=0)
        U, s, Vt = np.linalg.svd(X - self.mean_, full_matrices=False)
        # deterministic sign: the largest loading of each component is positive
        pick = np.abs(Vt).argmax(axis=1)
        Vt = Vt * np.sign(Vt[np.arange(len(Vt)), pick])[:, None]
        var = s ** 2 / (len(X) - 1)
        self.components_ = Vt[:self.n_components]
        self.explained_ratio_ = var[:self.n_components] / var.sum()
        return self

    def transform(self, X):
        return (X - self.mean_) @ self.components_.T

    def inverse(self, Z):
        return Z @ self.components_ + self.mean_


def main(X):
    pca = PCA(2).fit(X)
    Z = pca.transform(X)
    rmse = np.sqrt(np.mean((X - pca.inverse(Z)) ** 2))
    return Z, pca.explained_ratio_, rmse


def inputs():
    rng = np.random.default_rng(6)
    latent = rng.normal(size=(40, 2))
    X = latent @ rng.normal(size=(2, 6)) + 0.05 * rng.normal(size=(40, 6)) + 3.0
    return (X,)
