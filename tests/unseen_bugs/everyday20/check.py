"""Shows that each symptom of answers.json exists as the script stands and is gone with the fix.

python check.py            (about a minute; exit status 0 if everything holds)
"""
import json
import os
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve().parent
ANSWERS = json.loads((HERE / "answers.json").read_text())
ENV = dict(os.environ, JAX_PLATFORMS="cpu", OMP_NUM_THREADS="1")


def run(path):
    r = subprocess.run([sys.executable, "-W", "error", str(path)], capture_output=True, text=True, env=ENV)
    return r.returncode, r.stdout + r.stderr


def apply_fix(text, pairs):
    lines = text.split("\n")
    for old, new in pairs:
        hits = [i for i, l in enumerate(lines) if l.strip() == old]
        assert len(hits) == 1, (old, hits)
        pad = lines[hits[0]][: len(lines[hits[0]]) - len(lines[hits[0]].lstrip())]
        lines[hits[0]] = "\n".join(pad + part for part in new.split("\n"))
    return "\n".join(lines)


def module_of(text):
    ns = {"__name__": "not_main"}
    exec(compile(text, "script", "exec"), ns)
    return ns


# Right values worked out another way: Python integers, fractions or double precision.
def ref_csv_stats(m):
    rows = [l.split(",") for l in m["ORDERS"].split()[1:]]
    ids = [int(r[0]) for r in rows]
    return [f"customers: {len(set(ids))}", f"returning: {sum(ids.count(i) > 1 for i in set(ids))}"]


def ref_sensor_log(m):
    rows = [l.split(",") for l in m["LOG"].split()[1:]]
    out = []
    for name, col, off in (("probe_a", 1, 0.25), ("probe_b", 2, -0.5)):
        t = [(int(r[col]) - 8192) * 0.0625 + off for r in rows]
        out.append(f"{name}: min {min(t):.2f}  mean {sum(t) / len(t):.2f}  max {max(t):.2f} C")
    return out


def ref_audio_mix(m):
    v, u = m["fade_in"](m["tone"](220, .5, .75)), m["fade_in"](m["tone"](330, .6, .45))
    s = [max(-32768, min(32767, int(a) + int(b))) for a, b in zip(v, u)]
    step = max(abs(b - a) for a, b in zip(s, s[1:]))
    return [f"lowest {min(s)}, highest {max(s)}, largest step {step}"]


def ref_fleet_sim(m):
    out = []
    for k, target in enumerate((0.25, 0.5, 1.5)):
        v = d = 0.0
        for _ in range(m["STEPS"]):
            v += (target - v) * 0.5 * m["DT"]
            d += v * m["DT"]
        out.append(f"cart {k}: drove {d:8.1f} m")
    return out


def ref_nearest_station(m):
    names, st = m["read_table"](m["STATIONS"])
    ids, rb = m["read_table"](m["ROBOTS"])
    out = []
    for i, (x, y) in zip(ids, rb.tolist()):
        d, n = min(((x - a) ** 2 + (y - b) ** 2, n) for n, (a, b) in zip(names, st.tolist()))
        out.append(f"robot {i}: {n} ({d ** 0.5 / 1000:.1f} m)")
    return out


def ref_trip_gaps(m):
    from datetime import datetime
    t = [[datetime.fromisoformat(w) for w in l.split()[:2]] for l in m["TRIPS"].split("\n") if l]
    return ["idle seconds: " + " ".join(f"{(b[0] - a[1]).total_seconds():.0f}" for a, b in zip(t, t[1:])),
            "ride seconds: " + " ".join(f"{(b - a).total_seconds():.0f}" for a, b in t)]


def ref_sales_by_region(m):
    tot = {}
    for l in m["SALES"].split()[1:]:
        r, _, u, p = l.split(",")
        tot[r] = tot.get(r, 0) + int(u) * int(p)
    return [f"{v / 100:18,.2f}" for v in tot.values()] + [f"best region: {max(tot, key=tot.get)}"]


def ref_label_smoothing(m):
    import numpy as np
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, 32)
    z = rng.normal(0, 1, (32, 4))
    z[np.arange(32), labels] += 1.5
    logp = m["log_softmax"](z)
    e = np.full(32, 0.1)
    e[3], e[17] = 0.2, 0.4
    loss = -((1 - e) * logp[np.arange(32), labels] + e * logp.mean(axis=1)).mean()
    return [f"smoothed loss {loss:.4f}"]


def ref_color_convert(m):
    bars = [[255] * 3, [255, 255, 0], [0, 255, 255], [0, 255, 0], [255, 0, 255], [255, 0, 0], [0, 0, 255], [0, 0, 0]]
    return [f"bars  {[sum(b) // 3 for b in bars]}"]


def ref_latency_report(m):
    # exact percentile from the integer counts; the fixed script must agree within 1 %
    import numpy as np
    r = m["LatencyReport"]()
    r.add(m["sample_latencies"]())
    c, n = r.counts.tolist(), int(r.counts.sum())
    for q in (25, 50, 90, 99):
        acc, i = 0, 0
        while Fraction(acc + c[i], n) < Fraction(q, 100):
            acc += c[i]
            i += 1
        exact, mine = float(r.edges[i]), r.percentile(q)
        assert abs(exact - mine) <= 0.01 * exact, (q, exact, mine)
    return []


def main():
    failed = 0
    for name, a in ANSWERS.items():
        text = (HERE / "scripts" / name).read_text()
        problems = []
        for line in a["lines"]:
            if sum(l.strip() == line for l in text.split("\n")) != 1:
                problems.append(f"line not found once: {line!r}")
        rc, out = run(HERE / "scripts" / name)
        if rc:
            problems.append(f"exit status {rc}: {out[-300:]}")
        problems += [f"as is, missing {s!r}" for s in a["shows_as_is"] if s not in out]
        if a["kind"] == "fault":
            if not (a["shows_as_is"] and a["shows_fixed"]):
                problems.append("no evidence given")
            for k, pairs in enumerate([a["fix"], *a.get("other_fixes", [])]):
                fixed = apply_fix(text, pairs)
                with tempfile.TemporaryDirectory() as d:
                    p = Path(d) / name
                    p.write_text(fixed)
                    rc, mended = run(p)
                if rc:
                    problems.append(f"fix {k}: exit status {rc}: {mended[-300:]}")
                good = a["shows_fixed"]
                ref = globals().get("ref_" + name[:-3])
                if ref:
                    good = good + ref(module_of(fixed))
                problems += [f"fix {k}: missing {s!r}\n{mended}" for s in good if s not in mended]
                problems += [f"as is, already right: {s!r}" for s in a["shows_fixed"] if s in out]
                problems += [f"fix {k}: symptom stays {s!r}" for s in a["shows_as_is"] if s in mended]
        print(f"{'ok  ' if not problems else 'FAIL'} {a['kind']:5s} {name}")
        for p in problems:
            print("     ", p)
        failed += bool(problems)
    print(f"{len(ANSWERS) - failed} of {len(ANSWERS)} hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
