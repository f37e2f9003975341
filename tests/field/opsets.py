"""Numbers of opsets and IR, and operators that do not go with them."""

from __future__ import annotations

from tests.field.case import ERROR, SERIOUS, Case, Verdict

CASES = (
    Case(
        "ir_too_new_for_runtime",
        "file stamped IR 10 while runtime stops at 9",
        "microsoft/onnxruntime#20559, #15874, #16638, NVIDIA/TensorRT#3841",
        """
<ir_version: 10, opset_import: ["": 17]>
g (float[1,3,8,8] x) => (float[1,3,8,8] y) {
   [Relu_y] y = Relu (x)
}
""",
        (Verdict(("VEX202",), (), ERROR, ("onnxruntime@1.17", "onnxruntime@1.15")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "opset_too_new_no_new_ops",
        "opset number above the runtime's official range although ops did not change meaning",
        "k2-fsa/sherpa-onnx#1813, onnxruntime#9418, onnxruntime#5905",
        """
<ir_version: 8, opset_import: ["": 22]>
g (float[1,3,8,8] x) => (float[1,4,6,6] y) {
   [Conv_t] t = Conv (x, w)
   [Relu_y] y = Relu (t)
}
""",
        (
            Verdict(("VEX201",), (), ERROR, ("onnxruntime@1.17", "onnxruntime@1.15")),
            Verdict(("VEX201",), (), SERIOUS, ("tensorrt@8.6",)),
        ),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
        weights={"w": (4, 3, 3, 3)},
    ),
    Case(
        "opset_unused_import_too_new",
        "an opset import that no node uses blocks loading",
        "microsoft/onnxruntime#11898, onnxruntime-inference-examples#345",
        """
<ir_version: 8, opset_import: ["": 15, "ai.onnx.ml": 99, "com.microsoft.nchwc": 1, "ai.onnx.training": 1]>
g (float[1,3,8,8] x) => (float[1,3,8,8] y) {
   [Relu_y] y = Relu (x)
}
""",
        (Verdict(("VEX206",), (), ERROR, ("onnxruntime@1.32", "onnxruntime@1.17")),),
        silent_on=("openvino@2026.4",),
    ),
    Case(
        "mixed_upsample_in_opset11",
        "opset number raised without replacing Upsample",
        "microsoft/onnxruntime#9197, jkjung-avt/tensorrt_demos#70",
        """
<ir_version: 6, opset_import: ["": 11]>
g (float[1,3,8,8] x) => (float[1,3,16,16] y)
   <float[4] s = {1,1,2,2}>
{
   [Upsample_y] y = Upsample <mode = "nearest"> (x, s)
}
""",
        (Verdict(("VEX208", "VEX207"), ("y",), ERROR, ("onnxruntime@1.32", "onnx")),),
    ),
    Case(
        "mixed_squeeze_axes_attr_in_opset13",
        "axes attribute kept at opset 13",
        "microsoft/onnxruntime#7338",
        """
<ir_version: 7, opset_import: ["": 13]>
g (float[1,3,8,8] x) => (float[1,8,8] y) {
   [ReduceSum_t] t = ReduceSum <axes = [1], keepdims = 1> (x)
   [Squeeze_y] y = Squeeze <axes = [1]> (t)
}
""",
        (
            Verdict(("VEX106",), ("t",), ERROR, ("onnxruntime@1.32", "onnx")),
            Verdict(("VEX106",), ("y",), ERROR, ("onnxruntime@1.32", "onnx")),
        ),
    ),
    Case(
        "clip_int64_opset11",
        "integer Clip before opset 12",
        "microsoft/onnxruntime#20674",
        """
<ir_version: 6, opset_import: ["": 11]>
g (int64[4] x) => (int64[4] y)
   <int64 lo = {0}, int64 hi = {9}>
{
   [Clip_y] y = Clip (x, lo, hi)
}
""",
        (Verdict(("VEX207", "VEX112"), ("y",), ERROR, ("onnxruntime@1.32",)),),
        silent_on=("openvino@2026.4",),
    ),
    Case(
        "sem_gridsample20_name_bilinear",
        "old spelling in new opset",
        "onnxruntime PR#17744, onnxsim/onnxsim#1210",
        """
<ir_version: 9, opset_import: ["": 20]>
g (float[1,3,8,8] x, float[1,5,5,2] g) => (float[1,3,5,5] y) {
   [GridSample_y] y = GridSample <mode = "bilinear"> (x, g)
}
""",
        (Verdict(("VEX106", "VEX307"), ("y",), ERROR, ("onnxruntime@1.32", "openvino@2026.4")),),
    ),
)
