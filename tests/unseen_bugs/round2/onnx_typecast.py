"""The patch embedding of an image transformer after a converter that makes the 64 bit integers
of a model 32 bit, for devices without them.

https://github.com/aadhithya/onnx-typecast/issues/3
"""
from collections import OrderedDict

import numpy as np
from onnx import TensorProto, helper, numpy_helper

PREFIX = "/model/backbone/patch_embed/"


def make_param_dictionary(initializer):
    params = OrderedDict()
    for data in initializer:
        params[data.name] = data
    return params


def convert_params_to_int32(params_dict):
    converted_params = []
    for param in params_dict:
        data = params_dict[param]
        if data.data_type == TensorProto.INT64:
            data_cvt = numpy_helper.to_array(data).astype(np.int32)
            data = numpy_helper.from_array(data_cvt, data.name)
        converted_params += [data]
    return converted_params


def convert_constant_nodes_to_int32(nodes):
    new_nodes = []
    for node in nodes:
        if node.op_type == "Constant" and node.attribute[0].t.data_type == TensorProto.INT64:
            data = numpy_helper.to_array(node.attribute[0].t).astype(np.int32)
            node = helper.make_node("Constant", inputs=[], outputs=node.output, name=node.name,
                                    value=numpy_helper.from_array(data))
        new_nodes += [node]
    return new_nodes


def convert_model_to_int32(model):
    opset_version = model.opset_import[0].version
    graph = model.graph
    params_dict = make_param_dictionary(graph.initializer)
    converted_params = convert_params_to_int32(params_dict)
    new_nodes = convert_constant_nodes_to_int32(graph.node)
    graph_int32 = helper.make_graph(new_nodes, f"{graph.name}-int32", graph.input, graph.output,
                                    initializer=converted_params)
    return helper.make_model(graph_int32, producer_name="onnx-typecast", ir_version=8,
                             opset_imports=[helper.make_opsetid("", opset_version)])


def patch_embed():
    rng = np.random.default_rng(0)
    arrays = {
        "model.backbone.patch_embed.proj.weight": rng.normal(size=(8, 3, 4, 4)).astype(np.float32) * 0.1,
        "model.backbone.patch_embed.proj.bias": np.zeros(8, np.float32),
        "model.backbone.norm.weight": np.ones(8, np.float32),
        "model.backbone.norm.bias": np.zeros(8, np.float32),
        "onnx::Reshape_7369": np.array([1, 8, -1], np.int64),
        "onnx::Gather_7402": rng.permutation(16).astype(np.int64),
    }
    scale = helper.make_node("Constant", [], [PREFIX + "Constant_output_0"], name=PREFIX + "Constant",
                             value=numpy_helper.from_array(np.array(2.0, np.float32)))
    names = list(arrays)
    nodes = [
        helper.make_node("Conv", ["images"] + names[:2], ["conv"], name=PREFIX + "proj/Conv",
                         kernel_shape=[4, 4], strides=[4, 4]),
        scale,
        helper.make_node("Reshape", ["conv", names[4]], ["tokens"], name=PREFIX + "Reshape"),
        helper.make_node("Transpose", ["tokens"], ["rows"], name=PREFIX + "Transpose", perm=[0, 2, 1]),
        helper.make_node("LayerNormalization", ["rows"] + names[2:4], ["normed"],
                         name="/model/backbone/norm/LayerNormalization", axis=-1),
        helper.make_node("Gather", ["normed", names[5]], ["windows"],
                         name="/model/backbone/layers.0/Gather", axis=1),
        helper.make_node("Mul", ["windows", PREFIX + "Constant_output_0"], ["out"],
                         name="/model/backbone/layers.0/Mul"),
    ]
    graph = helper.make_graph(
        nodes, "main_graph",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 16, 8])],
        [numpy_helper.from_array(a, n) for n, a in arrays.items()])
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def model():
    return convert_model_to_int32(patch_embed())


def inputs():
    return {"images": np.random.default_rng(1).normal(size=(1, 3, 16, 16)).astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
