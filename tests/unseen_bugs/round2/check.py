"""Runs every program, plainly: the symptom must exist as it is and not with the fix (the edits of
answers.json). Each program has its own process, as some enable x64.

    check.py [NAME ...]                       as it is, and fixed
    check.py NAME --fixed-source FILE         the check of the fixed version on the program in FILE
                                              (the source after somebody's edit); exit status 0 if
                                              the symptom is gone and the program works
"""
import json, os, subprocess, sys, types, warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
ANSWERS = json.load(open(os.path.join(HERE, "answers.json")))


def module(name, text):
    m = types.ModuleType(name[:-3])
    m.__file__ = os.path.join(HERE, name)
    exec(compile(text, m.__file__, "exec"), m.__dict__)
    return m


def source(name):
    with open(os.path.join(HERE, name)) as f:
        return f.read()


def fixed(name):
    import _fixed
    return _fixed.module(os.path.join(HERE, name))


def run(m, lib, inputs=None):
    """-> (list of outputs as numpy arrays, list of dtype names) or the exception"""
    import numpy as np
    args = m.inputs() if inputs is None else inputs
    try:
        if lib == "onnx":
            import onnx, onnxruntime as ort
            ort.set_default_logger_severity(3)
            model = m.model()
            onnx.checker.check_model(model)
            session = ort.InferenceSession(model.SerializeToString())
            kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64}
            feeds = {i.name: args[i.name].astype(kinds.get(i.type, args[i.name].dtype)) for i in session.get_inputs()}
            outs = session.run(None, feeds)
        elif lib == "jax":
            import jax
            if hasattr(m, "fori_collect"):
                outs = m.main(*args)          # compiled loops inside: eagerly
            else:
                outs = jax.jit(m.main)(*args)
        else:
            outs = m.main(*args)
    except Exception as e:
        return e
    outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    dts = [str(o.dtype).replace("torch.", "") for o in outs]
    vals = []
    for o in outs:
        if lib == "torch":
            o = o.detach()
            o = o.float() if str(o.dtype) in ("torch.bfloat16", "torch.float16") else o
        o = np.asarray(o)
        vals.append(o.astype(np.float32) if o.dtype.name == "bfloat16" else o)
    return vals, dts


RAISES = {
    "numpy_causal_learn.py": (ValueError, "must not be negative"),
    "numpy_faceswap.py": (TypeError, "Cannot cast ufunc 'add' output"),
    "jax_jaxcfd.py": (TypeError, "float64[8,8]"),
    "jax_navix.py": (OverflowError, "too large"),
    "torch_diffrhythm2.py": (RuntimeError, "Float and Half"),
    "torch_sb3.py": (RuntimeError, "Double and Float"),
    "torch_heavyball.py": (RuntimeError, "BFloat16"),
    "onnx_detr.py": (Exception, "of operator (CumSum)"),
    "onnx_typecast.py": (Exception, "of operator (Reshape)"),
    "onnx_tensorrt.py": (Exception, "(tensor(float) and tensor(double)"),
}
TOLERANCE = {"torch_diffrhythm2.py": 5e-2, "torch_heavyball.py": 0.1, "jax_jaxcfd.py": 1e-3, "torch_sb3.py": 1e-3}


def same(name, r):
    """The values of r are those of our fixed version."""
    import numpy as np
    vals, _ = r
    want, _ = run(fixed(name), ANSWERS[name]["library"])
    tol = TOLERANCE.get(name, 1e-5)
    assert len(vals) == len(want), "other outputs"
    for v, w in zip(vals, want):
        assert v.shape == w.shape, "other shapes"
        assert np.allclose(v.astype(np.float64), w.astype(np.float64), rtol=tol, atol=tol), "other values"


