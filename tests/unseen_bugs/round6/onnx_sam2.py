"""The decoder of prompts of a segmentation model: points are encoded with random frequencies, a
dense encoding of the grid is added to the image, and points attend to it. For export with a
precision.

https://github.com/facebookresearch/sam2/issues/650
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"precision": "float16", "embed_dim": 8, "grid": (4, 5), "image_size": (64.0, 80.0), "points": 3}
ELEM = {"float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT}


class Export:
    def __init__(self):
        self.nodes, self.initializers, self.scope, self.used = [], [], [], {}

    def op(self, kind, *inputs, out=None, dtype=None, **attrs):
        name = "/" + "/".join(self.scope + [kind])
        count = self.used[name] = self.used.get(name, -1) + 1
        name = "%s_%d" % (name, count) if count else name
        out = out or name + "_output_0"
        self.nodes.append(helper.make_node(kind, [i.name for i in inputs], [out], name=name, **attrs))
        return Value(self, out, dtype or inputs[0].dtype)

    def constant(self, array, dtype):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(array, dtype)), dtype=dtype)

    def parameter(self, name, array, dtype):
        self.initializers.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return Value(self, name, dtype)


class Value:
    def __init__(self, e, name, dtype):
        self.e, self.name, self.dtype = e, name, dtype

    def _with(self, kind, other):
        if not isinstance(other, Value):
            other = self.e.constant(other, self.dtype)
        return self.e.op(kind, self, other)

    def __add__(self, other):
        return self._with("Add", other)

    def __sub__(self, other):
        return self._with("Sub", other)

    def __mul__(self, other):
        return self._with("Mul", other)

    def __truediv__(self, other):
        return self._with("Div", other)

    def __matmul__(self, other):
        return self._with("MatMul", other)

    def cumsum(self, dim):
        return self.e.op("CumSum", self, self.e.constant(dim, "int64"))


class PositionEmbeddingRandom:
    def __init__(self, e, num_pos_feats, rng, dtype):
        self.e = e
        self.matrix = e.parameter("pe_layer.positional_encoding_gaussian_matrix",
                                  rng.normal(size=(2, num_pos_feats)), dtype)

    def _pe_encoding(self, coords):
        coords = coords * 2.0 - 1.0
        coords = coords @ self.matrix
        coords = coords * (2 * np.pi)
        return self.e.op("Concat", self.e.op("Sin", coords), self.e.op("Cos", coords), axis=-1)

    def forward(self, size):
        h, w = size
        grid = self.e.constant(np.ones((h, w, 1)), "float32")
        y_embed = (grid.cumsum(0) - 0.5) / h
        x_embed = (grid.cumsum(1) - 0.5) / w
        pe = self._pe_encoding(self.e.op("Concat", x_embed, y_embed, axis=-1))
        return self.e.op("Reshape", pe, self.e.constant([1, h * w, -1], "int64"))

    def forward_with_coords(self, coords, image_size):
        return self._pe_encoding(coords / np.array(image_size[::-1]))


def model():
    e, rng, c = Export(), np.random.default_rng(7), CONFIG
    dtype, d, (h, w) = c["precision"], c["embed_dim"], c["grid"]
    e.scope = ["prompt_encoder", "pe_layer"]
    pe_layer = PositionEmbeddingRandom(e, d // 2, rng, dtype)
    labels = e.parameter("prompt_encoder.point_embeddings.weight", rng.normal(size=(c["points"], d)), dtype)
    sparse = pe_layer.forward_with_coords(Value(e, "point_coords", dtype), c["image_size"]) + labels
    image_pe = pe_layer.forward(c["grid"])
    e.scope = ["mask_decoder", "attn"]
    source = Value(e, "image_embeddings", dtype)
    keys = e.op("Transpose", source + image_pe, perm=[0, 2, 1])
    weights = e.op("Softmax", sparse @ keys / d ** 0.5, axis=-1)
    e.op("MatMul", weights, source, out="tokens")
    graph = helper.make_graph(
        e.nodes, "main_graph",
        [helper.make_tensor_value_info("point_coords", ELEM[dtype], [1, c["points"], 2]),
         helper.make_tensor_value_info("image_embeddings", ELEM[dtype], [1, h * w, d])],
        [helper.make_tensor_value_info("tokens", ELEM[dtype], [1, c["points"], d])], e.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    rng = np.random.default_rng(8)
    points = rng.uniform(0, 64, size=(1, CONFIG["points"], 2))
    image = rng.normal(size=(1, CONFIG["grid"][0] * CONFIG["grid"][1], CONFIG["embed_dim"]))
    return {"point_coords": points.astype(CONFIG["precision"]), "image_embeddings": image.astype(CONFIG["precision"])}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
