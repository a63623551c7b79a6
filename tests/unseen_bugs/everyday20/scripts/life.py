"""Conway's game of life on a torus, cells in one byte each."""
import argparse

import numpy as np

GLIDER = """
.#.
..#
###
"""


def from_text(text):
    rows = text.split()
    return np.array([[ch == "#" for ch in row] for row in rows], dtype=np.uint8)


def put(board, pattern, y, x):
    h, w = pattern.shape
    board[y:y + h, x:x + w] = pattern


def neighbours(board):
    total = np.zeros_like(board)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if dy or dx:
                total += np.roll(board, (dy, dx), axis=(0, 1))
    return total


def step(board):
    n = neighbours(board)
    return ((n == 3) | ((board == 1) & (n == 2))).astype(np.uint8)


def show(board):
    return "\n".join("".join(".#"[c] for c in row) for row in board)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--size", type=int, default=20)
    p.add_argument("--steps", type=int, default=60)
    a = p.parse_args()
    board = np.zeros((a.size, a.size), dtype=np.uint8)
    put(board, from_text(GLIDER), 1, 1)
    put(board, from_text("###"), 12, 8)
    alive = []
    for _ in range(a.steps):
        board = step(board)
        alive.append(int(board.sum()))
    print(show(board))
    print(f"alive: now {alive[-1]}, mean {np.mean(alive):.2f}, density {board.mean():.3f}")


if __name__ == "__main__":
    main()
