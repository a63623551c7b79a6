"""The transform in front of a detector, as it is exported: normalises the image and scales it so
that its shorter side has the wanted length, unless the longer side becomes too long.

https://github.com/pytorch/vision/pull/3654
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"min_size": 16, "max_size": 96, "image_mean": [0.485, 0.456, 0.406],
          "image_std": [0.229, 0.224, 0.225]}


class Graph:
    def __init__(self):
        self.nodes, self.count, self.scope = [], 0, "/transform"

    def constant(self, value):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def op(self, kind, *inputs, out=None, **attrs):
        name = "%s/%s_%d" % (self.scope, kind, self.count)
        self.count += 1
        out = out or name + "_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def normalize(g, image):
    shape = (1, 3, 1, 1)
    mean = g.constant(np.array(CONFIG["image_mean"], np.float32).reshape(shape))
    std = g.constant(np.array(CONFIG["image_std"], np.float32).reshape(shape))
    return g.op("Div", g.op("Sub", image, mean), std)


def scale_factor(g, im_shape):
    min_size = g.op("ReduceMin", im_shape, axes=[0], keepdims=0)
    max_size = g.op("ReduceMax", im_shape, axes=[0], keepdims=0)
    self_min_size = g.constant(np.float32(CONFIG["min_size"]))
    self_max_size = g.constant(np.float32(CONFIG["max_size"]))
    return g.op("Min", g.op("Div", self_min_size, min_size), g.op("Div", self_max_size, max_size))


def output_size(g, image):
    shape = g.op("Shape", image)
    spatial = g.op("Slice", shape, g.constant(np.array([2])), g.constant(np.array([4])))
    im_shape = g.op("Cast", spatial, to=TensorProto.FLOAT)
    scaled = g.op("Mul", im_shape, scale_factor(g, im_shape))
    size = g.op("Cast", g.op("Floor", scaled), to=TensorProto.INT64, out="image_size")
    channels = g.op("Slice", shape, g.constant(np.array([0])), g.constant(np.array([2])))
    return g.op("Concat", channels, size, axis=0)


def model():
    g = Graph()
    image = normalize(g, "image")
    sizes = output_size(g, image)
    g.op("Resize", image, "", "", sizes, out="batch", mode="linear",
         coordinate_transformation_mode="half_pixel")
    graph = helper.make_graph(
        g.nodes, "torch-jit-export",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, "height", "width"])],
        [helper.make_tensor_value_info("batch", TensorProto.FLOAT, [1, 3, "h", "w"]),
         helper.make_tensor_value_info("image_size", TensorProto.INT64, [2])])
    return helper.make_model(graph, producer_name="pytorch", ir_version=7,
                             opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    image = np.random.default_rng(1).random((1, 3, 41, 55)).astype(np.float32)
    return {"image": image}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
