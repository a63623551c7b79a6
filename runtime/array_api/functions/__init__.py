"""The functions of the namespace: elementwise, reductions, manipulation, and others."""

from graphir.runtime.array_api.functions import (
    creation,
    manipulation,
    matrices,
    reductions,
    searching,
)
from graphir.runtime.array_api.functions.creation import *  # noqa: F403
from graphir.runtime.array_api.functions.elementwise import FUNCTIONS
from graphir.runtime.array_api.functions.manipulation import *  # noqa: F403
from graphir.runtime.array_api.functions.matrices import *  # noqa: F403
from graphir.runtime.array_api.functions.reductions import *  # noqa: F403
from graphir.runtime.array_api.functions.searching import *  # noqa: F403

globals().update(FUNCTIONS)
__all__: list[str] = [*FUNCTIONS]  # pyright: ignore[reportUnsupportedDunderAll]
__all__ += creation.__all__
__all__ += manipulation.__all__
__all__ += matrices.__all__
__all__ += reductions.__all__
__all__ += searching.__all__
