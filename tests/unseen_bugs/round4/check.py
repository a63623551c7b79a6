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
    sys.modules[m.__name__] = m           # flax's and dataclasses' annotations look it up
    exec(compile(text, m.__file__, "exec"), m.__dict__)
    return m


def source(name):
    with open(os.path.join(HERE, name)) as f:
        return f.read()


def fixed(name):
    import _fixed
    return module("fixed_" + name, _fixed.source(os.path.join(HERE, name)))


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
            kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
                     "tensor(int32)": np.int32, "tensor(int64)": np.int64}
            feeds = {i.name: args[i.name].astype(kinds.get(i.type, args[i.name].dtype)) for i in session.get_inputs()}
            outs = session.run(None, feeds)
        elif lib == "jax":
            import jax
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
    "numpy_ascat.py": (OverflowError, "out of bounds for uint8"),
    "numpy_flox.py": (ValueError, "float NaN to integer"),
    "jax_gymnax.py": (TypeError, "lax.select requires arguments to have the same dtypes"),
    "torch_oucml.py": (RuntimeError, "double != float"),
    "torch_cs224n.py": (RuntimeError, "expected scalar type Float but found Double"),
    "torch_nexusquant.py": (RuntimeError, "Expected query, key, and value to have the same dtype"),
    "onnx_radeon.py": (Exception, "of operator (Resize)"),
    "onnx_llmexport.py": (Exception, "(Tind) of Optype (Slice)"),
    "onnx_paddle2onnx.py": (Exception, "of Optype (Clip)"),
}


def close(a, b, tol):
    import numpy as np
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return a.shape == b.shape and np.allclose(a, b, rtol=tol, atol=tol)


def same(name, r, tol):
    """The values of r are those of our fixed version."""
    want, _ = run(fixed(name), ANSWERS[name]["library"])
    assert len(r[0]) == len(want), "other outputs"
    for v, w in zip(r[0], want):
        assert close(v, w, tol), "other values"


