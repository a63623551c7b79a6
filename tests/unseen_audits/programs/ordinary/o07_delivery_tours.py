"""Delivery tours from one depot: savings method, two-opt improvement, loads and times."""
import itertools

import numpy as np

CAPACITY = 120
SPEED_KMH = 38.0
SERVICE_MIN = 6.5


def make_inputs():
    rng = np.random.default_rng(70707)
    n = 22
    xy = np.round(rng.normal(0.0, 12.0, size=(n + 1, 2)), 2)
    xy[0] = 0.0
    demand = rng.integers(5, 31, size=n + 1).astype(np.int32)
    demand[0] = 0
    ready = rng.integers(0, 180, size=n + 1)
    return xy, demand, ready


def distance_matrix(xy):
    gap = xy[:, None, :] - xy[None, :, :]
    return np.sqrt(np.einsum("ijk,ijk->ij", gap, gap))


def tour_length(tour, dist):
    path = np.concatenate([[0], tour, [0]])
    return float(dist[path[:-1], path[1:]].sum())


def savings_tours(dist, demand):
    """Clarke and Wright: begin with one tour for each customer and join ends."""
    n = len(demand)
    tours = {i: [i] for i in range(1, n)}
    owner = {i: i for i in range(1, n)}
    rows, cols = np.triu_indices(n, k=1)
    keep = rows > 0
    rows, cols = rows[keep], cols[keep]
    saving = dist[0, rows] + dist[0, cols] - dist[rows, cols]
    for k in np.argsort(-saving, kind="stable"):
        if saving[k] <= 0:
            break
        i, j = int(rows[k]), int(cols[k])
        a, b = owner[i], owner[j]
        if a == b:
            continue
        if demand[tours[a]].sum() + demand[tours[b]].sum() > CAPACITY:
            continue
        first, second = tours[a], tours[b]
        if first[0] == i:
            first = first[::-1]
        if second[-1] == j:
            second = second[::-1]
        if first[-1] != i or second[0] != j:
            continue
        tours[a] = first + second
        del tours[b]
        for c in tours[a]:
            owner[c] = a
    return [np.array(t) for t in tours.values()]


def two_opt(tour, dist):
    best = tour.copy()
    length = tour_length(best, dist)
    improved = True
    while improved:
        improved = False
        for i, j in itertools.combinations(range(len(best)), 2):
            trial = best.copy()
            trial[i:j + 1] = trial[i:j + 1][::-1]
            new = tour_length(trial, dist)
            if new < length - 1e-9:
                best, length, improved = trial, new, True
    return best, length


def timetable(tour, dist, ready):
    """Arrival at each stop in minutes, waiting until the stop is ready."""
    clock, here, arrivals, waiting = 0.0, 0, [], 0.0
    for stop in tour:
        clock += dist[here, stop] / SPEED_KMH * 60.0
        wait = max(0.0, ready[stop] - clock)
        waiting += wait
        arrivals.append(clock)
        clock += wait + SERVICE_MIN
        here = stop
    clock += dist[here, 0] / SPEED_KMH * 60.0
    return np.array(arrivals), waiting, clock


def run(xy, demand, ready):
    dist = distance_matrix(xy)
    start = savings_tours(dist, demand)
    before = sum(tour_length(t, dist) for t in start)
    tours, lengths = zip(*(two_opt(t, dist) for t in start))
    loads = np.array([demand[t].sum() for t in tours])
    back = np.zeros(len(tours))
    waits = np.zeros(len(tours))
    arrival = np.zeros(len(demand))
    for k, tour in enumerate(tours):
        times, waits[k], back[k] = timetable(tour, dist, ready)
        arrival[tour] = times
        print("tour %d: %2d stops, load %3d, %6.2f km, back at %5.1f min" % (k, len(tour), loads[k], lengths[k], back[k]))
    order = np.concatenate(tours)
    np.savetxt("arrivals.txt", np.column_stack([order, arrival[order]]), fmt=["%3d", "%8.2f"])
    return {
        "order": order,
        "loads": loads,
        "fill": loads / CAPACITY,
        "lengths": np.array(lengths),
        "gain": before - sum(lengths),
        "arrival": arrival,
        "waiting": waits,
        "back": back,
    }
