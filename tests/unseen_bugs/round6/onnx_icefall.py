"""The decoder of a transducer (an embedding of the last tokens and a convolution over them) is
exported and then made half precision.

https://github.com/k2-fsa/icefall/issues/2011
"""
import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper, shape_inference

CONFIG = {"vocab_size": 20, "decoder_dim": 8, "context_size": 2, "joiner_dim": 10, "fp16": True}


def export_decoder(config):
    rng = np.random.default_rng(2)
    v, d, c, j = (config[k] for k in ("vocab_size", "decoder_dim", "context_size", "joiner_dim"))
    weights = {
        "decoder.embedding.weight": rng.normal(size=(v, d)),
        "decoder.conv.weight": rng.normal(size=(d, 2, c)) * 0.4,
        "decoder_proj.weight": rng.normal(size=(d, j)) * 0.3,
        "decoder_proj.bias": rng.normal(size=j) * 0.1,
    }
    tensors = [numpy_helper.from_array(w.astype(np.float32), k) for k, w in weights.items()]
    tensors += [numpy_helper.from_array(np.int64(0), "zero"),
                numpy_helper.from_array(np.array([2]), "last"), numpy_helper.from_array(np.array([1]), "time")]
    n = helper.make_node
    nodes = [
        n("Max", ["y", "zero"], ["/decoder/Clip_output_0"], name="/decoder/Clip"),
        n("Gather", ["decoder.embedding.weight", "/decoder/Clip_output_0"],
          ["/decoder/embedding/Gather_output_0"], name="/decoder/embedding/Gather"),
        n("GreaterOrEqual", ["y", "zero"], ["/decoder/GreaterOrEqual_output_0"], name="/decoder/GreaterOrEqual"),
        n("Unsqueeze", ["/decoder/GreaterOrEqual_output_0", "last"], ["/decoder/Unsqueeze_output_0"],
          name="/decoder/Unsqueeze"),
        n("Cast", ["/decoder/Unsqueeze_output_0"], ["/decoder/Cast_1_output_0"], name="/decoder/Cast_1",
          to=TensorProto.FLOAT),
        n("Mul", ["/decoder/embedding/Gather_output_0", "/decoder/Cast_1_output_0"],
          ["/decoder/Mul_output_0"], name="/decoder/Mul"),
        n("Transpose", ["/decoder/Mul_output_0"], ["/decoder/Transpose_output_0"],
          name="/decoder/Transpose", perm=[0, 2, 1]),
        n("Conv", ["/decoder/Transpose_output_0", "decoder.conv.weight"], ["/decoder/conv/Conv_output_0"],
          name="/decoder/conv/Conv", group=d // 2, kernel_shape=[c]),
        n("Relu", ["/decoder/conv/Conv_output_0"], ["/Relu_output_0"], name="/Relu"),
        n("Squeeze", ["/Relu_output_0", "last"], ["/Squeeze_output_0"], name="/Squeeze"),
        n("Gemm", ["/Squeeze_output_0", "decoder_proj.weight", "decoder_proj.bias"], ["decoder_out"],
          name="/decoder_proj/Gemm"),
    ]
    graph = helper.make_graph(
        nodes, "decoder", [helper.make_tensor_value_info("y", TensorProto.INT64, [3, c])],
        [helper.make_tensor_value_info("decoder_out", TensorProto.FLOAT, [3, j])], tensors)
    model = helper.make_model(graph, producer_name="pytorch", ir_version=8,
                              opset_imports=[helper.make_opsetid("", 13)])
    return shape_inference.infer_shapes(model)


class Float16Converter:
    """Weights, value infos and constants of a graph in half precision; its outputs stay float."""

    def __init__(self, min_positive=1e-7, max_finite=1e4):
        self.min_positive, self.max_finite = min_positive, max_finite

    def array(self, x):
        tiny = (np.abs(x) < self.min_positive) & (x != 0)
        x = np.where(tiny, np.sign(x) * self.min_positive, x)
        return np.clip(x, -self.max_finite, self.max_finite).astype(np.float16)

    def tensor(self, tensor):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(self.array(numpy_helper.to_array(tensor)), tensor.name))

    def attributes(self, node):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                self.tensor(attribute.t)

    def __call__(self, model):
        graph = model.graph
        for tensor in graph.initializer:
            self.tensor(tensor)
        for value in graph.value_info:
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = TensorProto.FLOAT16
        for node in list(graph.node):
            self.attributes(node)
        for value in graph.output:
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                for node in graph.node:
                    node.output[:] = [o + "_fp16" if o == value.name else o for o in node.output]
                graph.node.append(helper.make_node("Cast", [value.name + "_fp16"], [value.name],
                                                   name=value.name + "_cast", to=TensorProto.FLOAT))
        return model


def model():
    exported = export_decoder(CONFIG)
    return Float16Converter()(exported) if CONFIG["fp16"] else exported


def inputs():
    return {"y": np.array([[-1, 4], [7, 19], [0, -1]])}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
