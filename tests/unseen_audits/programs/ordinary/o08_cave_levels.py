"""Cave level for a game: cellular automaton, flood fill, treasures, shortest walk, fights."""
from collections import deque
from dataclasses import dataclass

import numpy as np

WALL, FLOOR, WATER, GOLD = 1, 0, 2, 3
GLYPHS = np.array([".", "#", "~", "$"])


@dataclass
class Level:
    tiles: np.ndarray
    entrance: tuple
    exit: tuple
    walk: list
    gold: np.ndarray


@dataclass
class Hero:
    life: int = 120
    attack: int = 9
    armour: int = 3


def make_inputs():
    return 808, (28, 44), 0.43


def count_walls(tiles):
    padded = np.pad((tiles == WALL).astype(np.int8), 1, constant_values=1)
    total = np.zeros(tiles.shape, dtype=np.int8)
    for dy in (0, 1, 2):
        for dx in (0, 1, 2):
            if (dy, dx) != (1, 1):
                total += padded[dy:dy + tiles.shape[0], dx:dx + tiles.shape[1]]
    return total


def carve(rng, shape, fill, rounds=5):
    tiles = (rng.random(shape) < fill).astype(np.uint8)
    for _ in range(rounds):
        walls = count_walls(tiles)
        tiles = np.where(walls >= 5, WALL, np.where(walls <= 3, FLOOR, tiles)).astype(np.uint8)
    tiles[[0, -1], :] = WALL
    tiles[:, [0, -1]] = WALL
    return tiles


def steps_from(tiles, start):
    """Number of steps to each open tile, -1 where there is no way."""
    steps = np.full(tiles.shape, -1, dtype=np.int32)
    steps[start] = 0
    queue = deque([start])
    while queue:
        r, c = queue.popleft()
        for r2, c2 in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            if tiles[r2, c2] != WALL and steps[r2, c2] < 0:
                steps[r2, c2] = steps[r, c] + 1
                queue.append((r2, c2))
    return steps


def largest_cave(tiles):
    best, best_size = None, 0
    seen = tiles == WALL
    for r, c in np.argwhere(~seen).tolist():
        if seen[r, c]:
            continue
        region = steps_from(tiles, (r, c)) >= 0
        seen |= region
        size = int(region.sum())
        if size > best_size:
            best, best_size = region, size
    return best


def trace_back(steps, goal):
    walk = [goal]
    while steps[walk[-1]] > 0:
        r, c = walk[-1]
        for near in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            if steps[near] == steps[r, c] - 1:
                walk.append(near)
                break
    return walk[::-1]


def fights(rng, hero, n_monsters):
    log = []
    for k in range(n_monsters):
        monster = int(rng.integers(8, 25))
        while monster > 0 and hero.life > 0:
            monster -= hero.attack + int(rng.integers(1, 7))
            if monster > 0:
                hero.life -= max(1, int(rng.integers(2, 11)) - hero.armour)
        log.append(hero.life)
    return np.array(log)


def run(seed, shape, fill):
    rng = np.random.default_rng(seed)
    tiles = carve(rng, shape, fill)
    region = largest_cave(tiles)
    tiles[~region] = WALL
    open_tiles = np.argwhere(region)
    entrance = tuple(open_tiles[open_tiles[:, 1].argmin()].tolist())
    steps = steps_from(tiles, entrance)
    goal = tuple(int(v) for v in np.unravel_index(steps.argmax(), steps.shape))
    spots = open_tiles[rng.choice(len(open_tiles), size=9, replace=False)]
    tiles[tuple(spots[:4].T)] = WATER
    tiles[tuple(spots[4:].T)] = GOLD
    gold = rng.integers(10, 200, size=5)
    level = Level(tiles, entrance, goal, trace_back(steps, goal), gold)
    lives = fights(rng, Hero(), 6)
    for row in GLYPHS[tiles]:
        print("".join(row))
    print(f"walk of {len(level.walk) - 1} steps, {gold.sum()} gold, life left {lives[-1]}")
    tiles.tofile("level.bin")
    return level, lives, float(steps[region].mean())
