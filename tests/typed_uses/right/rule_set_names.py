from typing import assert_type

from graphir import DType, Graph, PromotionRules, implicit_cast_type, rules

assert_type(rules("jax_x32"), PromotionRules)
assert_type(implicit_cast_type("int8", "float16", rules="torch"), DType)
with rules("array_api"):
    Graph("g")
Graph("h", rules=rules("tf_safe"))
