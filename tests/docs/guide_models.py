# SPDX-License-Identifier: Apache-2.0
"""The small models and inputs that the pages of the guide work on:

    model.onnx .pt .pt2     image float32[B,64] -> logits float32[B,10]; x.npz and y.npz hold 1 and 3 rows
    text.onnx               ids, mask int64[B,T] -> scores float32[B,4]; short.npz and long.npz"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def weights(*shape):
    return np.random.default_rng(len(shape) * 1000 + shape[0]).normal(0, 0.1, shape).astype("float32")


HIDDEN, OUT = weights(64, 128), weights(128, 10)


def save_onnx(path, nodes, inputs, outputs, constants):
    graph = helper.make_graph(nodes, path.stem, inputs, outputs,
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def picture_onnx(folder):
    save_onnx(folder / "model.onnx",
              [helper.make_node("MatMul", ["image", "w1"], ["h"]),
               helper.make_node("Relu", ["h"], ["r"]),
               helper.make_node("MatMul", ["r", "w2"], ["logits"])],
              [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["B", 64])],
              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["B", 10])],
              {"w1": HIDDEN, "w2": OUT})


def text_onnx(folder):
    save_onnx(folder / "text.onnx",
              [helper.make_node("Gather", ["table", "ids"], ["e"]),
               helper.make_node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
               helper.make_node("Unsqueeze", ["m", "two"], ["m3"]),
               helper.make_node("Mul", ["e", "m3"], ["kept"]),
               helper.make_node("ReduceSum", ["kept", "one"], ["sum"], keepdims=0),
               helper.make_node("MatMul", ["sum", "w"], ["scores"])],
              [helper.make_tensor_value_info(n, TensorProto.INT64, ["B", "T"]) for n in ("ids", "mask")],
              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["B", 4])],
              {"table": weights(100, 16), "w": weights(16, 4), "one": np.array([1]), "two": np.array([2])})


def picture_torch(folder):
    import torch

    class Picture(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Parameter(torch.from_numpy(HIDDEN))
            self.second = torch.nn.Parameter(torch.from_numpy(OUT))

        def forward(self, image):
            return torch.relu(image @ self.first) @ self.second

    model, example = Picture().eval(), torch.zeros(2, 64)
    torch.jit.save(torch.jit.trace(model, example), folder / "model.pt")
    batch = torch.export.Dim("B", max=1024)
    torch.export.save(torch.export.export(model, (example,), dynamic_shapes={"image": {0: batch}}),
                      folder / "model.pt2")


def inputs(folder):
    random = np.random.default_rng(0)
    for name, rows in (("x", 1), ("y", 3)):
        np.savez(folder / f"{name}.npz", image=random.normal(size=(rows, 64)).astype("float32"))
    for name, rows, length in (("short", 1, 5), ("long", 2, 12)):
        np.savez(folder / f"{name}.npz", ids=random.integers(0, 100, (rows, length)),
                 mask=np.ones((rows, length), "int64"))


def build(folder: Path):
    picture_onnx(folder)
    text_onnx(folder)
    picture_torch(folder)
    inputs(folder)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
