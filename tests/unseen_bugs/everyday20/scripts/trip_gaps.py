"""How long do the bikes stand idle between two trips?"""
import numpy as np

TRIPS = """\
2026-05-04T07:58:12 2026-05-04T08:11:40 3.1
2026-05-04T08:12:05 2026-05-04T08:20:31 1.8
2026-05-04T08:21:01 2026-05-04T08:45:59 5.6
2026-05-04T08:47:44 2026-05-04T08:58:03 2.2
2026-05-04T09:00:33 2026-05-04T09:17:20 4.0
"""

EPOCH = np.datetime64("1970-01-01T00:00:00")
SECOND = np.timedelta64(1, "s")


def seconds(stamp):
    return (np.datetime64(stamp) - EPOCH) / SECOND


def read_trips(text):
    lines = text.strip().splitlines()
    table = np.zeros((len(lines), 3), dtype="f4")
    for i, line in enumerate(lines):
        start, end, km = line.split()
        table[i] = seconds(start), seconds(end), float(km)
    return table


def idle_times(table):
    start, end = table[:, 0], table[:, 1]
    return start[1:] - end[:-1]


def main():
    table = read_trips(TRIPS)
    idle = idle_times(table)
    ride = table[:, 1] - table[:, 0]
    print("idle seconds:", " ".join(f"{s:.0f}" for s in idle))
    print("ride seconds:", " ".join(f"{s:.0f}" for s in ride))
    print(f"average speed {3600 * table[:, 2].sum() / ride.sum():.2f} km/h")
    day = np.datetime64("2026-05-04") + np.timedelta64(90, "D")
    print(f"next service on {day}")


if __name__ == "__main__":
    main()
