"""vexlint: will this .onnx compute the same detections on the runtime it is going to?"""

__version__ = "0.3.0"
