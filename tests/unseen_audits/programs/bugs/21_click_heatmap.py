"""Heat map of mouse clicks on a page, binned into square cells."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(640)
    button = rng.normal([410, 95], [9, 6], size=(900, 2))
    menu = rng.normal([60, 300], [14, 70], size=(500, 2))
    rest = rng.uniform([0, 0], [800, 600], size=(400, 2))
    return np.vstack([button, menu, rest]), (800, 600), 40


def run(clicks, page, cell):
    width, height = page
    nx, ny = width // cell, height // cell
    inside = ((clicks >= 0) & (clicks < [width, height])).all(axis=1)
    cx, cy = (clicks[inside] // cell).astype(np.intp).T

    heat = np.zeros((ny, nx), dtype=np.uint8)
    np.add.at(heat, (cy, cx), 1)

    hottest = np.unravel_index(heat.argmax(), heat.shape)
    np.savetxt("heat.txt", heat, fmt="%d")
    print("clicks on page:", np.count_nonzero(inside))
    print("hottest cell: row %d column %d with %d clicks" % (*hottest, heat[hottest]))
    return heat.sum() / heat.size


def exact(clicks, page, cell):
    nx, ny = page[0] // cell, page[1] // cell
    grid = [[0] * nx for _ in range(ny)]
    n = 0
    for x, y in clicks.tolist():
        if 0 <= x < page[0] and 0 <= y < page[1]:
            grid[int(y // cell)][int(x // cell)] += 1
            n += 1
    flat = [v for row in grid for v in row]
    k = flat.index(max(flat))
    return [n / (nx * ny)], grid, n, [k // nx, k % nx], max(flat)


ANSWER = {
    "line": 20,
    "kind": "wrap",
    "operation": "np.add.at counts in a uint8 grid, cells with more than 255 clicks wrap modulo 256",
    "outputs": {
        "mean per cell (returned)": {"size": 1, "differ": 1},
        "heat.txt": {"size": 300, "differ": 1},
        "clicks on page (printed)": {"size": 1, "differ": 0},
        "hottest cell row and column (printed)": {"size": 2, "differ": 1},
        "hottest cell clicks (printed)": {"size": 1, "differ": 1},
    },
    "fix_line": 19,
    "fix": "heat = np.zeros((ny, nx), dtype=np.int64)",
}
