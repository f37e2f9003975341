"""Operators that mean another thing at another opset."""

from __future__ import annotations

from tests.field.case import ANY, ERROR, Case, Verdict

CASES = (
    Case(
        "sem_softmax_opset11_mid_axis",
        "opset<13 Softmax must flatten from axis; importers apply it on one axis",
        "openvinotoolkit/openvino#37823, #26519; apache/tvm#19420; onnxruntime PR#26391",
        """
<ir_version: 6, opset_import: ["": 11]>
g (float[2,3,4,5] x) => (float[2,3,4,5] y) {
   [Softmax_y] y = Softmax <axis = 1> (x)
}
""",
        (Verdict(("VEX209",), ("y",), ERROR, ("openvino@2026.4",)),),
        silent_on=("onnxruntime@1.32",),
    ),
    Case(
        "sem_resize10_upgrade",
        "converter 10->11 drops asymmetric/floor semantics",
        "onnx/onnx#8480, #3326; microsoft/onnxruntime#4419",
        """
<ir_version: 5, opset_import: ["": 10]>
g (float[1,1,4,4] x) => (float[1,1,8,8] y)
   <float[4] s = {1,1,2,2}>
{
   [Resize_y] y = Resize <mode = "linear"> (x, s)
}
""",
        (Verdict(("VEX209",), ("y",), ANY),),
    ),
    Case(
        "sem_upsample9_linear",
        "Upsample-9 raised past 11 changes coordinates",
        "onnx/onnx#2501, Xilinx/onnx-mlir#319",
        """
<ir_version: 4, opset_import: ["": 9]>
g (float[1,1,4,4] x) => (float[1,1,8,8] y)
   <float[4] s = {1,1,2,2}>
{
   [Upsample_y] y = Upsample <mode = "linear"> (x, s)
}
""",
        (Verdict(("VEX208", "VEX209"), ("y",), ANY),),
    ),
    Case(
        "sem_gridsample20_linear_trt",
        "GridSample-20 mode names unknown to the parser, silently nearest",
        "NVIDIA/TensorRT#4646, onnx/onnx-tensorrt#1060",
        """
<ir_version: 9, opset_import: ["": 20]>
g (float[1,3,8,8] x, float[1,5,5,2] g) => (float[1,3,5,5] y) {
   [GridSample_y] y = GridSample <align_corners = 0, mode = "linear", padding_mode = "zeros"> (x, g)
}
""",
        (Verdict(("VEX307",), ("y",), ERROR, ("tensorrt@10.13", "tensorrt@11.1", "tensorrt-rtx@1.5")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "sem_roialign10_default_shift",
        "RoiAlign-16 default adds a half-pixel shift that 10 did not have",
        "onnx/onnx#4487, #3428, #3625; onnxruntime#6921",
        """
<ir_version: 5, opset_import: ["": 10]>
g (float[1,1,8,8] x, float[2,4] r, int64[2] b) => (float[2,1,2,2] y) {
   [RoiAlign_y] y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2, spatial_scale:
       float = 1> (x, r, b)
}
""",
        (Verdict(("VEX209", "VEX307"), ("y",), ANY),),
    ),
    Case(
        "sem_avgpool19_samelower_countpad",
        "SAME_LOWER end padding ignored from opset 19",
        "microsoft/onnxruntime#24681",
        """
<ir_version: 9, opset_import: ["": 19]>
g (float[1,1,6,2] x) => (float[1,1,6,2] y) {
   [AveragePool_y] y = AveragePool <auto_pad = "SAME_LOWER", count_include_pad = 1, kernel_shape =
       [5, 1]> (x)
}
""",
        (),
        nothing="every version of ONNX Runtime at hand computes it as opset 18 does",
        silent_on=("onnxruntime@1.32", "onnxruntime@1.17", "openvino@2026.4"),
    ),
    Case(
        "conv_layernorm17_down16",
        "target below 17 has no LayerNormalization",
        "onnx/onnx#5988, #2673, #4616",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,4,8] x) => (float[1,4,8] y)
   <float[8] s = {1,1,1,1,1,1,1,1}, float[8] b = {0,0,0,0,0,0,0,0}>
{
   [LayerNormalization_y] y = LayerNormalization <axis = -1, epsilon: float = 1e-06> (x, s, b)
}
""",
        (
            Verdict(("VEX207",), ("y",), ERROR, ("tensorrt@8.5",)),
            Verdict(("VEX201",), (), ERROR, ("onnxruntime@1.10",)),
        ),
        silent_on=("onnxruntime@1.32",),
    ),
)
