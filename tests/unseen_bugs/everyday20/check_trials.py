"""Shows by ordinary means (no tool) that the symptoms of trials.json exist and go with the edits.

python check_trials.py
"""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent / "trials"
TRIALS = json.loads((HERE.parent / "trials.json").read_text())
ENV = dict(os.environ, JAX_PLATFORMS="cpu", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
bad = 0


def say(ok, what):
    global bad
    bad += not ok
    print("ok  " if ok else "FAIL", what)


def run(args, cwd):
    r = subprocess.run([sys.executable, *args], capture_output=True, text=True, env=ENV, cwd=cwd)
    return r.stdout + (r.stderr if r.returncode else "")


def edited(folder, edit):
    p = Path(folder) / edit["file"]
    text = p.read_text()
    assert text.count(edit["old"]) == 1, edit
    p.write_text(text.replace(edit["old"], edit["new"]))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    return m


def cells(path):
    return ["".join(c["source"]) for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]


for key in "abdf":          # every accepted file:line is what it says
    for a in TRIALS[key]["accepted_lines"]:
        f, n = a["at"].rsplit(":", 1)
        if f.endswith(".ipynb"):
            text = cells(HERE / f)[a["cell"] - 1].split("\n")[int(n) - 1]
        else:
            text = (HERE / f).read_text().split("\n")[int(n) - 1]
        say(text.strip() == a["text"], f"({key}) {a['at']} is {a['text']}")

with tempfile.TemporaryDirectory() as d:
    d = Path(d) / "t"
    shutil.copytree(HERE, d)
    say("result float64" in run(["-m", "pkg_a.pipeline"], d), "(a) result float64 as is")
    for edit in TRIALS["a"]["accepted_edits"]:
        with tempfile.TemporaryDirectory() as e:
            e = Path(e) / "t"
            shutil.copytree(HERE, e)
            edited(e, edit)
            say("result float32" in run(["-m", "pkg_a.pipeline"], e), f"(a) float32 with {edit['new']}")

    say("(float32)" in run(["bf16_d.py"], d), "(d) loss is float32 as is")
    for edit in TRIALS["d"]["accepted_edits"]:
        with tempfile.TemporaryDirectory() as e:
            e = Path(e) / "t"
            shutil.copytree(HERE, e)
            edited(e, edit)
            out = run(["bf16_d.py"], e)
            say("(float32)" not in out and "logits bfloat16" in out, f"(d) bfloat16 with {edit['new']}")

fits = {n: load(HERE / "gate_b" / f"{n}.py") for n in ("fit", "fit_bad", "fit_bad_overflow")}
good = fits["fit"].fit(*fits["fit"].example())
wide = fits["fit_bad"].fit(*fits["fit_bad"].example())
over = fits["fit_bad_overflow"].fit(*fits["fit_bad_overflow"].example())
say(good.dtype == np.float32 and np.allclose(good, [1e-4, 1.25], rtol=1e-4), f"(b) fit.py {good} {good.dtype}")
say(wide.dtype == np.float64, f"(b) fit_bad.py widens: {wide} {wide.dtype}")
say(over.dtype == np.float32 and not np.allclose(over, [1e-4, 1.25], rtol=1e-2), f"(b) fit_bad_overflow.py: {over} {over.dtype}")

say(np.result_type(np.int32, np.float32) == np.float64 and np.result_type(np.uint8, np.int8) == np.int16,
    "(c) NumPy itself: int32 + float32 -> float64, uint8 + int8 -> int16")

import onnxruntime as ort  # noqa: E402

with tempfile.TemporaryDirectory() as d:
    shutil.copy(HERE / "make_onnx_e.py", d)
    run(["make_onnx_e.py"], d)
    feed = dict(np.load(Path(d) / "rank_e.npz"))
    ids = {n: ort.InferenceSession(str(Path(d) / n)).run(["best_ids"], feed)[0].tolist() for n in ("rank_e.onnx", "rank_e_good.onnx")}
say(ids["rank_e.onnx"] == [20417732, 20417732, 33900124], f"(e) rank_e.onnx gives {ids['rank_e.onnx']}")
say(ids["rank_e_good.onnx"] == [20417733, 20417731, 33900125], f"(e) rank_e_good.onnx gives {ids['rank_e_good.onnx']}")


def dtypes(sources):
    ns, out = {}, []
    for s in sources:
        exec(s, ns)
        out.append({k for k, v in ns.items() if isinstance(v, np.ndarray) and v.dtype == np.float64})
    return out


src = cells(HERE / "notebook_f.ipynb")
wide = dtypes(src)
say(not any(wide[:3]) and {"frames", "edge"} <= wide[3], f"(f) float64 first in cell 4: {sorted(wide[3])}")
for edit in TRIALS["f"]["accepted_edits"]:
    new = list(src)
    assert new[3].count(edit["old"]) == 1
    new[3] = new[3].replace(edit["old"], edit["new"])
    left = set.union(*dtypes(new)) - {"edge"}
    say(not left, f"(f) nothing float64 but edge itself with {edit['new']} {left or ''}")

print("all hold" if not bad else f"{bad} do not hold")
sys.exit(bool(bad))
