"""How a file is put together."""

from __future__ import annotations

from onnx import ModelProto, TensorProto

from tests.field.case import ANY, ERROR, SERIOUS, Case, Verdict


def elsewhere(model: ModelProto) -> None:
    """Adds the weights w, stored in a file outside the model's folder."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[64], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "../../../../../../etc/passwd"), ("offset", "0"), ("length", "256")):
        tensor.external_data.add(key=key, value=value)
    model.graph.initializer.append(tensor)


CASES = (
    Case(
        "init_also_graph_input_ir6",
        "weights listed as inputs: not constant",
        "microsoft/onnxruntime#4033, #3449, #4507",
        """
<ir_version: 6, opset_import: ["": 11]>
g (float[1,2,4] x, int64[2] sh, float[8,4] w) => (float[1,4] y)
   <int64[2] sh = {1,8}>
{
   [Reshape_t] t = Reshape (x, sh)
   [MatMul_y] y = MatMul (t, w)
}
""",
        (Verdict(("VEX707",), ("sh", "w"), ANY),),
        weights={"w": (8, 4)},
    ),
    Case(
        "names_duplicate_nodes",
        "two nodes share a name",
        "microsoft/onnxruntime#10706, #8905, #15849",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,3,8,8] x) => (float[1,3,8,8] y) {
   [act] a = Relu (x)
   [act] y = Sigmoid (a)
}
""",
        (Verdict(("VEX701",), ("act",), ERROR, ("onnxruntime@1.32",)),),
        silent_on=("openvino@2026.4",),
    ),
    Case(
        "order_not_topological",
        "Cast inserted at the end by fp16 tool",
        "microsoft/onnxconverter-common#208, #272",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float16[1,4] x) => (float[1,4] y)
   <float k2 = {2}>
{
   [Mul_y] y = Mul (c, k2)
   [graph_input_cast_0] c = Cast <to = 1> (x)
}
""",
        (Verdict(("VEX703",), ("y",), ERROR, ("onnx", "opencv@5.0")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "output_is_graph_input",
        "passthrough output",
        "pytorch/pytorch#53219",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,3,8,8] x, float[1,2] scale) => (float[1,3,8,8] y, float[1,2] scale) {
   [Relu_y] y = Relu (x)
}
""",
        (),
        nothing="every runtime at hand takes it, and no table says otherwise",
        silent_on=("onnxruntime@1.32", "openvino@2026.4", "tensorrt@10.13"),
    ),
    Case(
        "shape_output_declared_wrong",
        "declared output [1,3,..], real [1,6,..]",
        "onnxsim/onnxsim#155, onnx/onnx#1479",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,3,8,8] x) => (float[1,3,8,8] y) {
   [Concat_y] y = Concat <axis = 1> (x, x)
}
""",
        (Verdict(("VEX406",), ("y",), SERIOUS),),
    ),
    Case(
        "subgraph_captures_outer_identity",
        "outer nodes used only inside If",
        "onnx/sklearn-onnx#854, microsoft/onnxruntime#651",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,4] x, bool cond) => (float[1,4] y)
   <float[1,4] c = {1,1,1,1}>
{
   [Identity_idc] idc = Identity (c)
   [Identity_idx_] idx_ = Identity (x)
   [If_y] y = If (cond) <else_branch: graph = else () => (float[1,4] eb) {
      [Sub_eb] eb = Sub (idc, idx_)
   }, then_branch: graph = then () => (float[1,4] tb) {
      [Add_tb] tb = Add (idc, idx_)
   }>
}
""",
        (),
        nothing="a case for what removes nodes, not for what judges them",
        silent_on=("onnxruntime@1.32", "openvino@2026.4", "tensorrt@10.13", "onnx"),
    ),
    Case(
        "subgraph_shadowed_name",
        "branch redefines an outer name",
        "onnx/onnx#2082, onnxruntime#1186",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,4] x, bool cond) => (float[1,4] y) {
   [Sigmoid_t] t = Sigmoid (x)
   [If_y] y = If (cond) <else_branch: graph = else () => (float[1,4] eb) {
      [Neg_eb] eb = Neg (t)
   }, then_branch: graph = then () => (float[1,4] tb) {
      [r] t = Relu (x)
      [Abs_tb] tb = Abs (t)
   }>
}
""",
        (Verdict(("VEX704",), ("t", "r"), ERROR, ("onnxruntime@1.32", "onnx")),),
    ),
    Case(
        "size_external_traversal",
        "location leaves the folder",
        "onnx/onnx#3991, onnxruntime PR#26776",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[64] x) => (float[64] y) {
   [Add_y] y = Add (x, w)
}
""",
        (Verdict(("VEX711",), ("w",), ERROR, ("onnxruntime@1.32", "openvino@2026.4", "tensorrt@10.13", "opencv@5.0")),),
        edit=elsewhere,
    ),
)
