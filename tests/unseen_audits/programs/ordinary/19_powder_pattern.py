"""Powder diffraction pattern of rock salt and refinement of its cell.

Structure factors are summed over the atoms for all reflections, multiplicities come from np.unique, the
pattern is broadened and given Poisson noise, peaks are found, indexed and used to refine the lattice constant.
"""
# outputs: 37
# (3 returned, 32 numbers printed, 2 arrays written)
import numpy as np

WAVELENGTH = 1.5406
CELL = 5.6402


def atoms():
    fcc = np.array([[0, 0, 0], [0, .5, .5], [.5, 0, .5], [.5, .5, 0]])
    sodium = fcc
    chlorine = (fcc + [.5, 0, 0]) % 1.0
    xyz = np.vstack([sodium, chlorine])
    species = np.repeat(np.array([0, 1], dtype=np.int8), 4)
    return xyz, species


def form_factor(species, s2):
    """Two-Gaussian form factors, s2 = (sin theta / lambda)^2; shape (reflections, atoms)."""
    a = np.array([[6.5, 3.5], [10.2, 7.8]])
    b = np.array([[3.1, 0.4], [7.4, 0.8]])
    f = (a[None] * np.exp(-b[None] * s2[:, None, None])).sum(axis=2)
    debye = np.exp(-np.array([1.7, 1.4]) * s2[:, None])
    return (f * debye)[:, species]


def reflections(limit):
    r = np.arange(-limit, limit + 1)
    hkl = np.stack(np.meshgrid(r, r, r, indexing="ij"), axis=-1).reshape(-1, 3)
    n = (hkl ** 2).sum(axis=1)
    keep = (n > 0) & (WAVELENGTH * np.sqrt(n) / (2 * CELL) < np.sin(np.deg2rad(55)))
    return hkl[keep], n[keep]


def structure_factors(hkl, n, xyz, species):
    phase = np.exp(2j * np.pi * (hkl @ xyz.T))
    f = form_factor(species, n / (4 * CELL ** 2))
    return np.einsum("ra,ra->r", f, phase)


def powder_lines(n, structure):
    total, inverse, multiplicity = np.unique(n, return_inverse=True, return_counts=True)
    intensity = np.zeros(total.size)
    np.add.at(intensity, inverse, np.abs(structure) ** 2)
    theta = np.arcsin(WAVELENGTH * np.sqrt(total) / (2 * CELL))
    lp = (1 + np.cos(2 * theta) ** 2) / (np.sin(theta) ** 2 * np.cos(theta))
    intensity *= lp
    strong = intensity > 1e-6 * intensity.max()
    return total[strong], 2 * np.rad2deg(theta[strong]), intensity[strong], multiplicity[strong]


def pattern(two_theta, position, intensity, width=0.25, eta=0.4):
    x = (two_theta[:, None] - position) / width
    gauss = np.exp(-4 * np.log(2) * x ** 2)
    lorentz = 1 / (1 + 4 * x ** 2)
    return ((1 - eta) * gauss + eta * lorentz) @ intensity


def find_peaks(x, y, window=8, level=6.0):
    blocks = y[: y.size // 50 * 50].reshape(-1, 50)
    middle = x[: y.size // 50 * 50].reshape(-1, 50).mean(axis=1)
    base = np.interp(x, middle, np.percentile(blocks, 20, axis=1))
    smooth = np.convolve(y - base, np.ones(3) / 3, mode="same")
    local = np.lib.stride_tricks.sliding_window_view(np.pad(smooth, window, constant_values=-np.inf),
                                                     2 * window + 1).max(axis=1)
    k = np.flatnonzero((smooth == local) & (smooth > level * np.sqrt(base)))
    centres = []
    for i in k:
        part = slice(max(i - 4, 0), i + 5)
        w = np.clip(y[part] - base[part], 0, None)
        centres.append(np.average(x[part], weights=w))
    return np.array(centres), smooth[k]


def main():
    xyz, species = atoms()
    hkl, n = reflections(5)
    structure = structure_factors(hkl, n, xyz, species)
    total, position, intensity, multiplicity = powder_lines(n, structure)
    relative = 100 * intensity / intensity.max()
    print("reflections", len(hkl), "lines", total.size, "forbidden", np.count_nonzero(np.abs(structure) < 1e-9))
    print("   N  mult    angle   intensity")
    for row in zip(total[:6], multiplicity, position, relative):
        print("%4d %5d %8.3f %11.3f" % row)

    rng = np.random.default_rng(1913)
    two_theta = np.arange(20.0, 105.0, 0.1)
    ideal = 40 + 300 * np.exp(-two_theta / 25) + 9000 * pattern(two_theta, position, intensity / intensity.max())
    counts = rng.poisson(ideal).astype(np.int32)
    peaks, height = find_peaks(two_theta, counts.astype(float))

    sin2 = np.sin(np.deg2rad(peaks / 2)) ** 2
    guess = np.rint(sin2 * 4 * 5.6 ** 2 / WAVELENGTH ** 2).astype(int)
    indexed = np.isin(guess, total)
    slope, residual, *_ = np.linalg.lstsq(guess[indexed, None].astype(float), sin2[indexed], rcond=None)
    cell = WAVELENGTH / (2 * np.sqrt(slope[0]))
    print("peaks found", peaks.size, "indexed", indexed.sum(), "cell", format(cell, ".5f"))

    r_factor = np.abs(counts - ideal).sum() / counts.sum()
    print("R factor", round(float(r_factor), 5), "counts", counts.sum())
    np.savetxt("pattern.xy", np.column_stack([two_theta, counts]), fmt=["%.2f", "%d"])
    np.save("structure.npy", structure)
    return peaks, height, guess


if __name__ == "__main__":
    main()