def symptom(name, r, m, o):
    """True where the result r of module m shows the symptom, False where it is right, an
    AssertionError where it is wrong in another way; o is the module of the original."""
    import numpy as np
    a = ANSWERS[name]
    if name in RAISES:
        kind, text = RAISES[name]
        if isinstance(r, kind) and text in str(r):
            return True
        assert not isinstance(r, Exception), r
        assert all(np.isfinite(v.astype(np.float64)).all() for v in r[0]), "not finite"
        if name == "jax_jaxcfd.py":
            if any(d != "float32" for d in r[1]):
                return True
            grid = o.Grid((8, 8), (2 * np.pi / 8,) * 2)
            assert np.abs(np.asarray(o.divergence(r[0], grid))).max() < 1e-4, "not divergence-free"
        if name == "numpy_causal_learn.py":
            for k, s in zip((3, 5, 19), r[0][0]):
                assert abs(s - chi2(o.inputs()[0], k)) < 1e-6, "wrong statistic"
            return False
        if name == "onnx_typecast.py":
            import onnxruntime as ort
            want = ort.InferenceSession(o.patch_embed().SerializeToString()).run(None, o.inputs())
            assert np.allclose(want[0], r[0][0], atol=1e-6), "other values than before the conversion"
            return False
        if name == "torch_heavyball.py":
            assert r[0][0][-1] < r[0][0][0], "does not learn"
        same(name, r)
        return False
    assert not isinstance(r, Exception), r
    vals, dts = r
    if a["kind"] == "widening":
        if any(d != a["wanted"] for d in dts if "float" in d):
            return True
        ref = run(o, a["library"])
        for v, w in zip(vals, ref[0]):
            assert np.allclose(v, w, rtol=1e-2 if name == "numpy_scipy.py" else 1e-4, atol=1e-4), "other values"
        return False
    if name == "numpy_backsub.py":
        img = o.inputs()[0].astype(np.int64)
        want = [img[0]] + [np.clip(img[c] - np.rint(img[1] * f), 0, None) for c, f in ((2, 3.0), (3, 0.5))]
        return not (vals[0] == np.array(want)).all()
    if name == "numpy_nixpy.py":
        counts, trace = o.inputs()
        assert np.allclose(vals[1], trace[1:] * 2 + 0.5) and (vals[2] == counts[1:]).all(), "other values"
        return not np.allclose(vals[0], counts[1:] * 0.1)
    if name == "numpy_netcdftime.py":
        days = o.inputs()[0] + 0.5
        want = (days - np.floor(days)) * 86400 - vals[3] * 3600
        return bool((np.abs(vals[4] - want) > 2e-4).any())
    if name == "jax_numpyro.py":
        same(name, r)
        return m.fori_collect._cache_size() > 1
    if name == "jax_keras_core.py":
        if np.isnan(vals[0]).any():
            return True
        full = module(name, source(name).replace("mixed_float16", "float32"))
        assert np.allclose(run(full, "jax")[0][0], vals[0], atol=2e-2), "other values than in float32"
        return False
    if name == "jax_asi.py":
        counts, step_count, contexts, losses = map(np.asarray, o.inputs())
        want = counts.copy().astype(np.int64)
        for c, l in zip(contexts, losses):
            want[c] += np.isfinite(l)
        assert vals[2] == step_count + len(losses)
        return not (vals[1].astype(np.int64) == want).all()
    if name == "torch_cellxgene.py":
        assert "int" in dts[1]
        return not (vals[1] == o.inputs()[0].numpy()).all()
    if name == "torch_fairo.py":
        rate, v, want = np.array([0.5, -0.25, 1.0]), 0.0, []
        for k in range(8):
            v = 0.5 * rate + 0.5 * v if k else 0 * rate
            want.append(v)
        return not np.allclose(vals[1], want, rtol=2e-3, atol=1e-6)
    if name == "torch_dreambooth.py":
        start, end, ema = vals
        part = (ema - start) / (end - start)
        return not ((part > 0.01) & (part < 0.03)).all()
    if name == "onnx_onnxscript.py":
        s = o.inputs()["slot_mapping"]
        want = [s // 16, s % 16, (s // 16) % 8 == 3]
        return not all((v == w).all() for v, w in zip(vals, want))
    if name == "onnx_migraphx.py":
        if np.abs(vals[0][0, 1]).max() < 1e-3 or not np.isfinite(vals[0]).all():
            return True
        want = run(fixed(name), "onnx")[0][0]
        assert np.allclose(vals[0].astype(float), want.astype(float), atol=2e-2), "other values"
        return False
    raise KeyError(name)


def chi2(data, k):
    import collections
    import numpy as np
    total, groups = 0.0, collections.defaultdict(list)
    for row in data:
        groups[tuple(row[2:k])].append((row[0], row[1]))
    for pairs in groups.values():
        x, y = collections.Counter(p[0] for p in pairs), collections.Counter(p[1] for p in pairs)
        both = collections.Counter(pairs)
        for i in x:
            for j in y:
                e = x[i] * y[j] / len(pairs)
                total += (both[i, j] - e) ** 2 / e
    return total


def brief(r):
    if isinstance(r, Exception):
        return "%s: %s" % (type(r).__name__, " ".join(str(r).split())[-60:])
    v, d = r                                  # the dtypes, and the sums of the outputs
    return ", ".join(d)[:40] + ": " + " ".join("%.7g" % x.astype(float).sum() for x in v)[:60]


def answers_are_lines(name, m):
    a = ANSWERS[name]
    text = [l.strip() for l in source(name).split("\n")]
    for l in a["lines"] + a["weak_lines"] + [old for old, _ in a["fix"]]:
        assert l in text, "no such line: " + l
    if a["library"] == "onnx":
        g = m.model().graph
        names = {n.name for n in g.node} | {i.name for i in g.initializer}
        names |= {x for n in g.node for x in list(n.output) + list(n.input)}
        for n in a["nodes"] + a.get("weak_nodes", []):
            assert n in names, "no such node: " + n


def one(name, path=None):
    import numpy as np
    warnings.simplefilter("ignore")
    a = ANSWERS[name]
    o = module(name, source(name))
    if a["kind"] == "clean":
        m = o if path is None else module(name, open(path).read())
        r = run(m, a["library"])
        assert not isinstance(r, Exception), r
        assert r[1] == a["output_dtypes"], r[1]
        assert all(np.isfinite(v.astype(np.float64)).all() for v in r[0]), "not finite"
        return "clean: " + brief(r)
    if path is not None:
        m = module(name, open(path).read())
        f = run(m, a["library"])
        assert not symptom(name, f, m, o), "symptom still there: " + brief(f)
        return "%s | edited: %s" % (a["kind"], brief(f))
    answers_are_lines(name, o)
    r = run(o, a["library"])
    assert symptom(name, r, o, o), "no symptom: " + brief(r)
    m = fixed(name)
    f = run(m, a["library"])
    assert not symptom(name, f, m, o), "not fixed: " + brief(f)
    return "%s | as it is: %s | fixed: %s" % (a["kind"], brief(r), brief(f))


if __name__ == "__main__":
    args = sys.argv[1:]
    path = None
    if "--fixed-source" in args:
        i = args.index("--fixed-source")
        path = args[i + 1]
        del args[i:i + 2]
        assert len(args) == 1, "one NAME with --fixed-source"
    args = [n if n.endswith(".py") else n + ".py" for n in args]
    if os.environ.get("CHECK_ONE"):
        print(one(args[0], path))
        sys.exit()
    bad = 0
    for name in args or ANSWERS:
        command = [sys.executable, os.path.abspath(__file__), name] + (["--fixed-source", path] if path else [])
        p = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, CHECK_ONE="1"))
        ok = p.returncode == 0
        bad += not ok
        print("%-4s %-24s %s" % ("ok" if ok else "BAD", name, (p.stdout if ok else p.stderr.strip().split("\n")[-1]).strip()))
    print("%d programs, %d bad" % (len(args or ANSWERS), bad))
    sys.exit(bool(bad))
