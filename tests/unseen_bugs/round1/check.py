"""Runs every program, plainly: the symptom must exist as it is and not with the fix (the edits
of answers.json). Each program has its own process, as some enable x64. Usage: check.py [name...]"""
import importlib.util, json, os, subprocess, sys, warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
ANSWERS = json.load(open(os.path.join(HERE, "answers.json")))


def load(name):
    spec = importlib.util.spec_from_file_location(name[:-3], os.path.join(HERE, name))
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    return m


def run(fn, m, lib):
    """-> (list of outputs as float64/ints numpy arrays, list of dtype names) or the exception"""
    import numpy as np
    try:
        if lib == "onnx":
            import onnx, onnxruntime as ort
            ort.set_default_logger_severity(3)
            model = fn()
            onnx.checker.check_model(model)
            outs = ort.InferenceSession(model.SerializeToString()).run(None, m.inputs())
        elif lib == "jax":
            import jax
            outs = jax.jit(fn)(*m.inputs())
        else:
            outs = fn(*m.inputs())
    except Exception as e:
        return e
    outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    dts = [str(o.dtype).replace("torch.", "") for o in outs]
    vals = []
    for o in outs:
        if lib == "torch":
            o = o.float() if str(o.dtype) in ("torch.bfloat16", "torch.float16") else o
        o = np.asarray(o)
        vals.append(o.astype(np.float32) if o.dtype.name == "bfloat16" else o)
    return vals, dts


def is_raise(r, kind, text):
    return isinstance(r, kind) and text in str(r)


def symptom(name, r, m):
    """True where the result r shows the symptom, False where it is right."""
    import numpy as np
    a = ANSWERS[name]
    if a["kind"] == "raise":
        kind, text = {
            "numpy_tiledb.py": (OverflowError, "too large to convert to C long"),
            "jax_jaxmd.py": (TypeError, "n_pos has type int32[]"),
            "jax_sparsejac.py": (TypeError, "tangent dtype float32"),
            "torch_onetrainer.py": (RuntimeError, "scalar type"),
            "torch_d2l.py": (RuntimeError, "double != float"),
            "torch_apex.py": (RuntimeError, "without overflow"),
            "onnx_ort_lrn.py": (Exception, "(tensor(float) and tensor(double) in node (Add_20)"),
            "onnx_pytorch_cast.py": (Exception, "(tensor(double) and tensor(float) in node (Div_19)"),
            "onnx_jax2onnx_concat.py": (Exception, "(tensor(int32) and tensor(double) in node (concat_0)"),
        }[name]
        if is_raise(r, kind, text):
            return True
        assert not isinstance(r, Exception), r
        assert all(np.isfinite(v.astype(np.float64)).all() for v in r[0]), "not finite"
        if name == "jax_sparsejac.py":
            import jax
            want = jax.jacfwd(m.residual)(*m.inputs())
            assert np.allclose(want, r[0][0])
        if name == "torch_d2l.py":
            assert np.abs(r[0][0].ravel() - m.TRUE_W).max() < 0.1 and set(r[1]) == {"float32"}
        if name == "numpy_tiledb.py":
            assert (r[0][0] == m.inputs()[0]).all()
        if name == "onnx_jax2onnx_concat.py":
            t = np.array([1, 2, 3, *np.array([1.1, 2.2, 3.3], np.float32).astype(float)])
            assert np.allclose((m.inputs()["in_0"] * t).sum(), r[0][0])
        return False
    assert not isinstance(r, Exception), r
    vals, dts = r
    if a["kind"] == "widening":
        floats = [d for d in dts if "float" in d]
        return any(d != a["wanted"] for d in floats)
    if name == "numpy_simplecv.py":
        g = m.Image(*m.inputs())._gray.astype(int)
        return not (vals[0] == g[:, 4] - g[:, 10]).all()
    if name == "numpy_nitime.py":
        return not np.allclose(vals[0], [5.5, 1.375, -9.0])
    if name == "numpy_yirgacheffe.py":
        area, hab = m.inputs()
        want = (np.clip(hab, 0, 1) * area).astype(np.float64).sum()
        return abs(float(vals[0]) - want) / want > 1e-12
    if name == "numpy_pylake.py":
        t, wave, _ = m.inputs()
        start = t.reshape(-1, 5)[:, 0].reshape(-1, 4).T
        return not (vals[0].astype(object) == start.astype(object)).all()
    if name == "jax_transformers.py":
        return dts[0] != "float32" or (vals[0] == vals[1]).mean() > 0.5
    if name == "jax_take_along_axis.py":
        return not (vals[0] == np.take_along_axis(np.asarray(m.inputs()[1]), vals[1].astype(int), 1)).all()
    if name == "torch_llm_recipes.py":
        h, pos = m.inputs()
        f = 1 / 10000.0 ** (np.arange(0, 64, 2) / 64)
        want = np.cos(np.concatenate([pos.numpy().T * f] * 2, -1))
        return np.abs(vals[1][0] - want).max() > 1e-2
    if name == "torch_diffusers.py":
        b = ((m.inputs()[0][:, 3:] * 0.5 + 0.5).clamp(0, 1) * 255).round().numpy().astype(int)
        return not (vals[1] == b[:, 1] * 256 + b[:, 2]).all()
    if name == "onnx_common_float16.py":
        return bool(np.isnan(vals[0]).any())
    if name == "onnx_qlinear_matmul.py":
        q, i = m.QUANT, m.inputs()
        y = (i["a"].astype(int) - q["a_zero_point"]) @ (i["b"].astype(int) - q["b_zero_point"])
        y = np.rint(y * (q["a_scale"] * q["b_scale"] / q["y_scale"])) + q["y_zero_point"]
        return bool((np.abs(vals[0].astype(int) - np.clip(y, 0, 255)) > 1).any())
    if name == "onnx_lightgbm.py":
        want = sum(np.where(m.FEATURES[:, c] <= t, y, n) for c, t, y, n in m.STUMPS)
        return bool((np.abs(want - vals[0].ravel()) > 1e-6).any())
    raise KeyError(name)


