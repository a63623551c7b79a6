from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from graphir.runtime import jit

Array = NDArray[np.float64]


def moments(x: Array) -> dict[str, Array]:
    return {"mean": np.mean(x, axis=0), "spread": np.std(x, axis=0)}


fast = jit(moments, static=())
assert_type(fast(np.ones((4, 2))), dict[str, Array])
