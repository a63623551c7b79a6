"""A league season: fixtures, results, table with tie breaks, Elo ratings, form and streaks."""
import json

import numpy as np

TEAMS = np.array(["Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Oak"])
K_FACTOR = 24.0
HOME_EDGE = 60.0


class Season:
    """Double round robin by the circle method."""

    def __init__(self, n_teams):
        self.n = n_teams
        self.fixtures = list(self._schedule())

    def _schedule(self):
        ring = list(range(self.n))
        for leg in range(2):
            for week in range(self.n - 1):
                for k in range(self.n // 2):
                    a, b = ring[k], ring[self.n - 1 - k]
                    swap = (week + leg) % 2 == 1
                    yield (leg * (self.n - 1) + week, b, a) if swap else (leg * (self.n - 1) + week, a, b)
                ring = [ring[0], ring[-1]] + ring[1:-1]

    def play(self, strength, rng):
        games = np.zeros(len(self.fixtures), dtype=[
            ("week", "i2"), ("home", "i1"), ("away", "i1"), ("hg", "i1"), ("ag", "i1"), ("crowd", "i4"),
        ])
        for i, (week, home, away) in enumerate(self.fixtures):
            gap = strength[home] - strength[away]
            home_goals = rng.poisson(1.45 * np.exp(0.5 * gap))
            away_goals = rng.poisson(1.10 * np.exp(-0.5 * gap))
            crowd = int(rng.normal(9_000 + 2_500 * strength[home], 900))
            games[i] = (week, home, away, home_goals, away_goals, max(crowd, 0))
        return games


def points_of(own, other):
    return np.select([own > other, own == other], [3, 1], default=0)


def league_table(games, n):
    table = np.zeros(n, dtype=[("played", "i4"), ("points", "i4"), ("gf", "i4"), ("ga", "i4"), ("wins", "i4")])
    for side, own, other in (("home", "hg", "ag"), ("away", "ag", "hg")):
        who = games[side]
        np.add.at(table["played"], who, 1)
        np.add.at(table["points"], who, points_of(games[own], games[other]))
        np.add.at(table["gf"], who, games[own])
        np.add.at(table["ga"], who, games[other])
        np.add.at(table["wins"], who, games[own] > games[other])
    difference = table["gf"] - table["ga"]
    order = np.lexsort((np.arange(n), -table["gf"], -difference, -table["points"]))
    return table, difference, order


def elo(games, n):
    rating = np.full(n, 1500.0)
    history = [rating.copy()]
    for game in games:
        h, a = int(game["home"]), int(game["away"])
        expected = 1.0 / (1.0 + 10.0 ** ((rating[a] - rating[h] - HOME_EDGE) / 400.0))
        result = 0.5 * (np.sign(int(game["hg"]) - int(game["ag"])) + 1.0)
        change = K_FACTOR * (result - expected)
        rating[h] += change
        rating[a] -= change
        history.append(rating.copy())
    return rating, np.array(history)


def longest_unbeaten(games, team):
    mask = (games["home"] == team) | (games["away"] == team)
    own = np.where(games["home"] == team, games["hg"], games["ag"])[mask]
    other = np.where(games["home"] == team, games["ag"], games["hg"])[mask]
    best = current = 0
    for good in own >= other:
        current = current + 1 if good else 0
        best = max(best, current)
    return best


def main():
    rng = np.random.default_rng(1414)
    strength = rng.normal(0.0, 0.5, TEAMS.size)
    games = Season(TEAMS.size).play(strength, rng)
    table, difference, order = league_table(games, TEAMS.size)
    rating, history = elo(games, TEAMS.size)
    print(f"{'':<3s}{'team':<8s}{'P':>3s}{'W':>4s}{'F':>4s}{'A':>4s}{'D':>5s}{'Pts':>5s}{'Elo':>8s}")
    for place, t in enumerate(order, start=1):
        row = table[t]
        print(f"{place:<3d}{TEAMS[t]:<8s}{row['played']:>3d}{row['wins']:>4d}{row['gf']:>4d}{row['ga']:>4d}"
              f"{difference[t]:>+5d}{row['points']:>5d}{rating[t]:>8.1f}")
    agreement = np.corrcoef(rating, table["points"])[0, 1]
    streaks = {str(TEAMS[t]): longest_unbeaten(games, t) for t in range(TEAMS.size)}
    crowd = games["crowd"].sum(dtype=np.int64)
    print("spectators %d, per game %.1f, rating and points correlate %.4f" % (crowd, crowd / games.size, agreement))
    with open("season.json", "w") as handle:
        json.dump({"order": TEAMS[order].tolist(), "unbeaten": streaks, "elo": rating.round(2).tolist()}, handle)
    np.save("games.npy", games)
    history.astype(np.float32).tofile("history.f4")


if __name__ == "__main__":
    main()
