"""The one-to-one head of a detector, exported in half precision with its selection of the best boxes.

https://github.com/ultralytics/ultralytics/issues/23645
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

ORDER = [TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT16, TensorProto.FLOAT]


class Tracer:
    """Writes nodes with the dtype of every value, and casts operands as the framework promotes them."""

    def __init__(self):
        self.nodes, self.inits, self.types, self.count = [], [], {}, {}

    def const(self, array):
        name = "onnx::Const_%d" % len(self.inits)
        self.inits.append(numpy_helper.from_array(np.asarray(array), name))
        self.types[name] = self.inits[-1].data_type
        return name

    def op(self, kind, inputs, dtype=None, outputs=1, **attrs):
        i = self.count[kind] = self.count.get(kind, -1) + 1
        name = "/model.23/%s_%d" % (kind, i)
        outs = ["%s_output_%d" % (name, k) for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, outs, name=name, **attrs))
        for o in outs:
            self.types[o] = dtype or self.types[inputs[0]]
        return outs[0] if outputs == 1 else outs

    def cast(self, x, dtype):
        return x if self.types[x] == dtype else self.op("Cast", [x], dtype, to=dtype)

    def float(self, x):
        return self.cast(x, TensorProto.FLOAT)

    def cat(self, xs, axis):
        dtype = max((self.types[x] for x in xs), key=ORDER.index)
        return self.op("Concat", [self.cast(x, dtype) for x in xs], dtype, axis=axis)


def postprocess(g, boxes, scores, max_det, nc):
    flat = g.op("Reshape", [scores, g.const(np.array([-1], np.int64))])
    best, index = g.op("TopK", [flat, g.const(np.array([max_det], np.int64))], outputs=2, axis=0)
    g.types[index] = TensorProto.INT64
    classes = g.const(np.array(nc, np.int64))
    rows = g.op("Gather", [boxes, g.op("Div", [index, classes])], axis=0)
    last = g.const(np.array([-1], np.int64))
    score_column = g.op("Unsqueeze", [best, last])
    class_column = g.op("Unsqueeze", [g.op("Mod", [index, classes]), last])
    return g.cat([rows, score_column, g.float(class_column)], axis=-1)


def model():
    g = Tracer()
    g.types.update(boxes=TensorProto.FLOAT16, logits=TensorProto.FLOAT16)
    scores = g.op("Sigmoid", ["logits"])
    y = postprocess(g, "boxes", scores, 4, 3)
    g.nodes.append(helper.make_node("Identity", [y], ["output0"], name="/Identity"))
    graph = helper.make_graph(
        g.nodes, "main_graph",
        [helper.make_tensor_value_info("boxes", TensorProto.FLOAT16, [8, 4]),
         helper.make_tensor_value_info("logits", TensorProto.FLOAT16, [8, 3])],
        [helper.make_tensor_value_info("output0", g.types[y], [4, 6])], g.inits)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    rng = np.random.default_rng(0)
    return {"boxes": rng.uniform(0, 640, (8, 4)).astype(np.float16),
            "logits": rng.normal(size=(8, 3)).astype(np.float16)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
