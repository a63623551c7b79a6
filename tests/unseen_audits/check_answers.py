"""Verify every file of bugs/ and clean/ against its ANSWER.

For each file of bugs/:
  * `run` and `exact` are executed, the outputs that leave are collected (returned, printed, written)
    and the number of elements that differ is compared with ANSWER;
  * the text of ANSWER["line"] (and of ANSWER["fix_line"] if the repair is made on another line, e.g.
    where the array is allocated) is compared with the text listed in LINES below;
  * the fix replaces that line textually, the program is run again, and every differ must be 0.
For clean/ the outputs must not differ at all.

Comparison: exact ints are compared exactly; floats within 1e-6 relative of the exact value (plus
1e-12 of the largest magnitude of that output, for zeros).
"""
import contextlib
import glob
import io
import json
import math
import os
import pickle
import re
import sys
import tempfile
import warnings

import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
NUM = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)"


def nums(text):
    return [float(t) if re.search(r"[.a-z]", t) else int(t) for t in re.findall(NUM, text)]


def after(text, label):
    """First number after a label."""
    i = text.index(label) + len(label)
    return nums(text[i:])[0]


def table(path, **kw):
    return np.loadtxt(path, **kw)


def rec22(d):
    return np.fromfile(d + "/stock.bin", dtype=MODULE["STOCK"])


def c04(r, out, d):
    rows = [list(map(int, l.split())) for l in out.splitlines()[1:]]
    return [[q[1] for q in rows], [q[2] for q in rows], [q[3] for q in rows]]


def c12(r, out, d):
    rows = [l.split(",") for l in open(d + "/replies.csv").read().splitlines()[1:]]
    cols = [[int(q[k]) for q in rows] for k in range(3)]
    return cols + [after(out, "answers:"), after(out, "in the table:")]


def c13(r, out, d):
    p = pickle.load(open(d + "/registry.pkl", "rb"))
    return [r, p["ids"], p["hits"], p["sizes"]]


def c14(r, out, d):
    z = np.load(d + "/frame_times.npz")
    return [r["dropped"], r["mean_period"], z["frames"], z["stamps"], z["period"]]


def c16(r, out, d):
    lines = out.splitlines()
    f = [l.split() for l in lines[:-1]]
    last = lines[-1]
    return [[float(q[1]) for q in f], [float(q[3]) for q in f], after(last, "cars"),
            after(last, "revenue"), after(last, "cap")]


def c18(r, out, d):
    t = open(d + "/tide.idx").read()
    n, hc, hh, lc, lh = nums(t)
    return [np.fromfile(d + "/tide.i16", np.int16), n, hc, hh, lc, lh]


def c19(r, out, d):
    return [*r, [int(l.split()[-2] if l.split()[-1].startswith("#") else l.split()[-1])
                 for l in out.splitlines()]]


def c20(r, out, d):
    return [np.load(d + "/scaled.npy"), [after(l, "offset=") for l in out.splitlines()],
            [after(l, "swing=") for l in out.splitlines()]]


def c22(r, out, d):
    s = rec22(d)
    return [r, s["article"], s["on_hand"], s["reserved"], s["value"],
            nums(out)[0], nums(out)[1], nums(out)[2]]


def c24(r, out, d):
    rows = open(d + "/depth.bedgraph").read().splitlines()[1:]
    return [*r, [int(l.split("\t")[-1]) for l in rows]]


def c25(r, out, d):
    rows = [r[f"baro{i}"] for i in range(5)]
    return [*[[q[k] for q in rows] for k in range(3)], r["range"]]


def c30(r, out, d):
    return [r[0][k] for k in ("end", "half", "reach", "returns")] + [r[1]]


COLLECT = {
    "01": lambda r, out, d: list(r),
    "02": lambda r, out, d: [r["rms"], r["peak"]],
    "03": lambda r, out, d: [np.fromfile(d + "/stamps.bin", "<i8"), nums(out)],
    "04": c04,
    "05": lambda r, out, d: [r[k] for k in ("years", "yearly", "index", "zero_hauls")],
    "06": lambda r, out, d: [r, np.load(d + "/reduced.npy"), nums(out)],
    "07": lambda r, out, d: nums(out),
    "08": lambda r, out, d: [r, table(d + "/readings.txt"), table(d + "/daily.txt")],
    "09": lambda r, out, d: list(r),
    "10": lambda r, out, d: [r[k] for k in ("area_mm2", "mean_dose", "touched", "partial", "max_dose")],
    "11": lambda r, out, d: [r[k] for k in ("gaps_us", "min", "median", "max", "in_burst")],
    "12": c12, "13": c13, "14": c14,
    "15": lambda r, out, d: [*r, table(d + "/bank.csv", delimiter=",")],
    "16": c16,
    "17": lambda r, out, d: [r[k] for k in ("year", "gap_days", "longest", "in_20th_century")] + [nums(out)],
    "18": c18, "19": c19, "20": c20,
    "21": lambda r, out, d: [r, table(d + "/heat.txt"), after(out, "page:"),
                             [after(out, "row"), after(out, "column")], after(out, "with")],
    "22": c22,
    "23": lambda r, out, d: [list(r[0].values()), r[1], r[2]],
    "24": c24, "25": c25,
    "26": lambda r, out, d: [r, table(d + "/clock.csv"), after(out, "turns="), after(out, "rate=")],
    "27": lambda r, out, d: [r[k] for k in ("due", "net", "bands", "revenue")],
    "28": lambda r, out, d: [r[0], r[1], table(d + "/flags.txt"), *nums(out)],
    "29": lambda r, out, d: [r, nums(out)[:3], nums(out)[3]],
    "30": c30,
}

