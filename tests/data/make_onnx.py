#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the tiny ONNX models under tests/data/onnx/, which are checked in.

Usage: make_onnx.py [OUT_DIR]     (needs the packages onnx and numpy)

Each model is small enough to work out by hand; its docstring is its formula.
"""
import pathlib
import random
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


def value(name, dtype, shape):
    return h.make_tensor_value_info(name, dtype, shape)


def build(nodes, inputs, outputs, initializers=(), opset=17):
    graph = h.make_graph(nodes, "tiny", inputs, outputs, list(initializers))
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8)
    made.producer_name = ""
    return made


def constant(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), name)


@model
def affine():
    """y[B,3] = x * 2 + 1"""
    return build(
        [h.make_node("Mul", ["x", "two"], ["d"]), h.make_node("Add", ["d", "one"], ["y"])],
        [value("x", T.FLOAT, ["B", 3])], [value("y", T.FLOAT, ["B", 3])],
        [constant("two", 2), constant("one", 1)])


@model
def fixed():
    """y[2,3] = x * 2: no dynamic axis"""
    return build([h.make_node("Mul", ["x", "two"], ["y"])],
                 [value("x", T.FLOAT, [2, 3])], [value("y", T.FLOAT, [2, 3])],
                 [constant("two", 2)])


@model
def passthrough():
    """x itself is an output; y = Identity(x); z = x + 1"""
    return build(
        [h.make_node("Identity", ["x"], ["y"]), h.make_node("Add", ["x", "one"], ["z"])],
        [value("x", T.FLOAT, ["B", 2])],
        [value("x", T.FLOAT, ["B", 2]), value("y", T.FLOAT, ["B", 2]),
         value("z", T.FLOAT, ["B", 2])],
        [constant("one", 1)])


@model
def swap():
    """(a float32[2], b int64[3]) -> (b + 1, a * 2)"""
    return build(
        [h.make_node("Mul", ["a", "two"], ["doubled"]), h.make_node("Add", ["b", "one"], ["next"])],
        [value("a", T.FLOAT, [2]), value("b", T.INT64, [3])],
        [value("next", T.INT64, [3]), value("doubled", T.FLOAT, [2])],
        [constant("two", 2), constant("one", 1, np.int64)])


@model
def subtract():
    """a - b, both float32[2]: equal types, so that an exchange of inputs shows"""
    return build([h.make_node("Sub", ["a", "b"], ["y"])],
                 [value("a", T.FLOAT, [2]), value("b", T.FLOAT, [2])],
                 [value("y", T.FLOAT, [2])])


@model
def unused_inputs():
    """a + d of (a, b, c, d); b and c are of no use"""
    return build([h.make_node("Add", ["a", "d"], ["y"])],
                 [value(name, T.FLOAT, [2]) for name in "abcd"], [value("y", T.FLOAT, [2])])


@model
def many():
    """y_i = x_i + i for i = 0..19"""
    return build([h.make_node("Add", [f"x{i}", f"c{i}"], [f"y{i}"]) for i in range(20)],
                 [value(f"x{i}", T.FLOAT, [2]) for i in range(20)],
                 [value(f"y{i}", T.FLOAT, [2]) for i in range(20)],
                 [constant(f"c{i}", i) for i in range(20)])


@model
def add_int64():
    """a + b in int64[N]"""
    return build([h.make_node("Add", ["a", "b"], ["y"])],
                 [value("a", T.INT64, ["N"]), value("b", T.INT64, ["N"])],
                 [value("y", T.INT64, ["N"])])


@model
def logic():
    """a and not b"""
    return build(
        [h.make_node("Not", ["b"], ["n"]), h.make_node("And", ["a", "n"], ["y"])],
        [value("a", T.BOOL, ["N"]), value("b", T.BOOL, ["N"])], [value("y", T.BOOL, ["N"])])


def linear(dtype):
    as_numpy = h.tensor_dtype_to_np_dtype(dtype)
    weight = numpy_helper.from_array(np.array([[1, 2], [3, 4]]).astype(as_numpy), "w")
    bias = numpy_helper.from_array(np.array([0.5, -0.5]).astype(as_numpy), "c")
    return build(
        [h.make_node("MatMul", ["x", "w"], ["m"]), h.make_node("Add", ["m", "c"], ["y"])],
        [value("x", dtype, ["B", 2])], [value("y", dtype, ["B", 2])], [weight, bias])


@model
def linear_fp16():
    """x[B,2] @ [[1,2],[3,4]] + [0.5,-0.5] in float16"""
    return linear(T.FLOAT16)


@model
def linear_bf16():
    """the same in bfloat16"""
    return linear(T.BFLOAT16)


@model
def linear_fp64():
    """the same in float64"""
    return linear(T.DOUBLE)


@model
def relu():
    """relu(x[N,3]); N may be 0"""
    return build([h.make_node("Relu", ["x"], ["y"])],
                 [value("x", T.FLOAT, ["N", 3])], [value("y", T.FLOAT, ["N", 3])])


@model
def scalar():
    """x * x, no axes"""
    return build([h.make_node("Mul", ["x", "x"], ["y"])],
                 [value("x", T.FLOAT, [])], [value("y", T.FLOAT, [])])


@model
def two_axes():
    """x[B,T] -> sum over T [B], transpose [T,B]"""
    return build(
        [h.make_node("ReduceSum", ["x", "axis"], ["sum"], keepdims=0),
         h.make_node("Transpose", ["x"], ["turned"], perm=[1, 0])],
        [value("x", T.FLOAT, ["B", "T"])],
        [value("sum", T.FLOAT, ["B"]), value("turned", T.FLOAT, ["T", "B"])],
        [constant("axis", [1], np.int64)])


@model
def non_zero():
    """indices of x != 0, int64[1,K]: K depends on the values"""
    return build([h.make_node("NonZero", ["x"], ["y"])],
                 [value("x", T.FLOAT, ["N"])], [value("y", T.INT64, [1, "K"])])


@model
def branch():
    """x * 2 if sum(x) > 0 else x - 1"""
    def arm(op, other, name):
        return h.make_graph([h.make_node(op, ["x", other], [name])], name, [],
                            [value(name, T.FLOAT, ["N"])])
    return build(
        [h.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
         h.make_node("Greater", ["s", "zero"], ["positive"]),
         h.make_node("If", ["positive"], ["y"], then_branch=arm("Mul", "two", "then_y"),
                     else_branch=arm("Sub", "one", "else_y"))],
        [value("x", T.FLOAT, ["N"])], [value("y", T.FLOAT, ["N"])],
        [constant("zero", 0), constant("two", 2), constant("one", 1)])


@model
def constants():
    """x + 1, and two outputs that no input reaches: [1,2,3] as stored, [1,2,3] * 2 folded"""
    return build(
        [h.make_node("Add", ["x", "one"], ["y"]), h.make_node("Mul", ["table", "two"], ["folded"])],
        [value("x", T.FLOAT, ["N"])],
        [value("y", T.FLOAT, ["N"]), value("table", T.FLOAT, [3]), value("folded", T.FLOAT, [3])],
        [constant("one", 1), constant("two", 2), constant("table", [1, 2, 3])])


@model
def initializer_input():
    """x * k, where k has a value (3) and is listed as an input"""
    return build([h.make_node("Mul", ["x", "k"], ["y"])],
                 [value("x", T.FLOAT, ["N"]), value("k", T.FLOAT, [])],
                 [value("y", T.FLOAT, ["N"])], [constant("k", 3)])


KINDS = [("uint8", T.UINT8), ("int8", T.INT8), ("uint16", T.UINT16), ("int16", T.INT16),
         ("uint32", T.UINT32), ("int32", T.INT32), ("uint64", T.UINT64), ("int64", T.INT64),
         ("float16", T.FLOAT16), ("bfloat16", T.BFLOAT16), ("float32", T.FLOAT),
         ("float64", T.DOUBLE), ("bool", T.BOOL)]


@model
def dtypes():
    """for each dtype: Reshape(in_DTYPE[N], [N, 1]), which keeps every bit"""
    return build(
        [h.make_node("Reshape", [f"in_{name}", "column"], [f"out_{name}"]) for name, _ in KINDS],
        [value(f"in_{name}", kind, ["N"]) for name, kind in KINDS],
        [value(f"out_{name}", kind, ["N", 1]) for name, kind in KINDS],
        [constant("column", [-1, 1], np.int64)])


@model
def typed_constants():
    """y = relu(x), and for each dtype the constant [1, 2], stored in the field of its type"""
    ones = [h.make_tensor(f"c_{name}", kind, [2], [1, 2] if kind != T.BOOL else [1, 0])
            for name, kind in KINDS]
    return build([h.make_node("Relu", ["x"], ["y"])], [value("x", T.FLOAT, ["N"])],
                 [value("y", T.FLOAT, ["N"])] +
                 [value(f"c_{name}", kind, [2]) for name, kind in KINDS], ones)


@model
def unknown_rank():
    """relu(x), nothing said about the shape"""
    return build([h.make_node("Relu", ["x"], ["y"])],
                 [value("x", T.FLOAT, None)], [value("y", T.FLOAT, None)])


@model
def unnamed_axis():
    """relu(x[?,?,2]): no name, and the placeholder that some exporters give every axis"""
    return build([h.make_node("Relu", ["x"], ["y"])],
                 [value("x", T.FLOAT, [None, "?", 2])], [value("y", T.FLOAT, [None, "?", 2])])


@model
def string_input():
    """s == "yes": a dtype that no engine of ours shares"""
    yes = h.make_tensor("yes", T.STRING, [], [b"yes"])
    return build([h.make_node("Equal", ["s", "yes"], ["y"])],
                 [value("s", T.STRING, ["N"])], [value("y", T.BOOL, ["N"])], [yes], opset=19)


@model
def sequence_output():
    """x split into a sequence of its rows"""
    parts = h.make_tensor_sequence_value_info("parts", T.FLOAT, None)
    return build([h.make_node("SplitToSequence", ["x"], ["parts"], axis=0)],
                 [value("x", T.FLOAT, ["N", 2])], [parts])


@model
def missing_tensor():
    """adds a tensor that nothing makes"""
    return build([h.make_node("Add", ["x", "nobody"], ["y"])],
                 [value("x", T.FLOAT, ["N"])], [value("y", T.FLOAT, ["N"])])


@model
def missing_operator():
    """an operator of a domain that nobody has"""
    made = build([h.make_node("Frobnicate", ["x"], ["y"], domain="com.acme")],
                 [value("x", T.FLOAT, ["N"])], [value("y", T.FLOAT, ["N"])])
    made.opset_import.append(h.make_opsetid("com.acme", 1))
    return made


@model
def opset_999():
    """relu in an operator set that does not exist"""
    return build([h.make_node("Relu", ["x"], ["y"])],
                 [value("x", T.FLOAT, ["N"])], [value("y", T.FLOAT, ["N"])], opset=999)


def external(location, in_branch=False):
    """y[2] = x + w, w = [10, 20] in another file; with in_branch, inside an If"""
    weights = T(name="w", data_type=T.FLOAT, dims=[2], data_location=T.EXTERNAL)
    for key, text in (("location", location), ("offset", "0"), ("length", "8")):
        weights.external_data.add(key=key, value=text)
    inputs, outputs = [value("x", T.FLOAT, [2])], [value("y", T.FLOAT, [2])]
    if not in_branch:
        return build([h.make_node("Add", ["x", "w"], ["y"])], inputs, outputs, [weights])
    then = h.make_graph([h.make_node("Add", ["x", "w"], ["sum"])], "then", [],
                        [value("sum", T.FLOAT, [2])], [weights])
    other = h.make_graph([h.make_node("Identity", ["x"], ["same"])], "else", [],
                         [value("same", T.FLOAT, [2])])
    return build(
        [h.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
         h.make_node("Greater", ["s", "zero"], ["positive"]),
         h.make_node("If", ["positive"], ["y"], then_branch=then, else_branch=other)],
        inputs, outputs, [constant("zero", 0)])


def main(out: pathlib.Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, function in MODELS.items():
        onnx.save(function(), out / f"{name}.onnx")

    onnx.save(external("weights/w.bin"), out / "external.onnx")
    onnx.save(external("weights/w.bin", in_branch=True), out / "external_in_branch.onnx")
    onnx.save(external("weights/gone.bin"), out / "external_missing.onnx")
    onnx.save(external("../outside.bin"), out / "external_outside.onnx")
    (out / "weights").mkdir(exist_ok=True)
    (out / "weights" / "w.bin").write_bytes(np.array([10, 20], "<f4").tobytes())

    whole = (out / "branch.onnx").read_bytes()
    (out / "truncated.onnx").write_bytes(whole[: len(whole) // 2])
    (out / "random.onnx").write_bytes(random.Random(7).randbytes(512))
    (out / "empty.onnx").write_bytes(b"")


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "onnx")
