from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from graphir.runtime import jit


@jit
def scaled(x: NDArray[np.float32], k: float) -> NDArray[np.float32]:
    return x * k


assert_type(scaled(np.ones(3, np.float32), 2.0), NDArray[np.float32])
scaled(np.ones(3, np.float32), k=0.5)
