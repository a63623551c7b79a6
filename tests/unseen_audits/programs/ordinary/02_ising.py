"""Two-dimensional Ising model with checkerboard Metropolis updates.

Runs a 24 x 24 lattice at several temperatures, records energy and magnetisation per sweep, derives the
specific heat, the susceptibility and the Binder cumulant, and finds the distribution of cluster sizes of
the last configuration.
"""
# outputs: 35
# (1 returned, 32 numbers printed, 2 arrays written)
import numpy as np

L = 24


def neighbours(s):
    return (np.roll(s, 1, axis=0) + np.roll(s, -1, axis=0)
            + np.roll(s, 1, axis=1) + np.roll(s, -1, axis=1))


def sweep(spins, colour, beta, rng):
    for c in (0, 1):
        field = neighbours(spins)
        cost = 2 * spins * field                       # -8 ... 8
        accept = rng.random(spins.shape) < np.exp(-beta * cost.astype(np.float64))
        flip = accept & (colour == c)
        spins[flip] *= -1
    return spins


def energy(spins):
    right = np.roll(spins, -1, axis=1)
    down = np.roll(spins, -1, axis=0)
    bonds = spins * right + spins * down
    return -bonds.sum(dtype=np.int64)


def label_clusters(spins):
    """Label equal-spin clusters by propagating the smallest index."""
    label = np.arange(spins.size).reshape(spins.shape)
    while True:
        new = label.copy()
        for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
            same = np.roll(spins, shift, axis) == spins
            other = np.roll(new, shift, axis)
            new = np.where(same, np.minimum(new, other), new)
        if np.array_equal(new, label):
            return label
        label = new


def simulate(temperature, rng, n_warm=40, n_keep=90):
    spins = rng.choice(np.array([-1, 1], dtype=np.int8), size=(L, L))
    if temperature < 2.2:
        spins[...] = 1
    i, j = np.indices(spins.shape)
    colour = (i + j) & 1
    e = np.empty(n_keep, dtype=np.int64)
    m = np.empty(n_keep, dtype=np.int64)
    for k in range(-n_warm, n_keep):
        sweep(spins, colour, 1.0 / temperature, rng)
        if k >= 0:
            e[k] = energy(spins)
            m[k] = spins.sum()
    return spins, e, m


def observables(e, m, temperature):
    n = L * L
    heat = e.var() / (n * temperature ** 2)
    absm = np.abs(m) / n
    chi = n * absm.var() / temperature
    m2 = np.mean((m / n) ** 2)
    m4 = np.mean((m / n) ** 4)
    binder = 1 - m4 / (3 * m2 ** 2)
    return np.array([e.mean() / n, absm.mean(), heat, chi, binder])


def main():
    rng = np.random.default_rng(1925)
    temperatures = [1.6, 2.0, 2.27, 2.8, 4.0]
    table = np.zeros((len(temperatures), 6))
    for row, t in zip(table, temperatures):
        spins, e, m = simulate(t, rng)
        row[0] = t
        row[1:] = observables(e, m, t)

    print("     T        E      |M|        C      chi   Binder")
    for row in table:
        print(" ".join(f"{v:8.4f}" for v in row))

    clusters = label_clusters(spins)
    _, size = np.unique(clusters, return_counts=True)
    edges = 2 ** np.arange(0, 11)
    histogram, _ = np.histogram(size, bins=edges)
    print("clusters:", size.size, "largest:", size.max())

    np.save("spins.npy", spins)
    np.savetxt("ising.csv", table, delimiter=",", fmt="%.6f", header="T,E,M,C,chi,U")
    return histogram


if __name__ == "__main__":
    main()
