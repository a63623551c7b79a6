"""Check of every ANSWER by independent exact or wide arithmetic, and of repeatability.

For each program of `bugs` and `clean` the outputs are computed again from the
inputs with Python ints, fractions or plain Python floats (a second
implementation, below), and the number of differing elements is compared with
the ANSWER.  For `bugs` the line named by fix_line is then replaced by a
corrected one and the corrected program has to agree with the second
implementation everywhere.  Every program is run twice, each time in an empty
temporary directory: results, printed text and files have to be equal.
"""
import ast
import contextlib
import dataclasses
import datetime as dt
import io
import math
import os
import pathlib
import sys
import tempfile
import types
import warnings
from fractions import Fraction

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent / "programs"
TOL = Fraction(1, 10**6)


# ---------------------------------------------------------------- comparing

def flat(value):
    """A result as a flat list of Python objects."""
    if isinstance(value, np.ma.MaskedArray):
        return [None if m else v for v, m in zip(flat(value.data), np.ma.getmaskarray(value).ravel().tolist())]
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "mM":
            return [int(v) for v in value.astype(np.int64).ravel()]
        return value.ravel().tolist()
    if isinstance(value, np.generic):
        return [value.item()]
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in flat(v)]
    return [value]


def different(got, want):
    if isinstance(got, bool) or isinstance(want, bool):
        return int(got) != int(want)
    if isinstance(got, complex) or isinstance(want, complex):
        return abs(complex(got) - complex(want)) > 1e-6 * abs(complex(want))
    if isinstance(got, str) or isinstance(want, str):
        return got != want
    if isinstance(got, int) and isinstance(want, int):
        return got != want
    if isinstance(want, float) and not math.isfinite(want) or isinstance(got, float) and not math.isfinite(got):
        if isinstance(want, float) and math.isnan(want):
            return not (isinstance(got, float) and math.isnan(got))
        return not got == want
    if isinstance(got, int) and float(want).is_integer():
        return Fraction(got) != Fraction(want)
    got, want = Fraction(got), Fraction(want)
    return abs(got - want) > TOL * abs(want)


def count_different(got, want):
    got, want = flat(got), flat(want)
    if len(got) != len(want):
        raise AssertionError(f"{len(got)} elements, expected {len(want)}")
    return sum(different(g, w) for g, w in zip(got, want))


