"""Uses of graphir for type checkers alone: each refuses the lines marked so, and no other."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import graphir
from graphir import DType, Graph, Lattice, PromotionRules, Symbol, ops, passes, runtime

Array = NDArray[np.float32]

# -- names from elsewhere: a rule set of one's own, a file, a text that nobody knows before the run
own = PromotionRules("own", "One lattice.", Lattice("own", {"int8": ["float32"]}))
assert_type(graphir.rules(own), PromotionRules)
assert_type(graphir.rules(PromotionRules.from_lattice("mine.json")), PromotionRules)
name: str = input()
Graph("g", rules=PromotionRules.find(name))
Graph("g", rules=name)  # wrong
g = Graph("g", rules=own)
x = g.input(DType(name), ("n", 3))
g.input(name)  # wrong
ops.find(name)(x, 1)
passes.diff("max", "jax")
passes.diff("max", "jaxs")  # wrong
graphir.set_default_rules("numpy_2")  # wrong
own.promote("int8", np.float32, 1.5, np.ones(3), x.type)
own.promote("int9")  # wrong
graphir.explain("int8", "flaot32")  # wrong

# -- symbols have no values, and their arguments have types
assert_type(x + np.ones(3, np.float32), Symbol)
assert_type(2**x, Symbol)
assert_type(divmod(x, 2), tuple[Symbol, Symbol])
assert_type(x.astype("f4").T.reshape(3, -1).sum((0, 1)), Symbol)
assert_type(x.split([1, 2], axis=1), tuple[Symbol, ...])
assert_type(ops.sub(x, 1), Symbol)
assert_type(ops.slice_update(x, x, [0, 0], [1, 1], [1, 1]), Symbol)
float(x)  # wrong
for _row in x:  # wrong
    break
x[0] = 1  # wrong
x.shape = (3,)  # wrong
x.astype("f16")  # wrong
ops.concat(x)  # wrong
ops.pad(x, "edge")  # wrong
ops.searchsorted(x, 1, side="middle")  # wrong
g.scalar("1")  # wrong
g.full[name](0, (2,))  # wrong
g.full["int8"](0, (2,))

# -- a run gives its `out`, and takes arrays and numbers
g.output(x)
out: Array = np.empty((2, 3), np.float32)
assert_type(runtime.execute(g, out, out=out), Array)
assert_type(runtime.Program(g)(out, out=(out, out)), tuple[Array, Array])
runtime.Program(g)([1.0])  # wrong
runtime.interpret(g, x=None)  # wrong
runtime.record(lambda a: a + 1, out, rules="numpy")
runtime.record(lambda a: a + 1, out, rules="numbers")  # wrong


# -- results of runs, and kinds of casts
def pair(a: Array, n: int) -> tuple[Array, int]:
    return a, n


assert_type(runtime.record(pair, out, 2).result, tuple[Array, int])
result, other = runtime.execute(g, out)
runtime.execute(g, out).astype(np.float16)
_shape = runtime.execute(g, out).shpae  # wrong
passes.Policy(forbid="lossy", warn={"to:float64", "int->float"}, allow=["from:uint8"])
passes.Policy(forbid=[passes.cast_kind("int32->*"), "lossy"], allow=passes.cast_kind(name))
passes.Policy(forbid="lossi")  # wrong
passes.Policy(warn=["lossy", "to:flaot64"])  # wrong
graphir.implicit_cast(g)  # wrong
passes.implicit_cast(x, x)  # wrong
assert_type(DType.tensor_float_32.bits, int)


# -- jitted functions and methods keep their parameters
class Model:
    scale: float = 2.0

    @runtime.jit(rules="numpy")
    def predict(self, inputs: Array, steps: int = 1) -> Array:
        return inputs * np.float32(self.scale * steps)


assert_type(Model().predict(out, steps=2), Array)
Model().predict(out, 2, 3)  # wrong
Model().predict(1.0)  # wrong