CLEAN = {
    "01": lambda r, out, d: [*r, nums(out)],
    "02": lambda r, out, d: [r, np.fromfile(d + "/frames.bin", np.uint8)],
    "03": lambda r, out, d: [r, *nums(out)],
    "04": lambda r, out, d: [r, np.load(d + "/sharp.npy")],
    "05": lambda r, out, d: [*r, *nums(out)],
    "06": lambda r, out, d: [r["sum"], r["difference"], r["grey"], *nums(out)],
    "07": lambda r, out, d: [*r, np.frombuffer(open(d + "/mix.wav", "rb").read()[44:], "<i2")],
    "08": lambda r, out, d: [*r, np.fromfile(d + "/screen.raw", np.uint8)],
    "09": lambda r, out, d: [r, table(d + "/last_state.txt"), nums(out)],
    "10": lambda r, out, d: [*r, [int(l.split()[1]) for l in open(d + "/visits.txt")],
                             out.split()[0], float(out.split()[1])],
}

# text of the line at which the value first goes wrong, and of the line to repair if it is another one
LINES = {
    '01_frame_stack': ('acc += frame',
        'acc = frames[0].copy()'),
    '02_audio_rms': ('energy = blocks * blocks',
        'energy = blocks * blocks'),
    '03_epoch_ms': ('stamp = seconds * 1000 + millis',
        'stamp = seconds * 1000 + millis'),
    '04_invoice_totals': ('value = qty * price',
        'value = qty * price'),
    '05_catch_per_effort': ('cpue = catch // hours',
        'cpue = catch // hours'),
    '06_dark_subtract': ('signal = raw - dark',
        'signal = raw - dark'),
    '07_trail_profile': ('step = np.diff(heights)',
        'step = np.diff(heights)'),
    '08_meter_readings': ('readings = np.cumsum(deltas)',
        'readings = np.cumsum(deltas)'),
    '09_lidar_range': ('squared = offset ** 2',
        'squared = offset ** 2'),
    '10_soft_mask': ('weight = mask.sum()',
        'weight = mask.sum()'),
    '11_packet_gaps': ('t = sec + nsec * 1e-9',
        't = sec + nsec * 1e-9'),
    '12_reply_parents': ('replied_to = np.where(is_reply, parent, np.nan)',
        'replied_to = np.where(is_reply, parent, np.nan)'),
    '13_device_registry': ('seen = np.append(seen, batch)',
        'seen = np.array([])'),
    '14_frame_sync': ('stamps = np.rint(np.interp(frames, sync_frame, sync_ns)).astype(np.int64)',
        'stamps = np.rint(np.interp(frames, sync_frame, sync_ns)).astype(np.int64)'),
    '15_delay_bank': ('bank[k] = 1.0 + g * np.exp(-1j * omega * d)',
        'bank = np.zeros((len(delays), n_freq))'),
    '16_parking_fees': ('hours = (leave - enter).astype("timedelta64[h]").astype(float)',
        'hours = (leave - enter).astype("timedelta64[h]").astype(float)'),
    '17_comet_catalogue': ('stamp = dates.astype("datetime64[ns]")',
        'stamp = dates.astype("datetime64[ns]")'),
    '18_tide_gauge': ('packed = (level * 100.0 + 0.5).astype(np.int16)',
        'packed = (level * 100.0 + 0.5).astype(np.int16)'),
    '19_age_groups': ('decade = np.clip((age // 10).astype(int), 0, 9)',
        'decade = np.clip((age // 10).astype(int), 0, 9)'),
    '20_adc_gain': ('np.multiply(counts, gain[:, None], out=scaled, where=alive[:, None], casting="unsafe")',
        'scaled = np.zeros((n_ch, n_t), dtype=np.int16)'),
    '21_click_heatmap': ('np.add.at(heat, (cy, cx), 1)',
        'heat = np.zeros((ny, nx), dtype=np.uint8)'),
    '22_stock_records': ('rec["on_hand"] = on_hand + delivered',
        'STOCK = np.dtype([("article", "<u4"), ("on_hand", "<i2"), ("reserved", "<i2"), ("value", "<f8")])'),
    '23_token_balances': ('balance = np.bincount(account, weights=amount, minlength=n_accounts)',
        'balance = np.bincount(account, weights=amount, minlength=n_accounts)'),
    '24_coverage_windows': ('bases = np.sum(tiles, axis=1, dtype=np.int16)',
        'bases = np.sum(tiles, axis=1, dtype=np.int16)'),
    '25_barometer_noise': ('variance = (pressure * pressure).mean(axis=0) - pressure.mean(axis=0) ** 2',
        'variance = (pressure * pressure).mean(axis=0) - pressure.mean(axis=0) ** 2'),
    '26_spin_clock': ('clock += dt',
        'clock = start'),
    '27_income_levy': ('due = levied(income)',
        'levied = np.vectorize(levy)'),
    '28_known_objects': ('known = np.isin(detections, catalogue)',
        'known = np.isin(detections, catalogue)'),
    '29_site_likelihood': ('like = prob.prod(axis=2)',
        'like = prob.prod(axis=2)'),
    '30_polymer_walk': ('path = np.cumsum(steps, axis=1, dtype=np.int8)',
        'path = np.cumsum(steps, axis=1, dtype=np.int8)'),
}
#LINES#


