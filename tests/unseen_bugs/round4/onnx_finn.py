"""A wrapper that applies clean-up transformations to a model before it is compiled; the model
looks up the times of events and scores how long ago they were.

https://github.com/Xilinx/finn-base/pull/64
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

EPOCH = 1.65e9


class Transformation:
    def apply(self, model):
        raise NotImplementedError


class GiveUniqueNodeNames(Transformation):
    def apply(self, model):
        counts = {}
        for node in model.graph.node:
            n = counts[node.op_type] = counts.get(node.op_type, -1) + 1
            node.name = "%s_%d" % (node.op_type, n)
        return model, False


class RemoveIdentityOps(Transformation):
    def apply(self, model):
        for node in model.graph.node:
            if node.op_type == "Identity":
                for other in model.graph.node:
                    for i, name in enumerate(other.input):
                        if name == node.output[0]:
                            other.input[i] = node.input[0]
                model.graph.node.remove(node)
                return model, True
        return model, False


class DoubleToSingleFloat(Transformation):
    def apply(self, model):
        for init in model.graph.initializer:
            if init.data_type == TensorProto.DOUBLE:
                values = numpy_helper.to_array(init).astype(np.float32)
                init.CopyFrom(numpy_helper.from_array(values, init.name))
        return model, False


class ModelWrapper:
    def __init__(self, model):
        self.model = model

    def transform(self, transformation, fix_float64=True):
        changed = True
        while changed:
            self.model, changed = transformation.apply(self.model)
        if fix_float64:
            self.model, _ = DoubleToSingleFloat().apply(self.model)
        return self


def exported():
    rng = np.random.default_rng(0)
    n = helper.make_node
    params = {
        "event_times": EPOCH + np.round(rng.random(12) * 7200, 3),
        "fc.weight": (rng.normal(size=(1, 4)) * 0.2).astype(np.float32),
        "fc.bias": np.zeros(4, np.float32),
        "per_minute": np.float32(1 / 60),
    }
    nodes = [
        n("Identity", ["event_ids"], ["ids"]),
        n("Gather", ["event_times", "ids"], ["times"]),
        n("Cast", ["times"], ["times_d"], to=TensorProto.DOUBLE),
        n("Sub", ["now", "times_d"], ["elapsed"]),
        n("Cast", ["elapsed"], ["elapsed_f"], to=TensorProto.FLOAT),
        n("Mul", ["elapsed_f", "per_minute"], ["minutes"]),
        n("Gemm", ["minutes", "fc.weight", "fc.bias"], ["hidden"]),
        n("Tanh", ["hidden"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes, "recency",
        [helper.make_tensor_value_info("event_ids", TensorProto.INT64, ["N", 1]),
         helper.make_tensor_value_info("now", TensorProto.DOUBLE, [1])],
        [helper.make_tensor_value_info("minutes", TensorProto.FLOAT, ["N", 1]),
         helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", 4])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in params.items()])
    return helper.make_model(graph, producer_name="pytorch", ir_version=7,
                             opset_imports=[helper.make_opsetid("", 13)])


def model():
    wrapper = ModelWrapper(exported())
    for transformation in (RemoveIdentityOps(), GiveUniqueNodeNames()):
        wrapper = wrapper.transform(transformation)
    return wrapper.model


def inputs():
    return {"event_ids": np.array([[3], [0], [11], [7]]), "now": np.array([EPOCH + 7260.0])}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
