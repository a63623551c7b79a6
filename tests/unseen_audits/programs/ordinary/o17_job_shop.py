"""Job shop with dispatching rules: event queue, machine loads, tardiness, local search on priorities."""
import csv
import heapq

import numpy as np

N_JOBS, N_MACHINES = 12, 5
SHIFT = np.timedelta64(8, "h")
DAY_START = np.datetime64("2024-09-02T06:00")


def make_shop(seed):
    rng = np.random.default_rng(seed)
    route = np.stack([rng.permutation(N_MACHINES) for _ in range(N_JOBS)]).astype(np.int8)
    minutes = rng.integers(8, 65, size=(N_JOBS, N_MACHINES)).astype(np.int16)
    release = np.sort(rng.integers(0, 120, size=N_JOBS)).astype(np.int32)
    slack = rng.uniform(1.4, 2.6, N_JOBS)
    due = release + np.rint(slack * minutes.sum(axis=1)).astype(np.int32)
    weight = rng.choice([1, 2, 4], size=N_JOBS, p=[0.5, 0.3, 0.2])
    return route, minutes, release, due, weight


def rule_spt(job, step, shop):
    return shop[1][job, step]


def rule_edd(job, step, shop):
    return shop[3][job]


def rule_weighted(job, step, shop):
    remaining = shop[1][job, step:].sum()
    return remaining / shop[4][job]


RULES = {"shortest": rule_spt, "due date": rule_edd, "weighted": rule_weighted}


def simulate(shop, priority):
    """Start and end of each operation; machines take the waiting job of lowest priority value."""
    route, minutes, release, _, _ = shop
    start = np.full(minutes.shape, -1, dtype=np.int64)
    end = np.full(minutes.shape, -1, dtype=np.int64)
    waiting = [[] for _ in range(N_MACHINES)]
    busy = np.zeros(N_MACHINES, dtype=bool)
    events = [(int(t), 0, job, 0) for job, t in enumerate(release)]
    heapq.heapify(events)
    while events:
        now, kind, job, step = heapq.heappop(events)
        if kind == 1:
            busy[route[job, step]] = False
            step += 1
        if step < N_MACHINES:
            machine = int(route[job, step])
            heapq.heappush(waiting[machine], (float(priority(job, step, shop)), job, step))
        for machine in range(N_MACHINES):
            if busy[machine] or not waiting[machine]:
                continue
            _, j, s = heapq.heappop(waiting[machine])
            busy[machine] = True
            start[j, s] = now
            end[j, s] = now + int(minutes[j, s])
            heapq.heappush(events, (int(end[j, s]), 1, j, s))
    return start, end


def measures(shop, end):
    _, _, release, due, weight = shop
    done = end[:, -1]
    late = np.maximum(done - due, 0)
    return {
        "makespan": int(done.max()),
        "mean_flow": float((done - release).mean()),
        "weighted_tardiness": int((weight * late).sum()),
        "n_late": int(np.count_nonzero(late)),
    }


def utilisation(shop, end):
    route, minutes = shop[0], shop[1]
    load = np.zeros(N_MACHINES, dtype=np.int64)
    np.add.at(load, route.ravel(), minutes.ravel())
    return load, load / end.max()


def local_search(shop, rounds=150):
    rng = np.random.default_rng(3)
    order = np.argsort(shop[3], kind="stable").astype(np.float64)
    best = measures(shop, simulate(shop, lambda j, s, _: order[j])[1])
    for _ in range(rounds):
        a, b = rng.choice(N_JOBS, size=2, replace=False)
        order[[a, b]] = order[[b, a]]
        trial = measures(shop, simulate(shop, lambda j, s, _: order[j])[1])
        if trial["weighted_tardiness"] <= best["weighted_tardiness"]:
            best = trial
        else:
            order[[a, b]] = order[[b, a]]
    return best, order


def main():
    shop = make_shop(1717)
    print(f"{'rule':<10s}{'span':>7s}{'flow':>9s}{'tardy':>8s}{'late':>6s}")
    results = {}
    for name, rule in RULES.items():
        start, end = simulate(shop, rule)
        results[name] = (measures(shop, end), start, end)
    best, order = local_search(shop)
    for name, m in [(k, v[0]) for k, v in results.items()] + [("search", best)]:
        print(f"{name:<10s}{m['makespan']:>7d}{m['mean_flow']:>9.2f}{m['weighted_tardiness']:>8d}{m['n_late']:>6d}")
    chosen = min(results, key=lambda k: results[k][0]["weighted_tardiness"])
    _, start, end = results[chosen]
    load, share = utilisation(shop, end)
    print("loads", load.tolist(), "use", " ".join(f"{u:.3f}" for u in share))
    finish = DAY_START + end[:, -1].astype("m8[m]")
    print("all done at", finish.max(), "after", f"{(finish.max() - DAY_START) / SHIFT:.3f}", "shifts")
    with open("plan.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["job", "step", "machine", "begin", "end"])
        for j, s in np.ndindex(start.shape):
            writer.writerow([j, s, int(shop[0][j, s]), DAY_START + int(start[j, s]), DAY_START + int(end[j, s])])
    np.savetxt("order.txt", np.argsort(order, kind="stable"), fmt="%d")


if __name__ == "__main__":
    main()