def flat(x):
    if isinstance(x, (str, bytes)) or not isinstance(x, (list, tuple, np.ndarray)):
        return [x.item() if isinstance(x, np.generic) else x]
    if isinstance(x, np.ndarray):
        return x.ravel().tolist()
    return [v for part in x for v in flat(part)]


def differ(got, want):
    got, want = flat(got), flat(want)
    if len(got) != len(want):
        return (len(got), len(want)), None
    if not want:
        return 0, 0
    floats = [abs(w) for w in want if not isinstance(w, (int, str, bytes)) and w == w and abs(w) != math.inf]
    floor = 1e-12 * max(floats, default=0.0)
    k = 0
    for g, w in zip(got, want):
        if isinstance(w, (int, str, bytes)):
            k += not (g == w)
        elif w != w:
            k += not (g != g)
        else:
            k += not (g == w or abs(g - w) <= 1e-6 * abs(w) + floor)
    return len(want), k


MODULE = None


def load(text, path):
    global MODULE
    MODULE = {"__name__": "unseen_program", "__file__": path}
    exec(compile(text, path, "exec"), MODULE)
    return MODULE


def measure(text, path, collectors):
    mod = load(text, path)
    key = os.path.basename(path)[:2]
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as d, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(d)
        try:
            buf = io.StringIO()
            with contextlib.redirect_stdout(buf):
                ret = mod["run"](*mod["make_inputs"]())
            collect = collectors.get(key)
            got = collect(ret, buf.getvalue(), d) if collect else (list(ret) if isinstance(ret, tuple) else [ret])
        finally:
            os.chdir(here)
        want = mod["exact"](*mod["make_inputs"]())
    names = list(mod["ANSWER"]["outputs"])
    if len(names) == 1 and len(got) == 1 and not isinstance(want, tuple):
        want = (want,)
    if not len(got) == len(want) == len(names):
        raise AssertionError(f"{len(got)} outputs, {len(want)} exact, {len(names)} in ANSWER")
    return mod["ANSWER"], {n: differ(g, w) for n, g, w in zip(names, got, want)}


def check_bug(path):
    base = os.path.basename(path)[:-3]
    text = open(path).read()
    lines = text.split("\n")
    answer, counts = measure(text, path, COLLECT)
    bad = []
    for name, (size, k) in counts.items():
        a = answer["outputs"][name]
        if (a["size"], a["differ"]) != (size, k):
            bad.append(f"{name}: ANSWER {a['size']}/{a['differ']}, measured {size}/{k}")
    if not any(k for _, k in counts.values()):
        bad.append("nothing differs")
    number = answer["line"]
    where = answer.get("fix_line", number)
    for what, n, expect in zip(("line", "fix_line"), (number, where), LINES[base]):
        if lines[n - 1].strip() != expect:
            bad.append(f"{what} {n} is {lines[n - 1].strip()!r}, not {expect!r}")
    old = lines[where - 1]
    lines[where - 1] = old[:len(old) - len(old.lstrip())] + answer["fix"]
    _, fixed = measure("\n".join(lines), path, COLLECT)
    for name, (size, k) in fixed.items():
        if k != 0:
            bad.append(f"after the fix {name}: {size}/{k}")
    total = ", ".join(f"{k}/{s}" for s, k in counts.values())
    return bad, f"line {number} {answer['kind']}: differ {total}"


def check_clean(path):
    text = open(path).read()
    answer, counts = measure(text, path, CLEAN)
    bad = [f"{n}: ANSWER {answer['outputs'][n]}, measured {c}" for n, c in counts.items()
           if c != (answer["outputs"][n]["size"], 0) or answer["outputs"][n]["differ"] != 0]
    return bad, ", ".join(f"{k}/{s}" for s, k in counts.values())


def main():
    failed = 0
    for folder, check in (("bugs", check_bug), ("clean", check_clean)):
        for path in sorted(glob.glob(f"{HERE}/{folder}/*.py")):
            try:
                bad, text = check(path)
            except Exception as e:
                bad, text = [f"{type(e).__name__}: {e}"], ""
            failed += bool(bad)
            print("ok  " if not bad else "FAIL", folder + "/" + os.path.basename(path), text)
            for b in bad:
                print("       ", b)
    print("failed:", failed)
    return failed


if __name__ == "__main__":
    sys.exit(main() != 0)
