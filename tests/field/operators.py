"""Operators that a runtime lacks, or takes in one form only."""

from __future__ import annotations

from tests.field.case import ERROR, SERIOUS, WARNING, Case, Verdict

CASES = (
    Case(
        "custom_mmdeploy_dcnv2",
        "session creation refuses an mmdeploy-domain deformable conv that only an extra shared library provides",
        "open-mmlab/mmdeploy#2733, #374; open-mmlab/mmcv#1422",
        """
<ir_version: 9, opset_import: ["": 19, "mmdeploy": 1]>
g (float[1,3,8,8] x, float[1,18,8,8] off, float[1,9,8,8] mask) => (float[1,4,8,8] y) {
   [MMCVModulatedDeformConv2d_y] y = mmdeploy.MMCVModulatedDeformConv2d <deform_groups = 1, dilation
       = [1, 1], groups = 1, padding = [1, 1], stride = [1, 1]> (x, off, mask, w, b)
}
""",
        (Verdict(("VEX101",), ("y",), ERROR, ("onnxruntime@1.32", "openvino@2026.4", "tensorrt@10.13", "opencv@5.0")),),
        weights={"w": (4, 3, 3, 3), "b": (4,)},
    ),
    Case(
        "custom_trt_efficientnms",
        "TRT plugin node runs nowhere else, and on TRT only with the right plugin version/attributes",
        "open-mmlab/mmyolo#703, WongKinYiu/yolov7 exports, onnxruntime#16121",
        """
<ir_version: 8, opset_import: ["": 17, "TRT": 1]>
g (float[1,50,4] boxes, float[1,50,3] scores) => (int32[1,1] num, float[1,10,4] bx, float[1,10] sc,
    int32[1,10] cl) {
   [EfficientNMS_TRT_num] num, bx, sc, cl = TRT.EfficientNMS_TRT <background_class = -1, box_coding =
       1, iou_threshold: float = 0.45, max_output_boxes = 10, plugin_version = "1", score_activation
       = 0, score_threshold: float = 0.25> (boxes, scores)
}
""",
        (
            Verdict(("VEX506", "VEX101"), ("num",), ERROR, ("onnxruntime@1.32", "openvino@2026.4", "tensorrt-rtx@1.7")),
            Verdict(("VEX506",), ("num",), SERIOUS, ("tensorrt@10.13",)),
        ),
    ),
    Case(
        "custom_ms_fusedconv",
        "a model saved after ORT optimisation contains com.microsoft::FusedConv and is unusable elsewhere",
        "openvinotoolkit/openvino#13177, emilianavt/OpenSeeFace#36",
        """
<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
g (float[1,3,8,8] x) => (float[1,4,8,8] y) {
   [FusedConv_y] y = com.microsoft.FusedConv <activation = "LeakyRelu", activation_params: floats =
       [0.1], kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [1, 1]> (x, w, b)
}
""",
        (Verdict(("VEX103",), ("y",), ERROR, ("tensorrt@10.13", "opencv@5.0", "rknn")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
        weights={"w": (4, 3, 3, 3), "b": (4,)},
    ),
    Case(
        "custom_aten_cumsum",
        "ATen fallback node left by an exporter mode",
        "pytorch/pytorch#43736, #87735",
        """
<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
g (float[2,5] x) => (float[2,5] y)
   <int64 d = {1}>
{
   [ATen_y] y = org.pytorch.aten.ATen <operator = "cumsum"> (x, d)
}
""",
        (Verdict(("VEX104",), ("y",), ERROR, ("onnxruntime@1.32", "openvino@2026.4", "tensorrt@10.13", "opencv@5.0")),),
    ),
    Case(
        "custom_mish_opset9",
        "Mish used in the default domain below opset 18",
        "onnx/onnx-tensorrt#465, onnx/onnx#2818, Tianxiaomo/pytorch-YOLOv4#117",
        """
<ir_version: 4, opset_import: ["": 9]>
g (float[1,3,8,8] x) => (float[1,3,8,8] y) {
   [Mish_y] y = Mish (x)
}
""",
        (Verdict(("VEX102",), ("y",), ERROR, ("onnxruntime@1.32", "onnx")),),
    ),
    Case(
        "custom_sequence_split_at",
        "SplitToSequence/SequenceAt from torchvision exports",
        "ROCm/AMDMIGraphX#1359",
        """
<ir_version: 6, opset_import: ["": 11]>
g (float[1,3,8,8] x) => (float[1,1,8,8] y)
   <int64 i = {1}>
{
   [SplitToSequence_s] s = SplitToSequence <axis = 1, keepdims = 1> (x)
   [SequenceAt_y] y = SequenceAt (s, i)
}
""",
        (Verdict(("VEX110", "VEX207"), ("s",), ERROR, ("tensorrt@10.13", "opencv@5.0", "rknn")),),
        silent_on=("onnxruntime@1.32", "openvino@2026.4"),
    ),
    Case(
        "function_torchlib_local",
        "dynamo export keeps torchlib functions as local functions",
        "Lednik7/CLIP-ONNX#4, NVIDIA/TensorRT#3934, robertknight/rten#655",
        """
<ir_version: 8, opset_import: ["": 18, "pkg.onnxscript.torch_lib": 1]>
g (float[1,3,8] x) => (float[1,3,1,8] y) {
   [aten_unsqueeze_y] y = pkg.onnxscript.torch_lib.aten_unsqueeze (x)
}
<
  domain: "pkg.onnxscript.torch_lib",
  opset_import: ["" : 18]
>
aten_unsqueeze (a) => (r)
{
   ax = Constant <value_ints = [2]> ()
   r = Unsqueeze (a, ax)
}
""",
        (Verdict(("VEX109",), ("y",), ERROR, ("openvino@2026.4", "opencv@5.0", "tensorrt@8.6")),),
        silent_on=("onnxruntime@1.32",),
    ),
    Case(
        "train_batchnorm_mode1",
        "BN exported in training mode",
        "microsoft/onnxruntime#26584, #16867; onnxscript#1791",
        """
<ir_version: 8, opset_import: ["": 15]>
g (float[1,3,8,8] x) => (float[1,3,8,8] y)
   <float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] mu = {5,5,5}, float[3] va = {4,4,4}>
{
   [BatchNormalization_y] y, rm, rv = BatchNormalization <momentum: float = 0.9, training_mode = 1>
       (x, s, b, mu, va)
}
""",
        (Verdict(("VEX107",), ("y",), ERROR, ("tensorrt@10.13", "tensorrt-rtx@1.7")),),
        silent_on=("openvino@2026.4",),
    ),
    Case(
        "train_random_op_in_graph",
        "noise op left",
        "own construction",
        """
<ir_version: 8, opset_import: ["": 13]>
g (float[1,3,8,8] x) => (float[1,3,8,8] y) {
   [RandomNormalLike_r] r = RandomNormalLike <scale: float = 0.1> (x)
   [Add_y] y = Add (x, r)
}
""",
        (Verdict(("VEX108",), ("r",), WARNING),),
    ),
)
