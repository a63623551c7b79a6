"""Which charging station is nearest to each robot? Floor plan in millimetres."""
import io

import numpy as np

STATIONS = """\
name x y
dock 1000 1200
ramp 70300 3100
gate 21000 69800
yard 70900 68500
"""
ROBOTS = """\
id x y
7 4500 2100
8 22500 67000
9 2200 3900
11 68000 2500
"""


def read_table(text):
    names, xy = [], []
    for line in io.StringIO(text).readlines()[1:]:
        name, x, y = line.split()
        names.append(name)
        xy.append((int(x), int(y)))
    return names, np.array(xy, dtype=np.int32)


def squared_distances(a, b):
    diff = a[:, None, :] - b[None, :, :]
    return (diff ** 2).sum(axis=-1)


def assign(robots, stations):
    d2 = squared_distances(robots, stations)
    best = d2.argmin(axis=1)
    metres = np.linalg.norm(robots - stations[best], axis=1) / 1000
    return best, metres


def main():
    station_names, stations = read_table(STATIONS)
    robot_ids, robots = read_table(ROBOTS)
    best, metres = assign(robots, stations)
    for rid, b, m in zip(robot_ids, best, metres):
        print(f"robot {rid}: {station_names[b]} ({m:.1f} m)")


if __name__ == "__main__":
    main()
