"""Weighted course marks for one class, with grade bands and a class average."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(11)
    raw = rng.integers(38, 97, size=(24, 3))
    weights = np.array([0.25, 0.30, 0.45])
    return raw, weights


def run(raw, weights):
    final = np.zeros_like(raw[:, 0])
    for i, row in enumerate(raw):
        final[i] = np.dot(row, weights)
    best_exam = raw[:, 2].max()
    exam_mean = raw[:, 2].mean()
    rank_by_exam = np.argsort(-raw[:, 2], kind="stable")
    print(f"class average {final.mean():.3f}, best exam {best_exam}")
    return {
        "final": final,
        "class_average": final.mean(),
        "exam_mean": exam_mean,
        "rank_by_exam": rank_by_exam,
    }


ANSWER = {
    "line": 15,
    "fix_line": 13,
    "outputs": {
        "final": {"differ": 19},
        "class_average": {"differ": 1},
        "exam_mean": {"differ": 0},
        "rank_by_exam": {"differ": 0},
    },
    "why": "float marks are stored into an integer array, which drops the fractions",
}
