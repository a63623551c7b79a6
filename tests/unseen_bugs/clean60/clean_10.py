"""Conway's game of life on a torus, boards as uint8."""
import numpy as np

GENERATIONS = 12


def neighbours(board):
    """At most eight, so uint8 has ample room."""
    n = np.zeros_like(board)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if dy or dx:
                n += np.roll(board, (dy, dx), axis=(0, 1))
    return n


def step(board):
    n = neighbours(board)
    born = (board == 0) & (n == 3)
    survive = (board == 1) & ((n == 2) | (n == 3))
    return (born | survive).astype(np.uint8)


def main(board):
    population = np.empty(GENERATIONS, dtype=np.int64)
    for g in range(GENERATIONS):
        board = step(board)
        population[g] = np.count_nonzero(board)
    return board, population


def inputs():
    board = np.zeros((16, 16), dtype=np.uint8)
    glider = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=np.uint8)
    board[2:5, 2:5] = glider
    board[10, 9:12] = 1
    return (board,)
