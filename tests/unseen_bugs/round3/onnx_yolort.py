"""The head of a detector in half precision with its anchors generated from the sizes of the feature
maps, as the trace of a torch module gives it.

https://github.com/zhiqwang/yolort/pull/113
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"strides": [8, 16], "anchors": [[(10, 13), (16, 30)], [(30, 61), (62, 45)]],
          "channels": 4, "dtype": np.float16}
ELEM = {np.float16: TensorProto.FLOAT16, np.float32: TensorProto.FLOAT}


class Tracer:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], 300

    def weight(self, name, array):
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def constant(self, value):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def op(self, kind, *inputs, out=None, **attrs):
        name = "%s_%d" % (kind, self.count)
        out = out or str(self.count)
        self.count += 1
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def size(g, x, dim):
    return g.op("Gather", g.op("Shape", x), g.constant(np.int64(dim)), axis=0)


def arange(g, end, dtype):
    end = g.op("Cast", end, to=ELEM[dtype])
    return g.op("Range", g.constant(dtype(0)), end, g.constant(dtype(1)))


class AnchorGenerator:
    def __init__(self, strides, anchors):
        self.strides, self.anchors = strides, anchors

    def grid_anchors(self, g, feature, stride, dtype):
        width, height = size(g, feature, 3), size(g, feature, 2)
        shifts_x = arange(g, width, dtype)
        shifts_y = arange(g, height, dtype)
        rows = g.op("Unsqueeze", shifts_y, axes=[1])
        columns = g.op("Unsqueeze", shifts_x, axes=[0])
        zero = g.op("Mul", g.op("Add", rows, columns), g.constant(dtype(0)))
        grid = [g.op("Unsqueeze", g.op("Add", zero, s), axes=[2]) for s in (columns, rows)]
        grid = g.op("Concat", *grid, axis=2)
        grid = g.op("Reshape", grid, g.constant(np.array([-1, 1, 2])))
        return g.op("Mul", g.op("Add", grid, g.constant(dtype(0.5))), g.constant(dtype(stride)))

    def __call__(self, g, features, dtype):
        centres = [self.grid_anchors(g, f, s, dtype) for f, s in zip(features, self.strides)]
        wh = [g.constant(np.array(a, dtype)[None]) for a in self.anchors]
        return centres, wh


class YOLOHead:
    def __init__(self, config, rng):
        self.config, self.rng = config, rng
        self.generator = AnchorGenerator(config["strides"], config["anchors"])

    def branch(self, g, x, level):
        c, n = self.config, len(self.config["anchors"][level])
        w = self.rng.normal(size=(n * 4, c["channels"], 1, 1)) * 0.3
        y = g.op("Conv", x, g.weight("head.%d.weight" % level, w.astype(c["dtype"])),
                 kernel_shape=[1, 1])
        y = g.op("Transpose", y, perm=[0, 2, 3, 1])
        return g.op("Sigmoid", g.op("Reshape", y, g.constant(np.array([-1, n, 4]))))

    def __call__(self, g, features):
        dtype = self.config["dtype"]
        centres, wh = self.generator(g, features, dtype)
        boxes = []
        for level, feature in enumerate(features):
            y = self.branch(g, feature, level)
            xy, side = (g.op("Slice", y, *(g.constant(np.array([v])) for v in (k, k + 2, 2)))
                        for k in (0, 2))
            stride = g.constant(dtype(self.config["strides"][level]))
            offset = g.op("Mul", g.op("Sub", xy, g.constant(dtype(0.5))), stride)
            box = g.op("Concat", g.op("Add", centres[level], offset),
                       g.op("Mul", side, wh[level]), axis=2)
            boxes.append(g.op("Reshape", box, g.constant(np.array([-1, 4]))))
        g.op("Concat", *boxes, out="boxes", axis=0)


def model():
    g, c = Tracer(), CONFIG
    elem = ELEM[c["dtype"]]
    names = ["feature_%d" % i for i in range(len(c["strides"]))]
    YOLOHead(c, np.random.default_rng(0))(g, names)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        g.nodes, "torch-jit-export",
        [info(n, elem, [1, c["channels"], "h%d" % i, "w%d" % i]) for i, n in enumerate(names)],
        [info("boxes", elem, ["n", 4])], g.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=7,
                             opset_imports=[helper.make_opsetid("", 12)])


def inputs():
    rng = np.random.default_rng(1)
    return {"feature_0": rng.normal(size=(1, 4, 4, 6)).astype(np.float16),
            "feature_1": rng.normal(size=(1, 4, 2, 3)).astype(np.float16)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
