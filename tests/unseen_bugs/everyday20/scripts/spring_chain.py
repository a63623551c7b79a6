"""Static displacement of a chain of masses on springs, single precision throughout
because the result is uploaded to the viewer as a float32 buffer."""
import numpy as np

G = 9.81


def stiffness_matrix(springs):
    n = len(springs)
    k = np.zeros((n, n), dtype=np.float32)
    for i, s in enumerate(springs):
        k[i, i] += s
        if i > 0:
            k[i - 1, i - 1] += s
            k[i - 1, i] -= s
            k[i, i - 1] -= s
    return k


def load_vector(masses, pull=0.0):
    f = np.zeros(len(masses))
    f[:] = masses * G
    f[-1] += pull
    return f


def displacement(springs, masses, pull):
    k = stiffness_matrix(springs)
    f = load_vector(masses, pull)
    u = np.linalg.solve(k, f)
    residual = np.abs(k @ u - f).max()
    return u, residual


def viewer_buffer(u):
    xy = np.stack([np.zeros_like(u), np.cumsum(np.ones_like(u)) + u], axis=1)
    return xy.ravel()


def main():
    springs = np.linspace(400, 900, 10, dtype=np.float32)
    masses = np.full(10, 0.25, dtype=np.float32)
    u, residual = displacement(springs, masses, pull=1.5)
    print("displacement (mm):", (u * 1000).round(2))
    print(f"largest residual below 1e-3: {bool(residual < 1e-3)}")
    buf = viewer_buffer(u)
    print(f"buffer: {buf.dtype}, {buf.nbytes} bytes for {len(u)} nodes")


if __name__ == "__main__":
    main()
