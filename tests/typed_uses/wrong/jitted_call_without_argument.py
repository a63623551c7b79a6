import numpy as np
from numpy.typing import NDArray

from graphir.runtime import jit


@jit
def scaled(x: NDArray[np.float32], k: float) -> NDArray[np.float32]:
    return x * k


scaled(np.ones(3, np.float32))  # wrong
