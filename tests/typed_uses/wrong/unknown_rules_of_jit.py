import numpy as np

from graphir.runtime import jit


@jit(rules="jaxx")  # wrong
def scaled(x):
    return x * 2


scaled(np.ones(3))
