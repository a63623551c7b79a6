"""Registry of ticket numbers: void tickets masked out, check digits, batch gaps."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(306)
    number = np.sort(rng.integers(4 * 10**16, 5 * 10**16, size=50))
    void = rng.random(50) < 0.2
    return number, void


def check_digit(number):
    rest = number.copy()
    total = np.zeros_like(number)
    weight = 3
    while rest.any():
        total += weight * (rest % 10)
        rest //= 10
        weight = 4 - weight
    return (10 - total % 10) % 10


def run(number, void):
    valid = np.ma.masked_array(number, mask=void)
    kept = valid.compressed()
    shown = valid.filled(-1)
    digit = check_digit(kept)
    full = kept * 10 + digit
    gaps = np.diff(kept)
    first = int(valid.min())
    print("%d valid tickets, first %d" % (valid.count(), first))
    with open("tickets.txt", "w") as handle:
        handle.writelines(f"{n}\n" for n in full.tolist())
    return {
        "shown": shown,
        "digit": digit,
        "full": full,
        "gaps": gaps,
        "first": first,
        "last": int(valid.max()),
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "shown": {"differ": 0},
        "digit": {"differ": 0},
        "full": {"differ": 0},
        "gaps": {"differ": 0},
        "first": {"differ": 0},
        "last": {"differ": 0},
    },
    "why": "numbers stay in int64 through masking, all below 2**63",
}
