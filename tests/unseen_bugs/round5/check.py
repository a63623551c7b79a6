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
            if hasattr(m, "NUM_BATCHES"):
                outs = m.main(*args)          # a Python loop over batches: eagerly
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
    "numpy_dicom2nifti.py": (OverflowError, "-1024"),
    "numpy_mdanalysis.py": (TypeError, "must be of type float32"),
    "numpy_basil.py": (OverflowError, "out of bounds for uint8"),
    "jax_matrax.py": (TypeError, "carry"),
    "torch_whisper.py": (RuntimeError, "same dtype"),
    "torch_refiners.py": (TypeError, "BFloat16"),
    "onnx_rknn.py": (Exception, "of Optype (Clip)"),
    "onnx_mmyolo.py": (Exception, "of Optype (Where)"),
}


def reference(name, o):
    """What is right, computed apart from the program where possible: a list of (values, rtol, atol),
    None where an output is not looked at."""
    import numpy as np
    i = o.inputs()
    if name == "numpy_superflux.py":
        mono = i[0].astype(float).mean(axis=1)
        index = np.arange(128) + 64 * np.arange(15)[:, None]
        spec = np.abs(np.fft.rfft(mono[index] / 32768 * np.hanning(128), axis=1))
        return [(mono, 0, 1), (np.r_[0, np.maximum(np.diff(spec, axis=0), 0).sum(axis=1)], 1e-2, 1e-2)]
    if name == "numpy_segmentation.py":
        p, want = i[0].astype(float), []
        for y in range(6):
            for x in range(8):
                for y2, x2 in ((y, x + 1), (y + 1, x)):
                    if y2 < 6 and x2 < 8:
                        want.append(np.sqrt(((p[y, x] - p[y2, x2]) ** 2).sum()))
        return [(np.array(want), 1e-6, 0), (run(fixed(name), "numpy")[0][1], 0, 0)]
    if name == "numpy_dicom2nifti.py":
        v = np.moveaxis(i[0].astype(int) - 1024, 0, -1)
        return [(v, 0, 0), (np.array([(v > 300).mean(), v.mean()]), 1e-6, 0)]
    if name == "numpy_mdanalysis.py":
        d = np.linalg.norm(i[0][:, [0, 2, 4]][:, :, None] - i[0][:, [1, 3, 5, 6]][:, None], axis=-1)
        return [(d.min(axis=(1, 2)), 1e-4, 0), (d.mean(axis=0), 1e-4, 0)]
    if name == "numpy_basil.py":
        rows = []
        for a, b, c in i[0]:
            bits = ["".join(reversed(format(int(v), "0%db" % n))) for v, n in ((a, 4), (b, 8), (c, 12))]
            text = "".join(bits)
            rows.append([int(text[k:k + 8][::-1], 2) for k in (0, 8, 16)])
        rows = np.array(rows)
        return [(rows, 0, 0), (np.array([rows.sum() & 255]), 0, 0)]
    if name == "numpy_influxdb.py":
        return [(np.sort(i[0]), 0, 0), (np.array([6]), 0, 0)]
    if name == "jax_fdtdx.py":
        e, h, trace = np.zeros(64), np.zeros(63), []
        dt = 0.5 * 2e-8 / 299792458.0
        f = 299792458.0 / 1.55e-6
        for n in range(400000, 400060):
            h = h + 0.5 * np.diff(e)
            e[1:-1] += 0.5 * np.diff(h)
            e[20] += np.cos(2 * np.pi * n * dt * f)
            trace.append(e[30])
        return [(e, 1e-5, 1e-5), (np.array(trace), 1e-5, 1e-5)]
    if name == "jax_jno.py":
        x = np.stack(i, axis=-1).astype(float)
        p = o.operator().params
        for k, l in enumerate(p):
            x = x @ np.asarray(l["w"]).astype(float) + np.asarray(l["b"]).astype(float)
            x = np.tanh(x) if k < len(p) - 1 else x
        return [(x[..., 0], 3e-2, 3e-2)]
    if name == "jax_diffractsim.py":
        n, extent, lam, z = 64, 4e-3, 632.8e-9, 0.8
        x = extent * (np.arange(n) - n // 2) / n
        e = (x[None] ** 2 + x[:, None] ** 2 < 0.7e-3 ** 2).astype(complex)
        f = np.fft.fftfreq(n, extent / n)
        h = np.exp(2j * np.pi * z * np.sqrt(1 / lam ** 2 - f[None] ** 2 - f[:, None] ** 2))
        return [(np.abs(np.fft.ifft2(np.fft.fft2(e) * h)) ** 2, 1e-2, 1e-2)]
    if name == "jax_matrax.py":
        m = np.array(o.CLIMBING)
        r = [m[a, b] for a, b in i[0]]
        return [(np.full(2, r[-1]), 0, 0), (np.array(sum(r)), 1e-6, 0), (np.array([[1.0, 1]] * 11 + [[0.0, 0]]), 0, 0)]
    if name == "jax_phiflow.py":
        out = []
        for axis in range(3):
            for off in (-1, 1):
                c = i[0].astype(int).copy()
                c[:, axis] = (c[:, axis] + off) % (2048, 2048, 1024)[axis]
                out.append(c)
        return [(np.stack(out), 0, 0)]
    if name == "jax_criteo.py":
        x, y, w = (v.astype(float) for v in i)
        z = x @ w - 1
        l = (np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))).reshape(4, -1)[:, :-1]
        return [(np.array(l.mean()), 2e-6, 0), (np.array(8191 * 3000), 0, 0)]
    if name == "torch_nanogpt.py":
        import torch
        torch.manual_seed(0)
        a = o.CausalSelfAttention(32, 2).double()
        angle = np.arange(64)[:, None] * (1 / 10000) ** (np.arange(0, 16, 2) / 16)
        c, s = np.cos(angle)[None, :, None], np.sin(angle)[None, :, None]
        rot = []
        for layer in (a.c_q, a.c_k):
            v = layer(i[0].double()).detach().numpy().reshape(1, 64, 2, 16)
            v = v / np.sqrt((v ** 2).mean(axis=-1, keepdims=True))
            x1, x2 = v[..., :8], v[..., 8:]
            rot.append(np.concatenate([x1 * c + x2 * s, -x1 * s + x2 * c], axis=-1))
        return [(rot[0], 1e-4, 1e-4), (np.einsum("bqhd,bkhd->bhqk", *rot), 1e-3, 1e-3)]
    if name == "torch_modalities.py":
        angle = np.arange(1200)[:, None] * 10000.0 ** -(np.arange(0, 16, 2) / 16)
        angle = np.concatenate([angle, angle], axis=1)
        return [None, (np.cos(angle), 0, 5e-3), (np.sin(angle), 0, 5e-3)]
    if name == "torch_megatron.py":
        p = np.exp(np.sort(i[0].double().numpy(), axis=1)[:, ::-1])
        c = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)
        return [((c <= 0.95).sum(axis=1) + 1, 0, 2), None]
    if name == "torch_kornia.py":
        n = np.arange(300.0)
        loose = n > 256
        d = i[0].float().numpy()[0, 0]
        points = np.stack([(n - 149.5) / 250 * d, (0 - 1.5) / 250 * d, d], axis=-1)
        return [(n, 0, 1.0 * loose), (points, 1e-4, np.where(loose, 1e-2, 1e-4)[:, None])]
    if name == "torch_whisper.py":
        return [(o.main(i[0].float()).numpy(), 1e-3, 2e-3)]
    if name == "torch_refiners.py":
        beta = np.linspace(8.5e-4 ** 0.5, 1.2e-2 ** 0.5, 1000) ** 2
        alpha = np.cumprod(1 - beta)
        t = np.linspace(0, 999, 11).round().astype(int)[1:][::-1]
        s = np.sqrt((1 - alpha) / alpha)
        s = np.r_[s[t], s[0]]
        x, noise = (v.double().numpy() for v in i)
        k = 1 / np.sqrt(s[:10, None, None] ** 2 + 1)
        return [(s, 2e-2, 1e-3), (k * x + k * s[:10, None, None] * noise, 3e-2, 5e-2)]
    from onnx import numpy_helper
    if name == "onnx_rknn.py":
        table = [numpy_helper.to_array(t) for t in o.exported().graph.initializer if t.name == "table"][0]
        return [(table[np.clip(i["position"].astype(int), 0, 15)], 0, 0)]
    if name == "onnx_mmyolo.py":
        mine = i["batch_inds"][None] == np.arange(2)[:, None]
        return [(np.where(mine[..., None], i["selected_dets"][None], 0), 0, 0), (np.where(mine, i["cls_inds"][None], -1), 0, 0)]
    if name == "onnx_ultralytics.py":
        s = 1 / (1 + np.exp(-i["logits"].astype(float))).reshape(-1)
        k = np.argsort(-s)[:4]
        want = np.concatenate([i["boxes"].astype(float)[k // 3], s[k][:, None], (k % 3)[:, None]], axis=1)
        return [(want, 2e-3, 2e-3)]
    if name == "onnx_onnxslim.py":
        v = {t.name: numpy_helper.to_array(t).astype(float) for t in o.exported().graph.initializer}
        x = np.pad(i["images"].astype(float)[0], ((0, 0), (1, 1), (1, 1)))
        y = np.zeros((6, 8, 8))
        for a in range(3):
            for b in range(3):
                y += np.einsum("oc,chw->ohw", v["conv.weight"][:, :, a, b], x[:, a:a + 8, b:b + 8])
        r = [v["bn." + k][:, None, None] for k in ("weight", "bias", "running_mean", "running_var")]
        return [(np.maximum((y - r[2]) / np.sqrt(r[3] + 1e-8) * r[0] + r[1], 0)[None], 2e-2, 2e-2)]
    if name == "onnx_modelopt.py":
        w = np.random.default_rng(1).normal(size=(8, 3)) * 1e-4
        return [(i["activation"].astype(float) @ w, 0, 0.2)]
    if name == "onnx_libreyolo.py":
        _, inits = o.head()
        v = {t.name: numpy_helper.to_array(t).astype(float) for t in inits}
        f = i["features"].astype(float)
        sig = lambda t: 1 / (1 + np.exp(-t))
        want = np.concatenate([600 * sig(f @ v["reg.weight"]), sig(f @ v["cls.weight"])], axis=-1)
        return [(want, 0, np.array([12.0] * 4 + [0.05] * 3))]
    raise KeyError(name)


def agrees(name, vals, o):
    import numpy as np
    want = reference(name, o)
    assert len(vals) == len(want), "other outputs"
    for v, w in zip(vals, want):
        if w is not None:
            w, rtol, atol = w
            exact = v.dtype.kind in "iu" and w.dtype.kind in "iu" and not rtol and not np.any(atol)
            if v.shape != w.shape or not ((v == w).all() if exact else (np.abs(v.astype(np.float64) - w) <= atol + rtol * np.abs(w)).all()):
                return False
    return True


def symptom(name, r, m, o):
    """True where the result r of module m shows the symptom, False where it is right, an
    AssertionError where it is wrong in another way; o is the module of the original."""
    a = ANSWERS[name]
    if name in RAISES:
        kind, text = RAISES[name]
        if isinstance(r, kind) and text in str(r):
            return True
        assert not isinstance(r, Exception), r
        assert agrees(name, r[0], o), "other values"
        return False
    assert not isinstance(r, Exception), r
    if a["kind"] == "widening":
        if any(d != a["wanted"] for d in r[1] if "float" in d):
            return True
        assert agrees(name, r[0], o), "other values"
        return False
    return not agrees(name, r[0], o)


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