def same(a, b):
    """Equality of two results of any kind, NaN equal to NaN."""
    if type(a).__name__ != type(b).__name__:      # classes of the two loaded modules are not identical
        return False
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ma.MaskedArray):
        return same(np.asarray(a.filled()), np.asarray(b.filled())) and same(np.ma.getmaskarray(a), np.ma.getmaskarray(b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


# ------------------------------------------------------------------ running

def load(path, text=None):
    text = path.read_text() if text is None else text
    module = types.ModuleType("prog_" + path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def execute(path, text=None):
    """One run in an empty directory: module, inputs, result, printed text, files."""
    before = os.getcwd()
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(out), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = load(path, text)
                if hasattr(module, "run"):
                    inputs = module.make_inputs()
                    assert isinstance(inputs, tuple), "make_inputs must give a tuple"
                    result = module.run(*inputs)
                else:
                    inputs, result = (), module.main()
            files = {p.relative_to(folder).as_posix(): p.read_bytes()
                     for p in sorted(pathlib.Path(folder).rglob("*")) if p.is_file()}
        finally:
            os.chdir(before)
    return module, inputs, result, out.getvalue(), files


# ------------------------------------------- second implementations: `bugs`

def pysum(values):
    values = list(values)
    return sum(values) if all(isinstance(v, int) for v in values) else math.fsum(values)


def pymean(values):
    values = list(values)
    return pysum(values) / len(values)


def rows(a):
    return a.tolist()


def median(values):
    s = sorted(values)
    n = len(s)
    return (s[(n - 1) // 2] + s[n // 2]) / 2


def b01(raw, weights):
    w = [Fraction(x) for x in weights.tolist()]
    final = [float(sum(a * b for a, b in zip(r, w))) for r in rows(raw)]
    exam = [r[2] for r in rows(raw)]
    return {"final": final, "class_average": pymean(final), "exam_mean": pymean(exam),
            "rank_by_exam": sorted(range(len(exam)), key=lambda i: -exam[i])}


def b02(frames, seconds):
    f = [[int(x) for x in fr.ravel()] for fr in frames]
    total = [sum(col) for col in zip(*f)]
    t = seconds * len(f)
    return {"total": total, "rate": [x / t for x in total], "background": [median(fr) for fr in f], "seconds": t}


def b03(dims, kilos):
    vol = [a * b * c for a, b, c in rows(dims)]
    return {"volume_mm3": vol, "charged_kg": [max(k, v / 5_000_000) for k, v in zip(kilos.tolist(), vol)],
            "girth_mm": [a + 2 * (b + c) for a, b, c in rows(dims)], "actual_kg": pysum(kilos.tolist())}


def b04(power):
    p = power.tolist()
    acc, readings = Fraction(0), []
    for x in p:
        acc += Fraction(x) / 4
        readings.append(float(acc))
    return {"readings": readings[199::200], "day_end_kw_min": readings[-1], "peak_kw": max(p),
            "n_high": sum(x > 0.5 for x in p)}


def b05(counts, query):
    c, q = rows(counts), query.tolist()
    dots = [sum(a * b for a, b in zip(r, q)) for r in c]
    sim = [d / math.sqrt(sum(a * a for a in r)) / math.sqrt(sum(b * b for b in q)) for d, r in zip(dots, c)]
    return {"dots": dots, "similarity": sim, "doc_lengths": [sum(r) for r in c], "top_term": [r.index(max(r)) for r in c]}


def b06(account, balance):
    a, b = account.tolist(), balance.tolist()
    keep = [x for x, y in zip(a, b) if y > 0]
    return {"credit_accounts": keep, "credit_sum": math.fsum(y for y in b if y > 0), "n_credit": len(keep),
            "branch": [x // 10**14 for x in a]}


def b07(ids, step):
    i, s = ids.tolist(), step.tolist()
    return {"worker": [(x >> 12) % 1024 for x in i], "sent_ms": [(x >> 22) + 1_288_834_974_657 for x in i],
            "following": [x + y for x, y in zip(i, s)], "total_step": sum(s)}


def b08(level):
    l = rows(level)
    move = [[b - a for a, b in zip(r, r[1:])] for r in l]
    return {"movement": move, "net": [sum(m) for m in move], "closing": [r[-1] for r in l], "mean_level": [pymean(r) for r in l]}


def b09(entry, leave, kind):
    seconds = [(b - a).total_seconds() for a, b in zip(entry.tolist(), leave.tolist())]
    hours = [s / 3600 for s in seconds]
    fee = [h * {"car": 2.40, "van": 3.75}[k] for h, k in zip(hours, kind.tolist())]
    return {"hours": hours, "fee": fee, "takings": math.fsum(fee), "longest": seconds.index(max(seconds)),
            "n_vans": kind.tolist().count("van")}


def b10(seen, magnitude):
    epoch = dt.datetime(2000, 1, 1, 12)
    days = [dt.datetime.combine(d, dt.time()) for d in seen.tolist()]
    m = magnitude.tolist()
    return {"age_years": [(epoch - d).total_seconds() / 31_557_600 for d in days],
            "brightest_first": sorted(range(len(m)), key=m.__getitem__), "month": [d.month for d in days],
            "flux_ratio": [10.0 ** (-0.4 * (x - max(m))) for x in m]}


def b11(samples):
    s = samples.tolist()
    blocks = [s[i:i + 256] for i in range(0, len(s), 256)]
    return {"peak": [max(abs(x) for x in b) for b in blocks],
            "rms": [math.sqrt(sum(x * x for x in b) / 256) for b in blocks],
            "crossings": [sum((x < 0) != (y < 0) for x, y in zip(b, b[1:])) for b in blocks], "lowest": min(s)}


def b12(easting, northing, height):
    e, n, h = easting.tolist(), northing.tolist(), height.tolist()
    leg = [math.hypot(e[i + 1] - e[i], n[i + 1] - n[i]) for i in range(len(e) - 1)]
    return {"leg": leg, "length": math.fsum(leg), "climb": math.fsum(max(b - a, 0.0) for a, b in zip(h, h[1:])),
            "bounds": [min(e), max(e), min(n), max(n)]}


def b13(wallet, amount, block):
    got = {"received": [0] * 9, "n_transfers": [0] * 9, "largest": [0] * 9}
    for w, a in zip(wallet.tolist(), amount.tolist()):
        got["received"][w] += a
        got["n_transfers"][w] += 1
        got["largest"][w] = max(a, got["largest"][w])
    return got | {"block_span": max(block.tolist()) - min(block.tolist())}


def b14(minutes):
    m = minutes.tolist()
    n = len(m)
    return {"ways": [math.factorial(k) for k in range(1, n + 1)],
            "log10_ways": [math.fsum(math.log10(j) for j in range(1, k + 1)) for k in range(1, n + 1)],
            "pairs": [math.comb(k, 2) for k in range(1, n + 1)], "start_minute": [sum(m[:k]) for k in range(n)]}


def b15(smoke, heat, gas):
    over = [[x > lim for x in a.tolist()] for a, lim in ((smoke, 0.12), (heat, 58.0), (gas, 60.0))]
    alarm = [sum(v) >= 2 for v in zip(*over)]
    return {"alarm": alarm, "n_alarm": sum(alarm), "singles": [sum(o) for o in over], "hottest": max(heat.tolist())}


def b16(signal):
    s = signal.tolist()
    frames = [s[i:i + 64] for i in range(0, len(s), 64)]
    power = []
    for f in frames:
        for k in range(33):
            re = math.fsum(x * math.cos(2 * math.pi * j * k / 64) for j, x in enumerate(f))
            im = math.fsum(x * math.sin(2 * math.pi * j * k / 64) for j, x in enumerate(f))
            if k in (0, 32):
                im = 0.0
            power.append((re * re + im * im) / 64)
    energy = [math.fsum(x * x for x in f) for f in frames]
    return {"power": power, "energy": energy,
            "crest": [max(map(abs, f)) / math.sqrt(e / 64) for f, e in zip(frames, energy)]}


def b17(cases, population):
    c, p = cases.tolist(), population.tolist()
    crude = [Fraction(100_000 * a, b) for a, b in zip(c, p)]
    smooth = [float(Fraction(100_000) * (a + Fraction(1, 2)) / (b + 1)) for a, b in zip(c, p)]
    return {"crude": [float(x) for x in crude], "smoothed": smooth, "mean_smoothed": pymean(smooth),
            "overall": 100_000 * sum(c) / sum(p), "worst": crude.index(max(crude))}


def b18(reading):
    r = rows(reading)
    code = [[x if math.isnan(x) else round(x * 10.0) for x in row] for row in r]
    return {"code": code, "probe_mean": [sum(row) / len(row) for row in code],
            "missing": [sum(math.isnan(x) for x in row) for row in r],
            "wettest": max(x for row in r for x in row if not math.isnan(x))}


def b19(port, size):
    ports = [22, 25, 53, 80, 123, 443, 3389, 8080]
    p, s = port.tolist(), size.tolist()
    hits = [p.count(x) for x in ports]
    vol = [sum(b for a, b in zip(p, s) if a == x) for x in ports]
    return {"hits": hits, "volume": vol, "mean_size": [v / h for v, h in zip(vol, hits)], "largest": max(s)}


def b20(pace, n):
    pos = [float(Fraction(42.195) * i / (n - 1)) for i in range(n)]
    fin = [p * 42.195 for p in pace.tolist()]
    return {"position_km": pos, "passing_min": [p * x for p in pace.tolist() for x in pos], "finish_min": fin,
            "finish_gap": [b - a for a, b in zip(fin, fin[1:])]}


# what stands at fix_line, and what a programmer would write there instead
FIXES = {
    "b01": ("np.zeros_like(raw[:, 0])", "np.zeros(len(raw))"),
    "b02": ("dtype=dtype", "dtype=np.uint32"),
    "b03": ("= length *", "= length.astype(np.int64) *"),
    "b04": ("np.float32(0.0)", "np.float64(0.0)"),
    "b05": ("np.float16", "np.float64"),
    "b06": ("np.where(balance > 0.0, account, np.nan)", "account[balance > 0.0]"),
    "b07": ("ids + step", "ids + step.astype(np.uint64)"),
    "b08": ("np.diff(level,", "np.diff(level.astype(np.int64),"),
    "b09": ('stay.astype("timedelta64[h]").astype(float)', 'stay / np.timedelta64(1, "h")'),
    "b10": ('"ns"', '"s"'),
    "b11": ("np.abs(blocks)", "np.abs(blocks.astype(np.int32))"),
    "b12": (".astype(np.float32)", ""),
    "b13": ("np.bincount(wallet, weights=amount, minlength=N_WALLETS)",
            "np.zeros(N_WALLETS, dtype=np.int64); np.add.at(received, wallet, amount)"),
    "b14": ("np.cumprod(k)", "np.cumprod(k.astype(object))"),
    "b15": ("over_smoke + over_heat + over_gas", "over_smoke.astype(int) + over_heat + over_gas"),
    "b16": ("WINDOW // 2 + 1)", "WINDOW // 2 + 1), dtype=complex"),
    "b17": ("np.full_like(cases, added)", "np.full(cases.shape, added)"),
    "b18": ("tenths.astype(np.int32)", "tenths"),
    "b19": ("np.uint8", "np.int64"),
    "b20": (", dtype=int", ""),
}


# ------------------------------------------ second implementations: `clean`

def c01(hosts, n_shards):
    n = [len(x) for x in hosts.tolist()]
    return {"name_length": n, "n_hosts": len(n), "mean_length": pymean(n)}


def c02(first, second):
    a, b = first.ravel().tolist(), second.ravel().tolist()
    mixed = [(x + y + 1) // 2 for x, y in zip(a, b)]
    return {"mixed": mixed, "bright": [min(255, max(0, x * 14 // 10 + 20)) for x in mixed],
            "contrast": max(mixed) - min(mixed), "difference": [abs(x - y) for x, y in zip(a, b)],
            "row_sums": [sum(mixed[i:i + 40]) for i in range(0, 1600, 40)]}


def c03(kelvin):
    k = kelvin.tolist()
    months = [k[i:i + 720] for i in range(0, len(k), 720)]
    normal = [pymean(m) for m in months]
    return {"normal": normal, "celsius": [x - 273.15 for x in normal],
            "spread": [math.sqrt(math.fsum((x - a) ** 2 for x in m) / 720) for m, a in zip(months, normal)],
            "degree_hours": [math.fsum(k[:i]) for i in range(720, len(k) + 1, 720)], "mean_all": pymean(k)}


def c04(trades):
    t = trades.tolist()
    turn = [p * q for p, q, _ in t]
    pos, acc = [], 0
    for _, q, side in t:
        acc += q if side == b"B" else -q
        pos.append(acc)
    prices = [p for p, _, _ in t]
    return {"turnover": turn, "position": pos, "vwap_ticks": sum(turn) / sum(q for _, q, _ in t),
            "middle": (max(prices) + min(prices)) // 2, "n_buys": sum(s == b"B" for _, _, s in t)}


def c05(weights, signal):
    w = rows(weights)
    scale = [max(map(abs, r)) / 127.0 for r in w]
    code = [[max(-127, min(127, round(x / s))) for x in r] for r, s in zip(w, scale)]
    return {"code": code, "scale": scale, "code_sum": [sum(r) for r in code], "energy": [sum(x * x for x in r) for r in code],
            "within": [all(abs(Fraction(x) - c * Fraction(s)) <= Fraction(s) / 2 * Fraction(1 + 1e-9) for x, c in zip(r, cr))
                       for r, cr, s in zip(w, code, scale)],
            "response": [math.fsum(c * s * y for c, y in zip(cr, signal.tolist())) for cr, s in zip(code, scale)]}


def c06(number, void):
    n = number.tolist()
    kept = [x for x, v in zip(n, void.tolist()) if not v]

    def digit(x):
        return -sum((3 if i % 2 == 0 else 1) * int(ch) for i, ch in enumerate(reversed(str(x)))) % 10

    return {"shown": [-1 if v else x for x, v in zip(n, void.tolist())], "digit": [digit(x) for x in kept],
            "full": [int(f"{x}{digit(x)}") for x in kept], "gaps": [b - a for a, b in zip(kept, kept[1:])],
            "first": min(kept), "last": max(kept)}


def c07(depth):
    d = rows(depth)
    code = [[-9999 if math.isnan(x) else round(x * 10.0) for x in r] for r in d]
    known = [[c for c in r if c != -9999] for r in code]
    return {"code": code, "seasonal": [sum(r) / 10 / len(r) for r in known], "days_known": [len(r) for r in known],
            "deepest_day": [r.index(max(r)) for r in code],
            "error_ok": all(abs(c / 10 - x) <= 0.05 + 1e-9 for r, cr in zip(d, code) for x, c in zip(r, cr) if c != -9999)}


def c08(arrived, answered, ended):
    a, b, c = arrived.tolist(), answered.tolist(), ended.tolist()
    per_hour = [sum(t.hour == h for t in a) for h in range(24)]
    ms = dt.timedelta(milliseconds=1)
    wait = [(y - x) / ms / 1000 for x, y in zip(a, b)]
    return {"per_hour": per_hour, "wait_s": wait, "talk_ms": sum((z - y) // ms for y, z in zip(b, c)),
            "in_system": [i - sum(z <= x for z in c) for i, x in enumerate(a)],
            "answered_in_20s": sum(w <= 20.0 for w in wait) / len(wait)}


def c09(counter, payload):
    p = rows(payload)
    check = []
    for r in p:
        low = high = 0
        for x in r:
            low += x
            high += low
        check.append((high % 255) * 256 + low % 255)
    return {"check": check, "n_frames": len(p), "payload_bytes": sum(map(len, p)),
            "mean_byte": [pymean(col) for col in zip(*p)], "byte_total": [sum(r) for r in p]}


def c10(profile, half_points):
    p, n = profile.tolist(), profile.size
    coef = []
    for k in range(-12, 13):
        re = math.fsum(x * math.cos(2 * math.pi * j * k / n) for j, x in enumerate(p))
        im = -math.fsum(x * math.sin(2 * math.pi * j * k / n) for j, x in enumerate(p))
        coef.append((k, re, im))
    smooth = [math.fsum(re * math.cos(2 * math.pi * j * k / n) - im * math.sin(2 * math.pi * j * k / n)
                        for k, re, im in coef) / n for j in range(n)]
    h = rows(half_points)
    good = [sum(x >= 5 for x in r) for r in h]
    return {"smooth": smooth, "rough": math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(p, smooth)) / n), "stored": h,
            "section": [sum(Fraction(x) for x in r) for r in h], "good": good, "share_good": sum(good) / half_points.size}


# --------------------------------------------------------------------- main

def own_lines(text):
    """Lines of the file's functions, classes and constants, make_inputs and ANSWER left out."""
    lines = set()
    for node in ast.parse(text).body:
        name = getattr(node, "name", None) or ast.unparse(getattr(node, "targets", [node])[0])
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Assign)) and name not in ("make_inputs", "ANSWER"):
            lines |= set(range(node.lineno, node.end_lineno + 1))
    return lines


def check_answer(path, module, inputs, result):
    code = path.stem[:3]
    answer, text = module.ANSWER, path.read_text()
    want = globals()[code](*inputs)
    is_bug = code[0] == "b"
    listed = answer["outputs"]
    assert set(want) == set(listed) <= set(result), f"outputs {set(want) ^ set(listed)}"
    if is_bug:
        assert set(listed) == set(result), "an output is not listed"
    for name, entry in listed.items():
        n = count_different(result[name], want[name])
        assert n == entry["differ"], f"{name}: {n} differ, ANSWER says {entry['differ']}"
    total = sum(e["differ"] for e in listed.values())
    if not is_bug:
        assert answer["line"] is None and total == 0
        return "nothing differs"
    assert total > 0 and any(e["differ"] == 0 for e in listed.values())
    lines = text.splitlines()
    for key in ("line", "fix_line"):
        assert answer[key] in own_lines(text) and lines[answer[key] - 1].strip(), key
    old, new = FIXES[code]
    at = answer["fix_line"] - 1
    assert lines[at].count(old) == 1, f"fix does not fit line {at + 1}: {lines[at]}"
    lines[at] = lines[at].replace(old, new)
    fixed = execute(path, "\n".join(lines) + "\n")[2]
    for name in listed:
        assert count_different(fixed[name], want[name]) == 0, f"{name} still differs after the fix"
    return "line {line}, fix {fix_line}: ".format(**answer) + ", ".join(f"{k} {e['differ']}" for k, e in listed.items())


def main():
    bad = 0
    for folder in ("bugs", "clean", "ordinary"):
        for path in sorted((HERE / folder).glob("*.py")):
            size = len(path.read_text().splitlines())
            try:
                module, inputs, result, text, files = execute(path)
                _, inputs2, result2, text2, files2 = execute(path)
                assert same(inputs, inputs2), "inputs differ between two runs"
                assert same(result, result2), "results differ between two runs"
                assert text == text2, "printed text differs between two runs"
                assert files == files2, "files differ between two runs"
                if folder == "ordinary":
                    low, high, note = 90, 130, f"{len(text.splitlines())} lines printed, {len(files)} files"
                    assert result is not None or text or files, "no result"
                else:
                    low, high = (15, 60) if folder == "bugs" else (20, 60)
                    note = check_answer(path, module, inputs, result)
                assert low <= size <= high, f"{size} lines long"
                print(f"ok   {folder}/{path.name} ({size} lines): {note}")
            except Exception as error:
                bad += 1
                print(f"FAIL {folder}/{path.name}: {type(error).__name__}: {error}")
    print("all hold" if not bad else f"{bad} programs fail")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
