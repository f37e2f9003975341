"""Operators outside the standard: one of several rules speaks of each, by what kind it is and where it goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from tests.support import judge


def said(domain: str, op: str, targets: tuple[str, ...], folder: Path, inputs: int = 1) -> list[tuple[str, str]]:
    """(code, severity) of what the rules on foreign operators say of one node."""
    names = [f"x{i}" for i in range(inputs)]
    node = helper.make_node(op, names, ["y"], domain=domain)
    entries = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3, 8, 8]) for n in names]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    imports = [helper.make_opsetid(d, v) for d, v in (("", 20), (domain, 1)) if d or v != 1]
    model = helper.make_model(helper.make_graph([node], "g", entries, [output]), opset_imports=imports, ir_version=9)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    report = judge(path, named=targets)
    return [(f.code, f.severity.value) for f in report.findings if f.code in ("VEX101", "VEX103", "VEX105", "VEX506")]


@pytest.mark.parametrize(
    ("domain", "op", "targets", "wanted"),
    [
        ("com.microsoft", "FusedGemm", (), [("VEX103", "warning")]),
        ("com.microsoft", "FusedGemm", ("onnxruntime@1.32",), []),
        ("com.microsoft", "FusedGemm", ("openvino@2026.4",), []),
        ("com.microsoft", "FusedGemm", ("coreml",), []),  # ONNX Runtime's CPU has it
        ("com.microsoft", "FusedGemm", ("onnxruntime@1.20", "rknn"), [("VEX103", "error")]),
        ("com.microsoft", "BiasAdd", ("onnxruntime@1.32",), [("VEX103", "error")]),  # a kernel for GPUs only
        ("com.microsoft", "BiasAdd", ("onnxruntime@1.20",), []),  # nobody listed what that release has
        ("com.microsoft", "NotThere", ("onnxruntime@1.32",), [("VEX101", "error")]),
        ("com.microsoft", "Gelu", ("tensorrt-rtx",), [("VEX105", "warning")]),  # its parser looks at the name alone
        ("com.microsoft", "Gelu", ("tensorrt@8.6",), [("VEX103", "error")]),  # and that one has no Gelu
        ("org.openvinotoolkit", "Swish", ("openvino",), []),
        ("org.openvinotoolkit", "Swish", ("onnxruntime",), [("VEX103", "error")]),
        ("com.acme", "Mish", ("tensorrt@10.13",), [("VEX105", "warning")]),
        ("com.acme", "Mish", ("tensorrt@10.13", "openvino"), [("VEX101", "error")]),
        ("com.acme", "Mish", ("tensorrt@8.6",), [("VEX101", "error")]),
        ("com.acme", "Mish", (), [("VEX101", "error")]),
        ("TRT", "BatchedNMS_TRT", (), [("VEX506", "error")]),
        ("", "BatchedNMS_TRT", ("tensorrt@8.6",), [("VEX506", "warning")]),
        ("TRT", "NMS_TRT", ("tensorrt@11.2",), [("VEX506", "error")]),
        ("TRT", "NMS_TRT", ("tensorrt-rtx",), [("VEX506", "error")]),
    ],
)
def test_one_rule_speaks_of_an_operator_outside_the_standard(
    domain: str, op: str, targets: tuple[str, ...], wanted: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert said(domain, op, targets, tmp_path, 2) == wanted