def initializers(model):
    from onnx import numpy_helper
    return {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}


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
    vals, dts = r
    ins = o.inputs()
    if name == "jax_haiku.py":
        if any(d != "float32" for d in dts):
            return True
        x = np.asarray(ins[1], np.float64)
        for i in range(3):
            b, w = vals[1 + 2 * i].astype(np.float64), vals[2 + 2 * i].astype(np.float64)
            assert 0.5 < w.std() * np.sqrt(len(w)) < 1.2 and close(b, 0.1 + 0 * b, 1e-6), "other initialisation"
            x = x @ w + b
            x = np.maximum(x, 0) if i < 2 else x
        assert close(vals[0], x, 1e-4), "other outputs"
        return False
    if name == "jax_gpjax.py":
        if any(d != "float32" for d in dts):
            return True
        ref = run(o, "jax")
        for v, w in zip(vals, ref[0]):
            assert close(v, w, 1e-4), "other values"
        return False
    if name == "numpy_lazyflow.py":
        scaled = ins[0] * np.float32(255)
        d = np.abs(np.trunc(scaled).astype(np.int64) - np.rint(scaled).astype(np.int64)).max(axis=(1, 2))
        assert len(vals) == 2 and vals[0].shape == d.shape, "other outputs"
        return not ((vals[0] == d).all() and (vals[1] == 0).all())
    if name == "numpy_seisgo.py":
        data, start = ins
        stds, _, windows = o.cut_trace_make_stat(o.Trace(data, start, 20.0), 30.0, 5.0)
        keep = stds < 12.0
        times = start + 5.0 * np.arange(len(stds))[keep]
        if vals[3].shape != times.shape or np.abs(vals[3] - times).max() > 1e-3:
            return True
        spectra = np.abs(np.fft.rfft(windows[keep] * np.hanning(600), axis=1))
        for v, w in zip(vals, o.substack(times, spectra, 60.0)):
            assert close(v, w, 1e-4), "other substacks"
        return False
    if name == "numpy_imgaug.py":
        photos, depth = (np.array(o.build().augment_images(list(x))) for x in ins)
        assert dts[0] == "uint8" and (vals[0] == photos).all(), "other photographs"
        return dts[1] != "float32" or not close(vals[1], depth, 1e-6)
    if name == "numpy_ascat.py":
        records = np.frombuffer(ins[0].tobytes(), o.RECORD)
        valid = records["SIGMA0"] != np.iinfo(np.int32).min
        for v, (new, old, dtype, factor), d in zip(vals, o.FIELDS, dts):
            assert close(v[valid], records[old][valid] * (factor or 1), 1e-4), new
            missing = v[~valid].astype(np.float64)
            assert (missing == missing[0]).all() and not np.isin(missing[0], v[valid]), new
        assert vals[7][0] == valid.sum()
        return False
    if name == "numpy_tomopy.py":
        ref = run(o, "numpy")[0]
        assert dts[0] == "uint8" and all(close(v, w, 1e-9) for v, w in zip(vals, ref)), "other values"
        return dts[1] != "uint16"
    if name == "numpy_flox.py":
        rain, gauges, regions, expected = ins
        for k, label in enumerate(expected):
            at = regions == label
            assert (vals[1][:, k] == gauges[:, at].sum(1)).all() and (vals[2][:, k] == at.sum()).all(), "sums"
            if at.any():
                assert close(vals[3][:, k], rain[:, at].max(1), 1e-6) and (vals[4][:, k] == gauges[:, at].max(1)).all()
            else:
                assert np.isnan(vals[3][:, k]).all() and np.isnan(vals[4][:, k]).all(), "not NaN"
        assert "int" in dts[1] and "int" in dts[2] and dts[3] == "float32" and dts[4] == "float64", dts
        return False
    if name == "jax_te.py":
        if any(d != "bfloat16" for d in dts):
            return True
        x, p = np.asarray(ins[1]).astype(np.float64), [v.astype(np.float64) for v in vals[1:]]
        for i in (0, 5):
            scale, b1, w1, b2, w2 = p[i:i + 5]
            assert 0.1 < w1.std() < 0.4 and 0.1 < w2.std() < 0.4, "other initialisation"
            y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6) * scale
            h = y @ w1 + b1
            h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h ** 3)))
            x = x + h @ w2 + b2
        assert close(vals[0], x, 0.1), "other outputs"
        return False
    if name == "jax_furax.py":
        if not (np.isfinite(vals[1]) and abs(vals[1] / 200 - 1) < 1e-3 and abs(vals[2] / 2 - 1) < 1e-3):
            return True
        n, t = 512, np.arange(512) / 200.0
        f = np.arange(n // 2 + 1) * 200.0 / n
        w = np.concatenate([[0], 1 / (0.25 * (1 + (f[1:] / 1.5) ** -2))])
        signal = np.asarray(ins[0], np.float64) * np.cos(4 * 2 * np.pi * 2.0 * t)
        assert close(vals[0], np.fft.irfft(np.fft.rfft(signal) * w, n=n), 2e-3), "other values"
        return False
    if name == "jax_flaxchat.py":
        import jax
        params = o.init_params(ins[0], o.CONFIG)
        grads = jax.vmap(lambda b: jax.grad(o.loss_fn)(params, b)["head"])(ins[1])
        want = np.asarray(grads).astype(np.float64).mean(0)
        assert dts[3] == "bfloat16" and 2.5 < vals[0] < 3.5, "other results"
        return float(np.abs(vals[2] - want).max() / np.abs(want).max()) > 0.02
    if name == "jax_gymnax.py":
        same(name, r, 1e-6)
        assert vals[2][4] and not vals[2][:4].any(), "the episode has five steps"
        return False
    if name == "torch_oucml.py":
        assert close(vals[0][:, 0], [2.0, -3.4], 1e-2) and close(vals[1], [4.2], 1e-2), "not learned"
        return False
    if name == "torch_cs224n.py":
        same(name, r, 1e-4)
        assert vals[0][-1] < vals[0][0] and vals[1] > 0.8, "not learned"
        return False
    if name == "torch_nexusquant.py":
        same(name, r, 5e-2)
        return False
    if name == "torch_musubi.py":
        t = vals[2][:-1].astype(np.float64) * 1000
        args = t[:, None] * np.exp(-np.log(10000) * np.arange(8) / 8)
        assert close(vals[2], o.get_flux_sigmas_from_mu(10, 5.0).numpy(), 1e-6), "other schedule"
        return not close(vals[1], np.concatenate([np.cos(args), np.sin(args)], -1), 2e-3)
    if name == "torch_lightning.py":
        weight, bias, features, target = (x.numpy().astype(np.float64) for x in ins)
        want = ((features @ weight + bias >= 0) == target).mean()
        assert close(vals[1], want, 1e-6) and vals[2] == len(target), "other values"
        return not close(vals[0], want, 1e-6)
    if name == "torch_depthcharge.py":
        tokens = ins[0]
        embedded = o.build(o.CONFIG).token_encoder(tokens).detach().double().numpy()
        term = 1 / (2 * np.pi) * 1e5 ** (np.arange(8) / 7)
        phase = np.arange(300)[:, None] / term
        want = embedded + np.concatenate([np.sin(phase), np.cos(phase)], -1)
        error = np.abs(vals[0] - want).max()
        if error > 0.05:
            return True
        same(name, r, 3e-2)
        return False
    if name == "onnx_vision.py":
        import math
        h, w = ins["image"].shape[2:]
        s = min(16 / min(h, w), 96 / max(h, w))
        want = (math.floor(h * s), math.floor(w * s))
        assert vals[0].shape[2:] == tuple(vals[1]), "size and image differ"
        return tuple(vals[1]) != want
    if name == "onnx_radeon.py":
        full = module(name, source(name).replace('"half": True', '"half": False'))
        assert close(run(full, "onnx")[0][0], vals[0], 2e-2), "other values than in float32"
        return False
    if name == "onnx_llmexport.py":
        p, x = initializers(o.model()), ins["hidden_states"].astype(np.float64)
        x = x + p["model.embed_positions.weight"][ins["position_ids"]]
        up = x @ p["model.layers.27.mlp.up_proj.weight"]
        x = x + (up / (1 + np.exp(-up))) @ p["model.layers.27.mlp.down_proj.weight"]
        x = x[-1:]
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * p["model.norm.weight"]
        assert close(vals[0], x @ p["lm_head.weight"], 1e-4), "other logits"
        return False
    if name == "onnx_paddle2onnx.py":
        p = initializers(o.model())
        x = np.clip(ins["x"] * 0.01, -2.5, ins["limit"])
        x = np.clip(x @ p["hidden.w_0"] + p["hidden.b_0"], 0, 6)
        assert close(vals[0], x @ p["logits.w_0"] + p["logits.b_0"], 1e-4), "other logits"
        return False
    if name == "onnx_finn.py":
        p = initializers(o.exported())
        want = (ins["now"] - p["event_times"][ins["event_ids"]]) / 60
        if not close(vals[0], want, 1e-4):
            return True
        assert close(vals[1], np.tanh(want @ p["fc.weight"]), 1e-3), "other scores"
        return False
    if name == "onnx_openvino.py":
        q = ins["query"].astype(np.float64)
        q /= np.sqrt((q ** 2).sum(-1, keepdims=True) + 1e-6)
        phase = ins["position_ids"][:, None] / 1e6 ** (np.arange(8) / 8)
        phase = np.concatenate([phase, phase], -1)
        want = q * np.cos(phase) + np.concatenate([-q[..., 8:], q[..., :8]], -1) * np.sin(phase)
        assert vals[0].shape == want.shape, "other shape"
        return float(np.abs(vals[0] - want).max()) > 5e-3
    raise KeyError(name)


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
        m = o if path is None else module("edited_" + name, open(path).read())
        r = run(m, a["library"])
        assert not isinstance(r, Exception), r
        assert r[1] == a["output_dtypes"], r[1]
        assert all(np.isfinite(v.astype(np.float64)).all() for v in r[0]), "not finite"
        return "clean: " + brief(r)
    if path is not None:
        m = module("edited_" + name, open(path).read())
        f = run(m, a["library"])
        assert not symptom(name, f, m, o), "symptom still there: " + brief(f)
        return "%s | edited: %s" % (a["kind"], brief(f))
    answers_are_lines(name, o)
    r = run(o, a["library"])
    assert symptom(name, r, o, o), "no symptom: " + brief(r)
    m = fixed(name)
    f = run(m, a["library"])
    assert not symptom(name, f, m, o), "not fixed: " + brief(f)
    call = o.fixed_model if a["library"] == "onnx" else lambda: o.fixed_main(*o.inputs())
    call()
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
