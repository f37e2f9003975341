"""Sizes that are not known, or not what they say."""

from __future__ import annotations

from tests.field.case import ERROR, SERIOUS, Case, Verdict

CASES = (
    Case(
        "dyn_hw_no_profile",
        "engine build fails on dynamic inputs",
        "NVIDIA/TensorRT#1116, #1167, #532; onnxruntime#4505",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[batch,3,height,width] x) => (float[batch,4,height,width] y) {
   [Conv_y] y = Conv <pads = [1, 1, 1, 1]> (x, w)
}
""",
        (Verdict(("VEX401",), ("x",), ERROR, ("tensorrt@10.13",)),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
        weights={"w": (4, 3, 3, 3)},
    ),
    Case(
        "dyn_batch_hardcoded_reshape",
        "declared dynamic batch, Reshape baked to 1",
        "microsoft/onnxruntime#6424, #10463, #19280; pytorch#99701",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[batch,8,4,4] x) => (float[batch,3,4,4,7] y)
   <int64[5] sh = {1,3,7,4,4}>
{
   [Conv_t] t = Conv (x, w)
   [Reshape_r] r = Reshape (t, sh)
   [Transpose_y] y = Transpose <perm = [0, 1, 3, 4, 2]> (r)
}
""",
        (Verdict(("VEX404",), ("r",), SERIOUS),),
        weights={"w": (21, 8, 1, 1)},
    ),
    Case(
        "dyn_batch_only_first_image",
        "only image 0 gets detections",
        "ultralytics/ultralytics#21188",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[batch,10,6] p) => (float[batch,10,6] y)
   <int64 i0 = {0}, int64[1] ax = {0}>
{
   [Gather_one] one = Gather <axis = 0> (p, i0)
   [Unsqueeze_y] y = Unsqueeze (one, ax)
}
""",
        (Verdict(("VEX404",), ("one",), SERIOUS),),
    ),
    Case(
        "dyn_if_rank_mismatch",
        "squeeze exported as If with branches of different rank",
        "NVIDIA/TensorRT#2846, #1731, #1650, #4603; depth-anything-tensorrt#8",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[batch,1,8,8] x) => (float[y0,y1,y2] y)
   <int64[1] ax = {1}, int64 one = {1}, int64 c1 = {1}>
{
   [Shape_sh] sh = Shape (x)
   [Gather_d1] d1 = Gather (sh, one)
   [Equal_cond] cond = Equal (d1, c1)
   [If_y] y = If (cond) <else_branch: graph = else () => (float[eb_d0,eb_d1,eb_d2,eb_d3] eb) {
      [Identity_eb] eb = Identity (x)
   }, then_branch: graph = then () => (float[tb0,tb1,tb2] tb) {
      [Squeeze_tb] tb = Squeeze (x, ax)
   }>
}
""",
        (Verdict(("VEX405",), ("y",), ERROR, ("tensorrt@8.6",)),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "dyn_topk_runtime_k",
        "K computed with Min(300,n)",
        "NVIDIA/TensorRT#2721, onnx/onnx-tensorrt#455, mmdeploy#835",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,anchors] x) => (float[1,k] v, int64[1,k] i)
   <int64 one = {1}, int64[1] ax = {0}, int64[1] cap = {300}>
{
   [Shape_sh] sh = Shape (x)
   [Gather_nn] nn = Gather (sh, one)
   [Unsqueeze_n1] n1 = Unsqueeze (nn, ax)
   [Min_kk] kk = Min (cap, n1)
   [TopK_v] v, i = TopK <axis = 1> (x, kk)
}
""",
        (
            Verdict(("VEX507",), ("v",), SERIOUS, ("tensorrt@8.5",)),
            Verdict(("VEX507", "VEX207"), ("v",), SERIOUS, ("rknn",)),
        ),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "reshape_allowzero",
        "allowzero ignored",
        "microsoft/onnxruntime#28449, NVIDIA/TensorRT#1598",
        """
<ir_version: 8, opset_import: ["": 18]>
g (float[0,8,2] x) => (float[y0,y1,y2] y)
   <int64[3] s1 = {4,2,-1}, int64[3] s2 = {0,0,4}>
{
   [Reshape_t] t = Reshape (x, s1)
   [Reshape_y] y = Reshape <allowzero = 1> (t, s2)
}
""",
        (Verdict(("VEX407",), ("y",), SERIOUS, ("tensorrt@8.2",)),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
)
