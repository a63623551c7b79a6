"""Numerical kernels as NumPy users write them: functions of arrays that do not import graphir.

Front ends are measured by them. So that they measure, a kernel never changes once it stands here.
"""

from tests.numpy_kernels import (
    convolution,
    dynamic_programming,
    escape_time,
    fourier,
    histograms,
    k_means,
    n_body,
    neural_layers,
    ode_steps,
    row_solvers,
    sorting_networks,
    stencils,
    triangular,
)
from tests.numpy_kernels.kernel import KERNELS

KINDS = (
    *(stencils, row_solvers, fourier, histograms, n_body, convolution, neural_layers),
    *(dynamic_programming, escape_time, k_means, ode_steps, sorting_networks, triangular),
)

__all__ = ["KERNELS", "KINDS"]
