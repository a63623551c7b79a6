import numpy as np
import pandas as pd


def make_inputs():
    g = np.random.default_rng(140)
    n = 180
    post = 1_605_000_000_000_000_000 + np.cumsum(g.integers(10**9, 10**12, size=n))
    parent = post[np.maximum(np.arange(n) - g.integers(1, 30, size=n), 0)]
    is_reply = g.random(n) < 0.55
    is_reply[0] = False
    likes = g.poisson(6, size=n)
    return post, parent, is_reply, likes


def run(post, parent, is_reply, likes):
    """Export the reply graph; posts that start a thread get -1 as parent."""
    replied_to = np.where(is_reply, parent, np.nan)

    frame = pd.DataFrame({"post": post, "parent": replied_to, "likes": likes})
    frame = frame[frame["likes"] > 0]
    frame["parent"] = frame["parent"].fillna(-1).astype("int64")
    frame.to_csv("replies.csv", index=False)

    per_thread = frame[frame.parent != -1].groupby("parent")["likes"].sum()
    print("threads with answers:", len(per_thread))
    known = frame["parent"].isin(frame["post"])
    print("answers whose parent is in the table:", int(known.sum()))


def exact(post, parent, is_reply, likes):
    rows = [(int(a), int(b) if c else -1, int(d))
            for a, b, c, d in zip(post, parent, is_reply, likes) if d > 0]
    posts = {r[0] for r in rows}
    return ([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows],
            len({r[1] for r in rows if r[1] != -1}), sum(1 for r in rows if r[1] in posts))


ANSWER = {
    "line": 18,
    "kind": "rounding",
    "operation": "np.where of int64 ids with nan gives float64; ids above 2**53 are rounded to multiples of 256",
    "outputs": {
        "replies.csv column post": {"size": 180, "differ": 0},
        "replies.csv column parent": {"size": 180, "differ": 100},
        "replies.csv column likes": {"size": 180, "differ": 0},
        "threads with answers (printed)": {"size": 1, "differ": 0},
        "answers whose parent is in the table (printed)": {"size": 1, "differ": 1},
    },
    "fix": "replied_to = np.where(is_reply, parent, -1)",
}