def brief(r):
    if isinstance(r, Exception):
        return "%s: %s" % (type(r).__name__, " ".join(str(r).split())[-60:])
    v, d = r
    return ", ".join(d) + " " + ", ".join("%.9g" % float(x.ravel()[0]) for x in v)


def one(name):
    import numpy as np
    warnings.simplefilter("ignore")
    a = ANSWERS[name]
    m = load(name)
    fn = m.model if a["library"] == "onnx" else m.main
    r = run(fn, m, a["library"])
    if a["kind"] == "clean":
        assert not isinstance(r, Exception), r
        assert r[1] == a["output_dtypes"], r[1]
        assert all(np.isfinite(v.astype(np.float64)).all() for v in r[0])
        return "clean: " + brief(r)
    text = [l.strip() for l in open(os.path.join(HERE, name))]
    for l in a["lines"] + a["weak_lines"] + [o for o, _ in a["fix"]]:
        assert l in text, "no such line: " + l
    if a["library"] == "onnx":
        g = fn().graph
        names = {n.name for n in g.node} | {i.name for i in g.initializer} | {o for n in g.node for o in n.output}
        for n in a["nodes"] + a.get("weak_nodes", []):
            assert n in names, "no such node: " + n
    assert symptom(name, r, m), "no symptom: " + brief(r)
    fixed = m.fixed_model if a["library"] == "onnx" else m.fixed_main
    f = run(fixed, m, a["library"])
    assert not symptom(name, f, m), "not fixed: " + brief(f)
    return "%s | as it is: %s | fixed: %s" % (a["kind"], brief(r), brief(f))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        print(one(sys.argv[2]))
        sys.exit()
    bad = 0
    for name in sys.argv[1:] or ANSWERS:
        p = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True)
        ok = p.returncode == 0
        bad += not ok
        print("%-4s %-26s %s" % ("ok" if ok else "BAD", name, (p.stdout if ok else p.stderr.strip().split("\n")[-1]).strip()))
    print("%d programs, %d bad" % (len(sys.argv[1:] or ANSWERS), bad))
    sys.exit(bool(bad))
