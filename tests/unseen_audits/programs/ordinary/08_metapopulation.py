"""Stage-structured metapopulation of a perennial plant.

A Leslie/Lefkovitch matrix gives growth rate, stable stage distribution and elasticities; individuals are
then simulated in nine patches with demographic noise, dispersal by distance and local catastrophes.
"""
# outputs: 19
# (3 returned, 13 numbers printed, 3 arrays written)
import numpy as np

STAGES = ("seed", "rosette", "flowering")


def projection_matrix():
    a = np.array([[0.45, 0.0, 9.0],
                  [0.08, 0.30, 0.6],
                  [0.00, 0.35, 0.40]])
    return a


def asymptotics(a):
    values, right = np.linalg.eig(a)
    k = np.argmax(values.real)
    lam = values[k].real
    w = np.abs(right[:, k].real)
    w /= w.sum()
    left_values, left = np.linalg.eig(a.T)
    v = np.abs(left[:, np.argmax(left_values.real)].real)
    v /= v @ w
    sensitivity = np.outer(v, w)
    elasticity = a * sensitivity / lam
    damping = lam / np.sort(np.abs(values))[-2]
    return lam, w, v, elasticity, damping


def dispersal_kernel(xy, mean_distance, stay):
    d = np.sqrt(((xy[:, None] - xy[None]) ** 2).sum(-1))
    k = np.exp(-d / mean_distance)
    np.fill_diagonal(k, 0)
    k = (1 - stay) * k / k.sum(axis=1, keepdims=True)
    k[np.diag_indices_from(k)] = stay
    return k


def one_year(n, a, kernel, capacity, rng):
    """n has shape (patches, stages) and integer entries."""
    seeds, rosettes, flowers = n.T
    crowd = np.minimum(1.0, capacity / np.maximum(rosettes + flowers, 1))

    new_seeds = rng.poisson(a[0, 2] * flowers)
    moved = np.zeros_like(seeds)
    for p, amount in enumerate(new_seeds):
        moved += rng.multinomial(amount, kernel[p])

    dormant = rng.binomial(seeds, a[0, 0])
    sprout = rng.binomial(seeds - dormant, a[1, 0] / (1 - a[0, 0]) * crowd)
    remain = rng.binomial(rosettes, a[1, 1])
    bolt = rng.binomial(rosettes - remain, a[2, 1] / (1 - a[1, 1]))
    again = rng.binomial(flowers, a[2, 2])
    clones = rng.poisson(a[1, 2] * flowers * crowd)
    return np.stack([dormant + moved, sprout + remain + clones, bolt + again], axis=1)


def simulate(n0, a, kernel, capacity, years, rng, p_fire=0.04):
    history = np.empty((years + 1, *n0.shape), dtype=np.int64)
    history[0] = n0
    for y in range(years):
        n = one_year(history[y], a, kernel, capacity, rng)
        fire = rng.random(len(n)) < p_fire
        n[fire, 1:] = 0
        history[y + 1] = n
    return history


def main():
    rng = np.random.default_rng(1971)
    a = projection_matrix()
    lam, w, v, elasticity, damping = asymptotics(a)
    print("growth rate", round(lam, 6), "damping ratio", round(damping, 4))
    print("stable distribution", dict(zip(STAGES, w.round(4).tolist())))
    print("largest elasticity", elasticity.max().round(4), "sum", elasticity.sum().round(6))

    xy = rng.uniform(0, 5, size=(9, 2))
    kernel = dispersal_kernel(xy, 0.8, 0.85)
    n0 = np.zeros((9, 3), dtype=np.int64)
    n0[:3] = [60, 12, 6]
    history = simulate(n0, a, kernel, capacity=120, years=60, rng=rng)

    adults = history[:, :, 1:].sum(axis=2)
    occupied = (adults > 0).sum(axis=1)
    total = adults.sum(axis=1)
    growth = total[1:] / np.maximum(total[:-1], 1)
    geometric = np.exp(np.mean(np.log(growth[growth > 0])))
    colonised = np.argmax(adults > 0, axis=0)
    extinct = np.count_nonzero((adults[:-1] > 0) & (adults[1:] == 0))

    print("patches occupied in the end:", occupied[-1], "local extinctions:", extinct)
    print("mean adults per occupied patch: {:.3f}".format(adults[adults > 0].mean()))
    print("geometric mean growth {:.5f}".format(geometric))
    late = adults[20:]
    late = late[:, np.ptp(late, axis=0) > 0]
    synchrony = np.corrcoef(late, rowvar=False)
    upper = synchrony[np.triu_indices(len(synchrony), 1)]
    print("synchrony: mean", upper.mean().round(4), "spread", upper.std().round(4))

    np.savetxt("adults.tsv", adults, fmt="%d", delimiter="\t")
    np.savez("population.npz", history=history, xy=xy)
    return lam, colonised, np.percentile(total, [5, 50, 95])


if __name__ == "__main__":
    main()
