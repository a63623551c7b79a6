"""A convolution trained with fake quantisation: constants become initialisers and signed bytes
unsigned, the weights are quantised, and the quantisation of weights disappears from the graph.

https://github.com/neuralmagic/sparseml/pull/1181
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

RANGE = {np.dtype(np.uint8): (0, 255), np.dtype(np.int8): (-128, 127)}


def qat_export():
    rng = np.random.default_rng(5)
    arrays = {
        "conv.weight": rng.normal(size=(4, 2, 3, 3)).astype(np.float32) * 0.3,
        "conv.bias": rng.normal(size=4).astype(np.float32) * 0.1,
        "conv.quant.activation_post_process.zero_point": np.array(3, np.int8),
    }
    constants = {
        "input_scale": np.array(0.031, np.float32), "input_zero_point": np.array(-20, np.int8),
        "weight_scale": np.array(0.009, np.float32), "weight_zero_point": np.array(0, np.int8),
        "output_scale": np.array(0.042, np.float32), "output_zero_point": np.array(3, np.int8),
    }
    n = helper.make_node
    nodes = [n("Constant", [], [k], name="Constant_%d" % i, value=numpy_helper.from_array(v))
             for i, (k, v) in enumerate(constants.items())]
    nodes += [
        n("QuantizeLinear", ["image", "input_scale", "input_zero_point"], ["image_q"], name="QuantizeLinear_6"),
        n("DequantizeLinear", ["image_q", "input_scale", "input_zero_point"], ["image_dq"],
          name="DequantizeLinear_7"),
        n("QuantizeLinear", ["conv.weight", "weight_scale", "weight_zero_point"], ["weight_q"],
          name="QuantizeLinear_8"),
        n("DequantizeLinear", ["weight_q", "weight_scale", "weight_zero_point"], ["weight_dq"],
          name="DequantizeLinear_9"),
        n("Conv", ["image_dq", "weight_dq", "conv.bias"], ["conv"], name="Conv_10", pads=[1, 1, 1, 1]),
        n("Relu", ["conv"], ["relu"], name="Relu_11"),
        n("QuantizeLinear", ["relu", "output_scale", "output_zero_point"], ["relu_q"], name="QuantizeLinear_12"),
        n("DequantizeLinear", ["relu_q", "output_scale", "conv.quant.activation_post_process.zero_point"],
          ["relu_dq"], name="DequantizeLinear_13"),
        n("GlobalAveragePool", ["relu_dq"], ["features"], name="GlobalAveragePool_14"),
    ]
    graph = helper.make_graph(
        nodes, "torch-jit-export", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 2, 6, 6])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [1, 4, 1, 1])],
        [numpy_helper.from_array(v, k) for k, v in arrays.items()])
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 13)])


def get_init_by_name(model, name):
    return next((i for i in model.graph.initializer if i.name == name), None)


def convert_single_constants_to_initializers(model):
    kept = []
    for node in model.graph.node:
        if node.op_type != "Constant" or len(node.attribute) != 1:
            kept.append(node)
            continue
        array = numpy_helper.to_array(node.attribute[0].t)
        if array.dtype == np.int8:
            array = (array.astype(np.int16) + 128).astype(np.uint8)
        model.graph.initializer.append(numpy_helper.from_array(array, name=node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)


def quantize_array(array, scale, zero_point):
    low, high = RANGE[zero_point.dtype]
    return np.clip(np.rint(array / scale) + zero_point, low, high).astype(zero_point.dtype)


def fold_weight_quantization(model):
    for node in [n for n in model.graph.node if n.op_type == "QuantizeLinear"]:
        target, scale, zero_point = (get_init_by_name(model, name) for name in node.input)
        if target is None:
            continue
        quantized = quantize_array(*(numpy_helper.to_array(t) for t in (target, scale, zero_point)))
        model.graph.initializer.append(numpy_helper.from_array(quantized, node.output[0]))
        model.graph.node.remove(node)
        model.graph.initializer.remove(target)


def quantize_torch_qat_export(model):
    convert_single_constants_to_initializers(model)
    fold_weight_quantization(model)
    return model


def model():
    return quantize_torch_qat_export(qat_export())


def inputs():
    return {"image": np.random.default_rng(6).normal(size=(1, 2, 6, 6)).astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
