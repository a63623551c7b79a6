"""Graph measures of a random road network between towns.

Builds a planar-ish graph from the nearest neighbours, finds all shortest paths (Floyd-Warshall with
predecessors), betweenness by path counting, PageRank, a minimum spanning tree and the Fiedler partition.
"""
# outputs: 19
# (4 returned, 13 numbers printed, 2 arrays written)
import numpy as np

INF = np.inf


def towns(n, rng):
    xy = rng.uniform(0, 100, size=(n, 2)).round(1)
    people = (10 ** rng.uniform(3, 5.5, size=n)).astype(np.int64)
    return xy, people


def road_graph(xy, k=4):
    d = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    n = len(xy)
    w = np.full((n, n), INF)
    near = np.argpartition(d, k + 1, axis=1)[:, : k + 1]
    rows = np.repeat(np.arange(n), k + 1)
    w[rows, near.ravel()] = d[rows, near.ravel()]
    w = np.minimum(w, w.T)
    w[np.isfinite(w)] *= 1.2        # roads are not straight
    np.fill_diagonal(w, 0.0)
    return w


def floyd_warshall(w):
    dist = w.copy()
    n = len(w)
    pred = np.where(np.isfinite(w), np.arange(n)[:, None], -1)
    for k in range(n):
        alt = dist[:, k, None] + dist[None, k]
        better = alt < dist
        dist[better] = alt[better]
        pred = np.where(better, pred[k], pred)
    return dist, pred


def route(pred, a, b):
    path = [b]
    while path[-1] != a:
        path.append(int(pred[a, path[-1]]))
    return path[::-1]


def betweenness(pred):
    n = len(pred)
    use = np.zeros(n, dtype=np.int64)
    for a in range(n):
        for b in range(a + 1, n):
            if pred[a, b] >= 0:
                use[route(pred, a, b)[1:-1]] += 1
    return use


def pagerank(adjacent, damping=0.85, tol=1e-12):
    out = adjacent.sum(axis=1, keepdims=True)
    p = adjacent / out
    n = len(p)
    r = np.full(n, 1 / n)
    for step in range(200):
        new = (1 - damping) / n + damping * (r @ p)
        if np.abs(new - r).sum() < tol:
            return new, step
        r = new
    return r, 200


def spanning_tree(w):
    """Prim's algorithm; returns edges and total length."""
    n = len(w)
    inside = np.zeros(n, dtype=bool)
    inside[0] = True
    cost, parent = w[0].copy(), np.zeros(n, dtype=int)
    cost[0] = INF
    edges, total = [], 0.0
    for _ in range(n - 1):
        j = int(np.argmin(np.where(inside, INF, cost)))
        edges.append((int(parent[j]), j))
        total += cost[j]
        inside[j] = True
        closer = (w[j] < cost) & ~inside
        cost[closer] = w[j, closer]
        parent[closer] = j
    return np.array(edges), total


def main():
    rng = np.random.default_rng(1736)
    xy, people = towns(34, rng)
    w = road_graph(xy)
    dist, pred = floyd_warshall(w)
    adjacent = (np.isfinite(w) & (w > 0)).astype(np.int8)
    degree = adjacent.sum(axis=1)
    print("towns", len(xy), "roads", int(adjacent.sum()) // 2, "mean degree", degree.mean().round(3))
    if not np.isfinite(dist).all():
        raise RuntimeError("the network is not connected")

    a, b = np.unravel_index(dist.argmax(), dist.shape)
    print("diameter", round(dist[a, b], 3), "with stops", len(route(pred, a, b)) - 2)
    use = betweenness(pred)
    rank, steps = pagerank(adjacent)
    print("pagerank converged after", steps, "rounds; sum", rank.sum().round(9))
    edges, length = spanning_tree(w)
    print(f"spanning tree length {length:.3f} of {w[np.isfinite(w)].sum() / 2:.3f}")

    laplacian = np.diag(degree) - adjacent
    values, vectors = np.linalg.eigh(laplacian.astype(float))
    side = vectors[:, 1] > 0
    cut = adjacent[np.ix_(side, ~side)].sum()
    print("algebraic connectivity", values[1].round(6), "cut", cut, "split", side.sum(), (~side).sum())

    access = (people[None, :] * np.exp(-dist / 30)).sum(axis=1)
    order = np.lexsort((people, -use))
    np.savetxt("towns.txt", np.column_stack([order, use[order], people[order]]), fmt="%d")
    np.save("distances.npy", dist)
    return use, rank, access, edges


if __name__ == "__main__":
    main()
