"""Run every variant of every program and compare it with `main`.

    python check.py [program ...]

Conventions: `jax.jit(jax_main)(*args)`, `torch.compile(torch_main)(*tensors)` (arrays -> torch.from_numpy, scalars as
they are), `numba.njit(numba_main)(*args)`; no static arguments are needed (sizes are keyword defaults).  Numba runs in
the interpreter of NUMBA_PYTHON.  A result agrees if |a - b| <= TOLERANCE * (|b| + max|b|), array by array; NaN/inf must be in the
same places.  One line a program: NumPy time (median of 5), then the state of each variant and its time (median of 5,
after compilation; OpenBLAS and OpenMP get one thread unless set).
--no-torch (--no-jax, --no-numba, --no-numpy) skips a variant; --eager runs the torch variant uncompiled.
"""
import importlib
import os
import subprocess
import sys
import time

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBA_PYTHON = os.environ.get("NUMBA_PYTHON", sys.executable)


def as_tuple(r):
    return tuple(np.asarray(v) for v in (r if isinstance(r, (tuple, list)) else (r,)))


def differ(ref, got, tol):
    if len(ref) != len(got):
        return f"{len(got)} results, not {len(ref)}"
    for i, (b, a) in enumerate(zip(ref, got)):
        if a.shape != b.shape:
            return f"result {i}: shape {a.shape}, not {b.shape}"
        a, b = a.astype(np.float64), b.astype(np.float64)
        fin = np.isfinite(b)
        if not np.array_equal(a[~fin], b[~fin], equal_nan=True) or not np.isfinite(a[fin]).all():
            return f"result {i}: NaN or inf differ"
        if fin.any():
            err = np.abs(a[fin] - b[fin]) / (np.abs(b[fin]) + np.abs(b[fin]).max() + 1e-300)
            if err.max() > tol:
                return f"result {i}: error {err.max():.2e} > {tol:.1e}"
    return ""


def median_ms(f, n=5):
    ts = []
    for _ in range(n):
        t = time.perf_counter()
        f()
        ts.append(time.perf_counter() - t)
    return sorted(ts)[n // 2] * 1e3


def block(r):
    for v in r if isinstance(r, (tuple, list)) else (r,):
        v.block_until_ready()


def one(name, variants):
    mod = importlib.import_module(name)
    args = mod.inputs(np.random.default_rng(0))
    keep = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    ref = as_tuple(mod.main(*args))
    for a, k in zip(args, keep):
        assert not isinstance(a, np.ndarray) or np.array_equal(a, k), "main changes its arguments"
    out = []
    if "numpy" in variants:
        out.append(f"numpy {median_ms(lambda: mod.main(*args)):.2f} ms")
    for v in variants:
        if v == "numpy":
            continue
        try:
            fn = getattr(mod, v + "_main")
            if fn is None:
                out.append(f"{v} none")
                continue
            if v == "jax":
                import jax
                f = jax.jit(fn)
                got = as_tuple(f(*args))
                run = lambda: block(f(*args))
            elif v == "torch":
                import torch
                targs = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
                f = fn if "--eager" in sys.argv else torch.compile(fn)
                with torch.no_grad():
                    r = f(*targs)
                got = tuple(t.numpy() for t in (r if isinstance(r, (tuple, list)) else (r,)))
                run = lambda: f(*targs)
            else:
                import numba
                f = numba.njit(fn)
                got = as_tuple(f(*args))
                run = lambda: f(*args)
            bad = differ(ref, got, mod.TOLERANCE)
            out.append(f"{v} FAIL ({bad})" if bad else f"{v} ok {median_ms(run):.2f}")
        except Exception as e:
            out.append(f"{v} FAIL ({type(e).__name__}: {' '.join(str(e).split())[:int(os.environ.get('MSG', 300))]})")
    return ", ".join(out)


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    flags = [a for a in sys.argv[1:] if a.startswith("--")]
    sys.path.insert(0, HERE)
    if "--one" in flags:
        variants = [a for a in ("numpy", "jax", "torch", "numba") if "--" + a in flags]
        print(one(names[0], variants))
        return 0
    if not names:
        names = sorted(f[:-3] for f in os.listdir(HERE) if f.endswith(".py") and "_" in f)
    failed = 0
    for name in names:
        parts = []
        for py, vs in ((sys.executable, ["--numpy", "--jax", "--torch"]), (NUMBA_PYTHON, ["--numba"])):
            vs = [v for v in vs if "--no-" + v[2:] not in flags]
            if not vs:
                continue
            r = subprocess.run([py, __file__, name, "--one", *vs, *flags], capture_output=True, text=True, cwd=HERE)
            parts.append(r.stdout.strip() or "FAIL " + " ".join(r.stderr.split())[-300:])
        line = ", ".join(parts)
        failed += "FAIL" in line
        print(f"{name:28s} {line}", flush=True)
    print("all pass" if not failed else f"{failed} of {len(names)} programs FAIL")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
