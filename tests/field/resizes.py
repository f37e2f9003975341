"""Resize."""

from __future__ import annotations

from tests.field.case import ERROR, INFO, SERIOUS, Case, Verdict
from vexlint.config import Contract

CASES = (
    Case(
        "resize_tf_half_pixel_nn_floor",
        "tf2onnx nearest resize rejected",
        "onnx/onnx-tensorrt#913, onnx/tensorflow-onnx#2248",
        """
<ir_version: 6, opset_import: ["": 11]>
g (float[1,3,4,4] x) => (float[1,3,8,8] y)
   <float[0] e = {}, int64[4] z = {1,3,8,8}>
{
   [Resize_y] y = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn", mode = "nearest",
       nearest_mode = "floor"> (x, e, e, z)
}
""",
        (Verdict(("VEX303", "VEX304", "VEX207"), ("y",), ERROR, ("tensorrt@10.13", "tensorrt-rtx@1.7")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "resize_default_nearest_26_to_64",
        "scale stored as float32 moves one output pixel",
        "microsoft/onnxruntime#12098, #28085, #28310",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,1,1,26] x) => (float[1,1,1,64] y)
   <float[4] s = {1,1,1,2.4615386}>
{
   [Resize_y] y = Resize <coordinate_transformation_mode = "asymmetric", mode = "nearest",
       nearest_mode = "floor"> (x, "", s)
}
""",
        (Verdict(("VEX303", "VEX305"), ("y",), SERIOUS, ("onnxruntime@1.32", "openvino@2026.4")),),
    ),
    Case(
        "resize_bilinear_asymmetric_shift",
        "decoder maps shift because exporter wrote asymmetric",
        "onnx/onnx-tensorrt#457; NVIDIA/TensorRT#273, #974",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,1,8,8] x) => (float[1,1,32,32] y)
   <int64[4] z = {1,1,32,32}>
{
   [Resize_y] y = Resize <coordinate_transformation_mode = "asymmetric", mode = "linear"> (x, "", "",
       z)
}
""",
        (
            Verdict(("VEX301",), ("y",), INFO),
            Verdict(("VEX301",), ("y",), ERROR, contract=Contract(path="*", resize="half_pixel")),
        ),
    ),
    Case(
        "resize_antialias_18",
        "antialias ignored or refused",
        "NVIDIA/TensorRT#3560; pytorch/vision#6806",
        """
<ir_version: 8, opset_import: ["": 18]>
g (float[1,3,32,32] x) => (float[1,3,8,8] y)
   <int64[4] z = {1,3,8,8}>
{
   [Resize_y] y = Resize <antialias = 1, coordinate_transformation_mode = "half_pixel", mode =
       "linear"> (x, "", "", z)
}
""",
        (Verdict(("VEX304",), ("y",), ERROR, ("tensorrt@10.13", "tensorrt-rtx@1.7", "openvino@2026.4")),),
        silent_on=("onnxruntime@1.32",),
    ),
    Case(
        "resize_half_pixel_symmetric_19",
        "new mode",
        "onnx/onnx-mlir#2490; llvm/torch-mlir#3420",
        """
<ir_version: 8, opset_import: ["": 19]>
g (float[1,1,8,8] x) => (float[y_d0,y_d1,y_d2,y_d3] y)
   <float[4] s = {1,1,0.6,0.6}>
{
   [Resize_y] y = Resize <coordinate_transformation_mode = "half_pixel_symmetric", mode = "linear">
       (x, "", s)
}
""",
        (Verdict(("VEX304",), ("y",), ERROR, ("tensorrt@10.13", "tensorrt-rtx@1.7", "openvino@2026.4")),),
        silent_on=("onnxruntime@1.32",),
    ),
    Case(
        "resize_tf_crop_and_resize",
        "roi based resize",
        "llvm/torch-mlir#3420; onnx/onnx-tensorflow#612",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,1,8,8] x) => (float[1,1,4,4] y)
   <float[8] roi = {0,0,0.2,0.2,1,1,0.8,0.8}, int64[4] z = {1,1,4,4}>
{
   [Resize_y] y = Resize <coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value:
       float = 0, mode = "linear"> (x, roi, "", z)
}
""",
        (Verdict(("VEX304",), ("y",), ERROR, ("tensorrt@10.13", "tensorrt-rtx@1.7", "openvino@2026.4", "opencv@5.0")),),
        silent_on=("onnxruntime@1.32",),
    ),
    Case(
        "resize_scales_from_shape_math",
        "scales computed at run time; EP rejects the node",
        "onnx/onnx-tensorrt#423, #398; microsoft/onnxruntime#27696 (CoreML)",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,3,h,w] x) => (float[y_d0,y_d1,y_d2,y_d3] y)
   <float[4] tgt = {1,3,64,64}>
{
   [Shape_sh] sh = Shape (x)
   [Cast_sf] sf = Cast <to = 1> (sh)
   [Div_s] s = Div (tgt, sf)
   [Resize_y] y = Resize <coordinate_transformation_mode = "half_pixel", mode = "linear"> (x, "", s)
}
""",
        (Verdict(("VEX305",), ("y",), SERIOUS, ("tensorrt@8.4", "coreml")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "resize_fractional_output_size",
        "5*1.5 and 5*1.7 floor vs round",
        "inisis/OnnxSlim#221",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,1,5,5] x) => (float[y_d0,y_d1,y_d2,y_d3] y)
   <float[4] s = {1,1,1.5,1.7}>
{
   [Resize_y] y = Resize <coordinate_transformation_mode = "half_pixel", mode = "linear"> (x, "", s)
}
""",
        (Verdict(("VEX305",), ("y",), INFO),),
    ),
)
