from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from graphir.runtime import jit


@jit(rules="jax", static="n")
def power(x: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    for _ in range(n):
        x = x * x
    return x


assert_type(power(np.ones(2, np.float32), 2), NDArray[np.float32])
