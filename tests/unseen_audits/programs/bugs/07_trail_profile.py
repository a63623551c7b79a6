import numpy as np

#  Ascent / descent statistics of a hiking trail sampled from an SRTM tile.
#  Heights come as unsigned 16 bit metres, as in the tile.


def make_inputs():
    rng = np.random.default_rng(8848)
    base = 900 + 400 * np.sin(np.linspace(0, 5, 700))
    heights = np.round(base + rng.normal(0, 1.5, 700)).astype(np.uint16)
    spacing = 30.0
    return heights, spacing


def longest_run(flags):
    best = here = 0
    for f in flags:
        here = here + 1 if f else 0
        best = max(best, here)
    return best


def run(heights, spacing):
    step = np.diff(heights)
    up = step[step > 0].sum()
    down = step[step < 0].sum()
    slope = step / spacing
    steepest = np.degrees(np.arctan(slope.max()))
    length = spacing * (heights.size - 1) / 1000.0
    print(f"length {length:.2f} km, ascent {up} m, descent {abs(int(down))} m")
    print("steepest: %.5f deg" % steepest)
    print("longest level stretch:", longest_run(step == 0))


def exact(heights, spacing):
    h = [int(v) for v in heights]
    d = [b - a for a, b in zip(h, h[1:])]
    steep = float(np.degrees(np.arctan(max(d) / spacing)))
    return ([round(spacing * len(d) / 1000, 2)], sum(v for v in d if v > 0),
            -sum(v for v in d if v < 0), [round(steep, 5)], longest_run([v == 0 for v in d]))


ANSWER = {
    "line": 24,
    "kind": "wrap",
    "operation": "np.diff of uint16 heights stays uint16, negative steps wrap to about 65530",
    "outputs": {
        "length (printed)": {"size": 1, "differ": 0},
        "ascent (printed)": {"size": 1, "differ": 1},
        "descent (printed)": {"size": 1, "differ": 1},
        "steepest (printed)": {"size": 1, "differ": 1},
        "longest level stretch (printed)": {"size": 1, "differ": 0},
    },
    "fix": "step = np.diff(heights.astype(np.int32))",
}
