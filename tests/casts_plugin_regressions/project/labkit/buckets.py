"""The order in which workers visit the rows of a table."""

import numpy as np


def visiting_order(order, start, again=()):
    """Rows from `start` on, then those before it, then the rows to visit again."""
    again = np.asarray(again, order.dtype)
    return np.concatenate([order[start:], order[:start], again])


def visited(table, order, start, again=()):
    return table[visiting_order(order, start, again).astype(np.intp)]
