"""Writes rank_e.onnx (a ranking head that keeps the ids of its items), rank_e_good.onnx
(the same without the fault) and rank_e.npz (inputs from production) next to this file."""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

HERE = Path(__file__).resolve().parent
N, K = 6, 3


def head():
    """Scores: price and stock flag, the best K."""
    nodes = [
        h.make_node("Greater", ["stock", "zero"], ["has_stock"], name="in_stock"),
        h.make_node("Cast", ["has_stock"], ["stock_f"], name="stock_to_float", to=T.FLOAT),
        h.make_node("Mul", ["price", "stock_f"], ["score"], name="score"),
        h.make_node("TopK", ["score", "k"], ["best_score", "best"], name="top"),
        h.make_node("Cast", ["best"], ["rank"], name="rank_to_int32", to=T.INT32),
    ]
    consts = [
        h.make_tensor("zero", T.INT32, [1], [0]),
        h.make_tensor("k", T.INT64, [1], [K]),
    ]
    return nodes, consts


def lossy():
    nodes, consts = head()
    nodes += [
        h.make_node("Cast", ["ids"], ["ids_f"], name="pack_ids", to=T.FLOAT),
        h.make_node("Unsqueeze", ["ids_f", "axis1"], ["ids_col"], name="ids_column"),
        h.make_node("Unsqueeze", ["price", "axis1"], ["price_col"], name="price_column"),
        h.make_node("Concat", ["ids_col", "price_col"], ["table"], name="table", axis=1),
        h.make_node("Gather", ["table", "best"], ["rows"], name="pick_rows", axis=0),
        h.make_node("Split", ["rows", "halves"], ["id_part", "price_part"], name="split", axis=1),
        h.make_node("Squeeze", ["id_part", "axis1"], ["id_flat"], name="id_flat"),
        h.make_node("Squeeze", ["price_part", "axis1"], ["best_price"], name="price_flat"),
        h.make_node("Cast", ["id_flat"], ["best_ids"], name="unpack_ids", to=T.INT64),
    ]
    consts += [h.make_tensor("axis1", T.INT64, [1], [1]), h.make_tensor("halves", T.INT64, [2], [1, 1])]
    return nodes, consts


def sound():
    nodes, consts = head()
    nodes += [
        h.make_node("Gather", ["ids", "best"], ["best_ids"], name="pick_ids", axis=0),
        h.make_node("Gather", ["price", "best"], ["best_price"], name="pick_prices", axis=0),
    ]
    return nodes, consts


def save(parts, name):
    nodes, consts = parts
    graph = h.make_graph(
        nodes, "rank",
        [h.make_tensor_value_info("ids", T.INT64, [N]),
         h.make_tensor_value_info("price", T.FLOAT, [N]),
         h.make_tensor_value_info("stock", T.INT32, [N])],
        [h.make_tensor_value_info("best_ids", T.INT64, [K]),
         h.make_tensor_value_info("best_price", T.FLOAT, [K]),
         h.make_tensor_value_info("rank", T.INT32, [K])],
        consts,
    )
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, HERE / name)


def main():
    save(lossy(), "rank_e.onnx")
    save(sound(), "rank_e_good.onnx")
    np.savez(
        HERE / "rank_e.npz",
        ids=np.array([20417731, 20417732, 33900125, 90000001, 20417733, 123456789], dtype=np.int64),
        price=np.array([9.5, 2.25, 7.75, 1.0, 12.5, 3.5], dtype=np.float32),
        stock=np.array([4, 0, 11, 3, 1, 9], dtype=np.int32),
    )
    print("written: rank_e.onnx rank_e_good.onnx rank_e.npz")


if __name__ == "__main__":
    main()
