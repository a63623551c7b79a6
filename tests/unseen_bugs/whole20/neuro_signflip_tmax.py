"""Sign-flip permutation test with the maximum statistic over voxels (family-wise error).

Application: second-level fMRI / MEG group statistics.  Every permutation flips the signs of whole subjects; the one
sample t map of each is one matrix product; the maximum of |t| gives the null distribution.
Public code with such a loop: nilearn `permuted_ols` (https://github.com/nilearn/nilearn), MNE-Python
`permutation_t_test` (https://github.com/mne-tools/mne-python), FSL randomise.
"""
import numpy as np

TOLERANCE = 5e-4


def t_maps(data, signs):
    n = data.shape[0]
    mean = signs @ data / n
    sumsq = np.sum(data ** 2, axis=0)
    var = (sumsq - n * mean ** 2) / (n - 1)
    return mean / np.sqrt(var / n)


def main(data, signs):
    t = np.abs(t_maps(data, signs))
    tmax = t.max(axis=1)
    null = np.sort(tmax)
    p = (len(null) - np.searchsorted(null, t[0], side="left")) / len(null)
    return t[0], null, p.astype(np.float32)


def inputs(rng):
    subjects, voxels, perms = 20, 100_000, 32
    data = rng.standard_normal((subjects, voxels), dtype=np.float32)
    data[:, :300] += 1.2
    signs = rng.choice(np.array([-1, 1], dtype=np.float32), (perms, subjects))
    signs[0] = 1
    return data, signs


try:
    import jax
    import jax.numpy as jnp
except ImportError:
    pass


def jax_main(data, signs):
    n = data.shape[0]
    mean = signs @ data / n
    var = (jnp.sum(data ** 2, axis=0) - n * mean ** 2) / (n - 1)
    t = jnp.abs(mean / jnp.sqrt(var / n))
    null = jnp.sort(t.max(axis=1))
    p = (len(null) - jnp.searchsorted(null, t[0], side="left")) / len(null)
    return t[0], null, p.astype(jnp.float32)


try:
    import torch
except ImportError:
    pass


def torch_main(data, signs):
    n = data.shape[0]
    mean = signs @ data / n
    var = ((data ** 2).sum(0) - n * mean ** 2) / (n - 1)
    t = (mean / torch.sqrt(var / n)).abs()
    null = torch.sort(t.amax(1)).values
    p = (null.shape[0] - torch.searchsorted(null, t[0].contiguous())) / null.shape[0]
    return t[0], null, p.to(torch.float32)


def numba_main(data, signs):
    n, voxels = data.shape
    perms = signs.shape[0]
    chunk = 2048
    tmax = np.zeros(perms, np.float32)
    t0 = np.empty(voxels, np.float32)
    sumsq = np.empty(chunk, np.float32)
    fn = np.float32(n)
    fn1 = np.float32(n - 1)
    for start in range(0, voxels, chunk):
        m = min(chunk, voxels - start)
        sumsq[:m] = 0
        for s in range(n):
            for v in range(m):
                sumsq[v] += data[s, start + v] * data[s, start + v]
        sums = np.dot(signs, np.ascontiguousarray(data[:, start:start + m]))
        for p in range(perms):
            top = tmax[p]
            for v in range(m):
                mean = sums[p, v] / fn
                t = abs(mean / np.sqrt((sumsq[v] - fn * mean * mean) / fn1 / fn))
                top = max(top, t)
                if p == 0:
                    t0[start + v] = t
            tmax[p] = top
    null = np.sort(tmax)
    pval = np.empty(voxels, np.float32)
    for v in range(voxels):
        pval[v] = (perms - np.searchsorted(null, t0[v])) / perms
    return t0, null, pval
