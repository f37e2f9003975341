"""Non-maximum suppression."""

from __future__ import annotations

from tests.field.case import ANY, ERROR, SERIOUS, WARNING, Case, Verdict

CASES = (
    Case(
        "nms_scores_not_transposed",
        "scores [1,N,C] fed to NMS",
        "AILab-CVC/YOLO-World#50, microsoft/onnxruntime#6680, #17725",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,50,4] b, float[1,50,80] s) => (int64[k,3] sel)
   <float[1] iou = {0.5}, float[1] st = {0.1}, int64[1] mx = {10}>
{
   [NonMaxSuppression_sel] sel = NonMaxSuppression <center_point_box = 0> (b, s, mx, iou, st)
}
""",
        (Verdict(("VEX502",), ("sel",), ERROR, ("onnxruntime@1.32", "openvino@2026.4", "tensorrt@10.13")),),
    ),
    Case(
        "nms_cxcywh_but_corner_mode",
        "YOLO centre boxes treated as corners",
        "onnxruntime/onnxruntime-qnn#559; nod-ai/AMD-SHARK-ModelDev#844; ultralytics/yolov5#7736",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,9,50] p) => (int64[k,3] sel)
   <float[1] iou = {0.5}, float[1] st = {0.1}, int64[1] a0 = {0}, int64[1] a4 = {4}, int64[1] a9 =
       {9}, int64[1] a1 = {1}, int64[1] a2 = {2}, int64[1] mx = {10}>
{
   [Transpose_pt] pt = Transpose <perm = [0, 2, 1]> (p)
   [Slice_b] b = Slice (pt, a0, a4, a2)
   [Slice_s] s = Slice (p, a4, a9, a1)
   [NonMaxSuppression_sel] sel = NonMaxSuppression <center_point_box = 0> (b, s, mx, iou, st)
}
""",
        (Verdict(("VEX503",), ("sel",), WARNING),),
    ),
    Case(
        "nms_max_output_int64_max",
        "torchvision style unlimited max",
        "onnx/onnx#2352, ROCm/AMDMIGraphX#4929",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[1,8400,4] b, float[1,80,8400] s) => (int64[k,3] sel)
   <float[1] iou = {0.5}, float[1] st = {0.1}, int64[1] mx = {9223372036854775807}>
{
   [NonMaxSuppression_sel] sel = NonMaxSuppression <center_point_box = 0> (b, s, mx, iou, st)
}
""",
        (Verdict(("VEX502",), ("sel",), ANY, ("tensorrt@10.13",)),),
        silent_on=("onnxruntime@1.32",),
    ),
    Case(
        "nms_batch_flattened_output",
        "batch index dropped when gathering boxes",
        "onnx/onnx#2361, WongKinYiu/yolov7#425, #19243 (ultralytics)",
        """
<ir_version: 8, opset_import: ["": 17]>
g (float[batch,50,4] b, float[batch,3,50] s) => (float[k,4] y)
   <int64[1] mx = {10}, float[1] iou = {0.5}, float[1] st = {0.1}, int64 two = {2}, int64[2] rs =
       {-1,4}>
{
   [NonMaxSuppression_sel] sel = NonMaxSuppression (b, s, mx, iou, st)
   [Gather_bi] bi = Gather <axis = 1> (sel, two)
   [Reshape_b2] b2 = Reshape (b, rs)
   [Gather_y] y = Gather <axis = 0> (b2, bi)
}
""",
        (Verdict(("VEX505",), ("sel", "y"), ERROR),),
    ),
    Case(
        "nms_class_offset_too_small",
        "class offset smaller than the image merges classes",
        "WongKinYiu/yolov7#425, #400 (--max-wh 640 exports); the size mismatch is own construction",
        """
<ir_version: 7, opset_import: ["": 12]>
g (float[1,3,1280,1280] images, float[1,50,4] bx, float[1,50,3] sc) => (int64[k,3] sel)
   <float off = {640}, int64[1] mx = {10}, float[1] iou = {0.45}, float[1] st = {0.25}>
{
   [ArgMax_cl] cl = ArgMax <axis = 2, keepdims = 1> (sc)
   [Cast_cf] cf = Cast <to = 1> (cl)
   [Mul_o] o = Mul (cf, off)
   [Add_b] b = Add (bx, o)
   [ReduceMax_s1] s1 = ReduceMax <axes = [2], keepdims = 1> (sc)
   [Transpose_s] s = Transpose <perm = [0, 2, 1]> (s1)
   [NonMaxSuppression_sel] sel = NonMaxSuppression (b, s, mx, iou, st)
}
""",
        (Verdict(("VEX504",), ("o", "b"), SERIOUS),),
    ),
)
