"""A boosted forest of small trees over the sine and cosine of the day of the week and of the
hour, as a converter of such models writes it.

https://github.com/onnx/onnxmltools/issues/708
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

HOURS = np.arange(24 * 7)
DAY, HOUR = HOURS // 24, HOURS % 24
FEATURES = np.stack([np.sin(2 * np.pi * DAY / 7), np.cos(2 * np.pi * DAY / 7),
                     np.sin(2 * np.pi * HOUR / 24), np.cos(2 * np.pi * HOUR / 24)], axis=1)


def split_point(column, low, high):
    """A threshold between the values of two rows, as the learner chooses it."""
    a, b = sorted((FEATURES[low, column], FEATURES[high, column]))
    middle = a + (b - a) / 2
    return middle if a <= middle < b else a


# feature, threshold, the value if feature <= threshold, the value otherwise
STUMPS = [
    (1, split_point(1, 24 * 1, 24 * 6), 0.5, 2.0),
    (3, split_point(3, 8, 16), -0.25, 0.75),
    (0, split_point(0, 24 * 2, 24 * 3), 0.125, 1.0),
    (2, split_point(2, 3, 14), 0.0, 0.5),
]


def tree_attributes(stumps):
    attrs = {k: [] for k in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes",
                             "nodes_values", "nodes_truenodeids", "nodes_falsenodeids",
                             "target_treeids", "target_nodeids", "target_ids", "target_weights")}
    for tree, (feature, threshold, yes, no) in enumerate(stumps):
        for node in range(3):
            attrs["nodes_treeids"].append(tree)
            attrs["nodes_nodeids"].append(node)
            attrs["nodes_featureids"].append(feature if node == 0 else 0)
            attrs["nodes_modes"].append("BRANCH_LEQ" if node == 0 else "LEAF")
            attrs["nodes_values"].append(float(threshold) if node == 0 else 0.0)
            attrs["nodes_truenodeids"].append(1 if node == 0 else 0)
            attrs["nodes_falsenodeids"].append(2 if node == 0 else 0)
        for node, weight in ((1, yes), (2, no)):
            attrs["target_treeids"].append(tree)
            attrs["target_nodeids"].append(node)
            attrs["target_ids"].append(0)
            attrs["target_weights"].append(weight)
    return attrs


def model():
    attrs = tree_attributes(STUMPS)
    features = "float_input"
    nodes = [helper.make_node("Cast", ["input"], [features], name="Cast_input", to=TensorProto.FLOAT)]
    nodes.append(helper.make_node("TreeEnsembleRegressor", [features], ["variable"],
                                  name="LightGbmRegressor", domain="ai.onnx.ml", n_targets=1,
                                  post_transform="NONE", **attrs))
    graph = helper.make_graph(
        nodes, "LightGBM",
        [helper.make_tensor_value_info("input", TensorProto.DOUBLE, [None, 4])],
        [helper.make_tensor_value_info("variable", TensorProto.FLOAT, [None, 1])])
    return helper.make_model(graph, producer_name="OnnxMLTools", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 15),
                                            helper.make_opsetid("ai.onnx.ml", 3)])


def inputs():
    return {"input": FEATURES.astype(np.float64)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
