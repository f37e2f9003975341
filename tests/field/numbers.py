"""Element types, half precision and quantization."""

from __future__ import annotations

from tests.field.case import ERROR, SERIOUS, Case, Verdict
from vexlint.config import Contract

CASES = (
    Case(
        "resize_fp16_scales",
        "fp16 conversion turned Resize scales to half",
        "microsoft/onnxruntime#8327, #14827; onnxconverter-common#306",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float16[1,3,4,4] x) => (float16[1,3,8,8] y)
   <float16[4] s = {15360,15360,16384,16384}>
{
   [Resize_y] y = Resize <mode = "nearest"> (x, "", s)
}
""",
        (Verdict(("VEX305",), ("y",), ERROR, ("onnxruntime@1.32", "onnx")),),
        silent_on=("openvino@2026.4",),
    ),
    Case(
        "dtype_double_weights",
        "double constants",
        "onnx/onnx-tensorrt#501",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,3,8,8] x) => (float[1,3,8,8] y)
   <double c = {0.1}>
{
   [Cast_xd] xd = Cast <to = 11> (x)
   [Mul_t] t = Mul (xd, c)
   [Cast_y] y = Cast <to = 1> (t)
}
""",
        (Verdict(("VEX601",), ("t",), SERIOUS, ("tensorrt@10.13", "rknn")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "dtype_uint8_input_transpose_first",
        "uint8 image must be cast first",
        "NVIDIA/TensorRT#1022, onnx/onnx-tensorrt#400, tensorflow-onnx#912",
        """
<ir_version: 8, opset_import: ["": 17]>
g (uint8[1,8,8,3] x) => (float[1,3,8,8] y)
   <float c = {255}>
{
   [Transpose_t] t = Transpose <perm = [0, 3, 1, 2]> (x)
   [Cast_f] f = Cast <to = 1> (t)
   [Div_y] y = Div (f, c)
}
""",
        (Verdict(("VEX601", "VEX207"), ("t",), ERROR, ("tensorrt@10.13", "tensorrt-rtx@1.7")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "dtype_topk_int32",
        "integer TopK",
        "onnx/onnx-tensorrt#839, #450",
        """
<ir_version: 6, opset_import: ["": 11]>
g (int32[1,10] x) => (int32[1,3] v, int64[1,3] i)
   <int64[1] kk = {3}>
{
   [TopK_v] v, i = TopK <axis = 1> (x, kk)
}
""",
        (Verdict(("VEX207", "VEX601"), ("v",), SERIOUS, ("tensorrt@8.5",)),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "fp16_mask_minus_1e9",
        "mask constant becomes -inf, 0*-inf = NaN",
        "NVIDIA/TensorRT#2466, #1500",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,4,8] x, float[1,1,8] mask) => (float[1,4,8] y)
   <float one = {1}, float neg = {-1e+12}>
{
   [Sub_inv] inv = Sub (one, mask)
   [Mul_bias] bias = Mul (inv, neg)
   [Add_t] t = Add (x, bias)
   [Softmax_y] y = Softmax <axis = -1> (t)
}
""",
        (Verdict(("VEX603",), ("bias", "neg"), ERROR, contract=Contract(path="*", precision="fp16")),),
    ),
    Case(
        "fp16_layernorm_eps_underflow",
        "eps 1e-12 becomes 0",
        "NVIDIA/TensorRT#2466, #3921",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,4,8] x) => (float[1,4,8] y)
   <float eps = {1e-12}>
{
   [ReduceMean_mu] mu = ReduceMean <axes = [-1]> (x)
   [Sub_d] d = Sub (x, mu)
   [Mul_q] q = Mul (d, d)
   [ReduceMean_var] var = ReduceMean <axes = [-1]> (q)
   [Add_ve] ve = Add (var, eps)
   [Sqrt_sd] sd = Sqrt (ve)
   [Div_y] y = Div (d, sd)
}
""",
        (Verdict(("VEX603",), ("ve", "eps"), ERROR, contract=Contract(path="*", precision="fp16")),),
    ),
    Case(
        "qdq_uint8_zp128",
        "asymmetric uint8",
        "NVIDIA/TensorRT#2774, #4698; tensorflow-onnx#1713",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,3,8,8] x) => (float[1,4,8,8] y)
   <float s = {0.02}, uint8 z = {128}>
{
   [QuantizeLinear_q] q = QuantizeLinear (x, s, z)
   [DequantizeLinear_d] d = DequantizeLinear (q, s, z)
   [Conv_y] y = Conv (d, w)
}
""",
        (Verdict(("VEX604",), ("q",), ERROR, ("tensorrt@10.13", "tensorrt-rtx@1.7")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
        weights={"w": (4, 3, 1, 1)},
    ),
    Case(
        "qdq_convtranspose_wrong_axis",
        "per-channel axis of transposed conv",
        "NVIDIA/TensorRT#1699 (quantised ConvTranspose); the axis error is own construction",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,4,4,4] x) => (float[1,2,8,8] y)
   <int8[4,2,2,2] wq =
       {88,70,46,-63,-6,-15,-97,-53,-57,-9,-9,-36,15,-41,70,94,61,-16,5,-14,95,96,34,-27,-79,45,-40,64,0,-45,29,-28},
       float[4] ws = {0.01,0.01,0.01,0.01}, int8[4] wz = {0,0,0,0}, float s = {0.02}, int8 z = {0}>
{
   [DequantizeLinear_w] w = DequantizeLinear <axis = 0> (wq, ws, wz)
   [QuantizeLinear_q] q = QuantizeLinear (x, s, z)
   [DequantizeLinear_d] d = DequantizeLinear (q, s, z)
   [ConvTranspose_y] y = ConvTranspose <strides = [2, 2]> (d, w)
}
""",
        (Verdict(("VEX604",), ("w",), SERIOUS, ("tensorrt@10.13",)),),
        silent_on=("openvino@2026.4",),
    ),
    Case(
        "qdq_dynamic_quantize",
        "dynamic quantisation",
        "microsoft/onnxruntime#21169",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,8] x) => (float[1,8] y) {
   [DynamicQuantizeLinear_q] q, s, z = DynamicQuantizeLinear (x)
   [DequantizeLinear_y] y = DequantizeLinear (q, s, z)
}
""",
        (Verdict(("VEX605",), ("q",), ERROR, ("tensorrt@10.13", "opencv@5.0")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
)
