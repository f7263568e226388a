"""Save the attention of an ONNX model: python examples/from_onnx_runtime.py model.onnx inputs.npz heads.safetensors

Softmax between two products of matrices is attention. Their inputs become outputs of the model, and constant factors
on the way are what was multiplied: between the products `scale`, before the first one `prescaled`.
"""

from __future__ import annotations

import sys
from typing import Any

import attn_tui
import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper


def save(model: Any, inputs: dict[str, Any], path: str) -> None:
    """Run a model on these inputs, and save each of its layers with attention."""
    made = {name: node for node in model.graph.node for name in node.output}
    used = {name: node for node in model.graph.node for name in node.input}
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    constants |= {
        node.output[0]: numpy_helper.to_array(node.attribute[0].t)
        for node in model.graph.node
        if node.op_type == "Constant"
    }

    def factor(name: str) -> tuple[str, float, str]:
        """Return what a tensor is without its constant factors, these, and the name of a mask that is added."""
        times, mask = 1.0, ""
        while (node := made.get(name)) is not None and node.op_type in ("Mul", "Div", "Add", "Transpose"):
            if node.op_type == "Transpose":
                break
            sides = sorted(node.input, key=lambda each: made.get(each) is None or each in constants)
            name, other = sides[0], sides[-1]
            if node.op_type == "Add":
                mask = other
            elif constants.get(other) is None or constants[other].size != 1:
                break
            else:
                times *= float(constants[other]) ** (1 if node.op_type == "Mul" else -1)
        return name, times, mask

    found = []
    for softmax in (node for node in model.graph.node if node.op_type == "Softmax"):
        name, scale, mask = factor(softmax.input[0])
        product, values = made.get(name), used.get(softmax.output[0])
        if product is None or values is None or {product.op_type, values.op_type} != {"MatMul"}:
            continue
        sides = [factor(each)[1] for each in product.input]
        names = [*product.input, values.input[1], values.output[0], softmax.output[0], *([mask] if mask else [])]
        found.append((softmax.name or softmax.output[0], scale, sides, names))
    wanted = dict.fromkeys(name for *_, names in found for name in names if name not in constants)
    known = {each.name for each in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in known)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # which fuses these nodes
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    held = {**constants, **dict(zip(wanted, session.run([*wanted], inputs), strict=True))}
    calls = []
    for name, scale, sides, names in found:
        q, k, v, o, weights, *mask = (held[each] for each in names)
        k = k.swapaxes(-1, -2)
        bias = np.broadcast_to(mask[0], (*mask[0].shape[:-1], k.shape[2])) if mask else None
        calls.append(
            attn_tui.call(
                q, k, v, o, weights=weights, scale=scale, prescaled=sides, bias=bias, name=name, observed=True
            )
        )
    attn_tui.save(path, calls)


if __name__ == "__main__":
    file, arrays, output = sys.argv[1:]
    save(onnx.load(file), dict(np.load(arrays)), output)
    print(repr(attn_tui.diagnose(output, expect="1/sqrt(d)")))
