"""Operators with attributes and values that only some runtimes take, and tails that accelerators leave out."""

from __future__ import annotations

from tests.field.case import ANY, ERROR, SERIOUS, Case, Verdict
from vexlint.config import Contract

CASES = (
    Case(
        "size_tile_fold_explosion",
        "folding Tile/ConstantOfShape bloats file",
        "onnxsim/onnxsim#178, #272; pytorch#75597",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1024,1024] x) => (float[1024,1024] y)
   <int64[2] shp = {1024,1024}, float[1,1] small = {0.5}, int64[2] reps = {1024,1024}>
{
   [ConstantOfShape_ones] ones = ConstantOfShape <value: tensor = float[1] v {1}> (shp)
   [Tile_big] big = Tile (small, reps)
   [Add_t] t = Add (x, big)
   [Add_y] y = Add (t, ones)
}
""",
        (),
        nothing="the file is small; what an optimiser makes of it is the optimiser's",
        silent_on=("onnxruntime@1.32", "openvino@2026.4", "tensorrt@10.13"),
    ),
    Case(
        "scatternd_reduction_none_attr",
        "attribute present with default value rejected",
        "microsoft/onnxruntime#23618, onnx/onnx-tensorrt#1013",
        """
<ir_version: 8, opset_import: ["": 18]>
g (float[4,4] x, int64[2,1] i, float[2,4] u) => (float[4,4] y) {
   [ScatterND_y] y = ScatterND <reduction = "none"> (x, i, u)
}
""",
        (Verdict(("VEX207",), ("y",), ERROR, ("tensorrt@10.7",)),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "scatternd_duplicate_indices",
        "duplicate constant indices, order undefined",
        "NVIDIA/TensorRT#4425",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[4,2] x, float[3,2] u) => (float[4,2] y)
   <int64[3,1] i = {1,1,3}>
{
   [ScatterND_y] y = ScatterND (x, i, u)
}
""",
        (Verdict(("VEX207", "VEX209"), ("y",), SERIOUS, ("tensorrt@10.13",)),),
        silent_on=("onnxruntime@1.32",),
    ),
    Case(
        "einsum_three_inputs",
        "three operands",
        "onnx/onnx-tensorrt#1028, pytorch/TensorRT#1439",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[2,3] a, float[3,4] b, float[4,5] c) => (float[2,5] y) {
   [Einsum_y] y = Einsum <equation = "ij,jk,kl->il"> (a, b, c)
}
""",
        (Verdict(("VEX207",), ("y",), SERIOUS, ("tensorrt@10.7",)),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "pad_reflect",
        "reflect padding splits the graph",
        "NVIDIA/TensorRT#1019, microsoft/onnxruntime#28022 (CoreML)",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,3,8,8] x) => (float[1,3,10,10] y)
   <int64[8] p = {0,0,1,1,0,0,1,1}>
{
   [Pad_y] y = Pad <mode = "reflect"> (x, p)
}
""",
        (Verdict(("VEX207",), ("y",), SERIOUS, ("tensorrt@7.2", "coreml")),),
    ),
    Case(
        "focus_strided_slices",
        "stride-2 slices (Focus)",
        "Tencent/ncnn#2100, #3127; opencv/opencv#18920; ultralytics/yolov5#848",
        """
<ir_version: 6, opset_import: ["": 11]>
g (float[1,3,8,8] x) => (float[1,12,4,4] y)
   <int64[1] s0 = {0}, int64[1] s1 = {1}, int64[1] big = {9223372036854775807}, int64[1] h_ = {2},
       int64[1] w_ = {3}, int64[1] two = {2}>
{
   [Slice_a0] a0 = Slice (x, s0, big, h_, two)
   [Slice_p0] p0 = Slice (a0, s0, big, w_, two)
   [Slice_a1] a1 = Slice (x, s1, big, h_, two)
   [Slice_p1] p1 = Slice (a1, s0, big, w_, two)
   [Slice_a2] a2 = Slice (x, s0, big, h_, two)
   [Slice_p2] p2 = Slice (a2, s1, big, w_, two)
   [Slice_a3] a3 = Slice (x, s1, big, h_, two)
   [Slice_p3] p3 = Slice (a3, s1, big, w_, two)
   [Concat_y] y = Concat <axis = 1> (p0, p1, p2, p3)
}
""",
        (),
        nothing="slow on some accelerators, refused by none whose operators are known",
        silent_on=("onnxruntime@1.32", "openvino@2026.4", "ncnn", "opencv@4.10"),
    ),
    Case(
        "npu_tail_dfl_softmax_transpose",
        "decode tail unsupported",
        "hailo-ai/hailo_model_zoo#87, #98",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,8,4,4] x) => (float[1,4,16] y)
   <int64[4] s1 = {1,4,16,16}, float[1,16,1,1] proj = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15},
       int64[3] s2 = {1,4,16}>
{
   [Conv_t] t = Conv (x, w)
   [Reshape_r] r = Reshape (t, s1)
   [Transpose_tr] tr = Transpose <perm = [0, 2, 1, 3]> (r)
   [Softmax_sm] sm = Softmax <axis = 1> (tr)
   [Conv_d] d = Conv (sm, proj)
   [Reshape_y] y = Reshape (d, s2)
}
""",
        (),
        nothing="no public list of that compiler's operators to judge by",
        silent_on=("onnxruntime@1.32", "openvino@2026.4", "tensorrt@10.13"),
        weights={"w": (64, 8, 1, 1)},
    ),
    Case(
        "pre_nhwc_input_transpose",
        "NHWC input wrapped by Transpose",
        "dusty-nv/jetson-inference#1474, openvino#3909",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,8,8,3] x) => (float[1,8,8,4] y) {
   [Transpose_t] t = Transpose <perm = [0, 3, 1, 2]> (x)
   [Conv_c] c = Conv (t, w)
   [Transpose_y] y = Transpose <perm = [0, 2, 3, 1]> (c)
}
""",
        (Verdict(("VEX804",), ("x", "t"), ANY, contract=Contract(path="*", preprocessing={"layout": "NCHW"})),),
        weights={"w": (4, 3, 1, 1)},
    ),
    Case(
        "pre_channel_flip_in_graph",
        "channel reversal in graph",
        "openvinotoolkit/openvino#3909 (BGR default)",
        """
<ir_version: 8, opset_import: ["": 17], metadata_props: ["color_order": "RGB"]>
g (float[1,3,8,8] x) => (float[1,4,8,8] y)
   <int64[3] bgr = {2,1,0}>
{
   [Gather_t] t = Gather <axis = 1> (x, bgr)
   [Conv_y] y = Conv (t, w)
}
""",
        (Verdict(("VEX803", "VEX804"), ("t", "x"), ANY, contract=Contract(path="*", preprocessing={"colour": "RGB"})),),
        weights={"w": (4, 3, 1, 1)},
    ),
    Case(
        "simplifier_freezes_dynamic_batch",
        "fixing shapes during simplify removes dynamic batch",
        "onnxsim/onnxsim#101, #182, PR#526",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[batch,3,4,4] x) => (float[batch,48] y)
   <int64 z = {0}, int64[1] ax = {0}, int64[1] m1 = {-1}>
{
   [Shape_sh] sh = Shape (x)
   [Gather_b] b = Gather (sh, z)
   [Unsqueeze_b1] b1 = Unsqueeze (b, ax)
   [Concat_rs] rs = Concat <axis = 0> (b1, m1)
   [Reshape_y] y = Reshape (x, rs)
}
""",
        (),
        nothing="a case for comparing two files, not for judging one",
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
)
