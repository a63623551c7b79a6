"""The functions of the namespace: elementwise, statistics, manipulation, and others."""

from graphir.runtime.array_api.functions import (
    creation,
    manipulation,
    searching,
    statistics,
)
from graphir.runtime.array_api.functions.creation import *  # noqa: F403
from graphir.runtime.array_api.functions.elementwise import FUNCTIONS
from graphir.runtime.array_api.functions.elementwise import where as where
from graphir.runtime.array_api.functions.linalg import matmul, tensordot, vecdot
from graphir.runtime.array_api.functions.manipulation import *  # noqa: F403
from graphir.runtime.array_api.functions.searching import *  # noqa: F403
from graphir.runtime.array_api.functions.statistics import *  # noqa: F403

globals().update(FUNCTIONS)
__all__: list[str] = [*FUNCTIONS]  # pyright: ignore[reportUnsupportedDunderAll]
__all__ += creation.__all__
__all__ += manipulation.__all__
__all__ += [matmul.__name__, tensordot.__name__, vecdot.__name__]
__all__ += statistics.__all__
__all__ += searching.__all__
