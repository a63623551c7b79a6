"""Numerical kernels as NumPy users write them: functions of arrays that do not import graphir.

Front ends are measured by them. So that they measure, a kernel never changes once it stands here.
"""
