from typing import assert_type

from graphir import DType, explain, rules

numpy_rules = rules("numpy")
assert_type(numpy_rules.promote("int16", "float32"), DType)
assert_type(numpy_rules.promote(DType.int8, 1.5), DType)
explain("int32", "float16", rules="jax")
