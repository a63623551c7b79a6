"""Web server log: parsing of lines, traffic by hour, status codes, sessions, slow requests."""
import csv
import logging
import sys

import numpy as np

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(message)s", force=True)
log = logging.getLogger("access")

PATHS = ["/", "/login", "/search", "/item/12", "/item/77", "/cart", "/static/app.js", "/api/v1/price"]
SESSION_GAP = np.timedelta64(30, "m")


def write_log(path, n=700):
    rng = np.random.default_rng(1101)
    start = np.datetime64("2024-05-14T00:00:00.000")
    offsets = np.sort(rng.integers(0, 86_400_000, size=n)).astype("m8[ms]")
    with open(path, "w") as handle:
        for stamp in start + offsets:
            host = f"10.{rng.integers(0, 2)}.{rng.integers(0, 4)}.{rng.integers(1, 9)}"
            page = PATHS[int(rng.integers(0, len(PATHS)))]
            status = rng.choice([200, 200, 200, 200, 304, 404, 500])
            size = 0 if status == 304 else int(rng.lognormal(8.5, 1.4))
            took = rng.gamma(2.0, 35.0)
            handle.write(f"{stamp} {host} GET {page} {status} {size} {took:.3f}\n")


def read_log(path):
    with open(path) as handle:
        fields = np.array([line.split() for line in handle])
    return {
        "time": fields[:, 0].astype("M8[ms]"),
        "host": fields[:, 1],
        "path": fields[:, 3],
        "status": fields[:, 4].astype(np.int16),
        "bytes": fields[:, 5].astype(np.int64),
        "took": fields[:, 6].astype(np.float64),
    }


def host_number(host):
    """Address as a 32-bit number."""
    parts = np.array([h.split(".") for h in host]).astype(np.uint32)
    return (parts[:, 0] << 24) | (parts[:, 1] << 16) | (parts[:, 2] << 8) | parts[:, 3]


def hourly(records):
    day = records["time"].astype("M8[D]")
    hour = ((records["time"] - day) // np.timedelta64(1, "h")).astype(np.intp)
    requests = np.bincount(hour, minlength=24)
    volume = np.zeros(24, dtype=np.int64)
    np.add.at(volume, hour, records["bytes"])
    return requests, volume


def status_classes(status):
    values, counts = np.unique(status // 100, return_counts=True)
    return {f"{v}xx": int(c) for v, c in zip(values, counts)}


def sessions(records):
    """Number and mean duration of visits; a pause of half an hour ends a visit."""
    number = host_number(records["host"])
    order = np.lexsort((records["time"], number))
    who, when = number[order], records["time"][order]
    new = np.ones(who.size, dtype=bool)
    new[1:] = (who[1:] != who[:-1]) | (when[1:] - when[:-1] > SESSION_GAP)
    first = np.flatnonzero(new)
    last = np.append(first[1:], who.size) - 1
    duration = (when[last] - when[first]) / np.timedelta64(1, "s")
    return first.size, float(duration.mean())


def path_report(records):
    for page in np.unique(records["path"]):
        mask = records["path"] == page
        took = records["took"][mask]
        yield str(page), int(mask.sum()), np.percentile(took, [50, 95]), float(took.max())


def main():
    write_log("access.log")
    records = read_log("access.log")
    requests, volume = hourly(records)
    log.info("%d requests, %d bytes", requests.sum(), volume.sum())
    log.info("busiest hour %02d with %d requests", requests.argmax(), requests.max())
    for name, count in status_classes(records["status"]).items():
        log.info("status %s: %d", name, count)
    n_sessions, mean_duration = sessions(records)
    log.info("%d sessions, %.1f s on average", n_sessions, mean_duration)
    is_static = np.char.startswith(records["path"], "/static")
    share = records["bytes"][is_static].sum() / records["bytes"].sum()
    log.info("static files %.2f %% of the volume", 100.0 * share)
    with open("paths.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["path", "requests", "p50_ms", "p95_ms", "max_ms"])
        for page, count, (p50, p95), slowest in path_report(records):
            writer.writerow([page, count, f"{p50:.2f}", f"{p95:.2f}", f"{slowest:.2f}"])
    np.save("volume.npy", volume)
    slow = records["took"] > records["took"].mean() + 3 * records["took"].std()
    print(f"{slow.sum()} slow requests from {np.unique(records['host'][slow]).size} hosts")


if __name__ == "__main__":
    main()
