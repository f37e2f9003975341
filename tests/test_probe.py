"""Installed runtimes are asked: what they answer, where that is in the file, what is said when they cannot."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import onnx
import pytest

from tests.support import DETECTOR, RULES, save
from vexlint import engine, targets
from vexlint.config import Config, Contract, Input, Profile
from vexlint.engine import Settings
from vexlint.model.read import read
from vexlint.outcomes import Probe
from vexlint.probes import answers, ask, places
from vexlint.report import json, text
from vexlint.runtimes import base, nvidia, onnxruntime, openvino, tensorrt
from vexlint.runtimes.base import Missing, Question
from vexlint.values import FileReport, Report, VexlintError

HEAD = """<ir_version: 8, opset_import: ["" : 17, "vx" : 1]> g """
RELU = HEAD + "(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"
TWO_PLACES = HEAD + (
    "(float[1,3,8,8] x) => (float[1,3,8,8] y, float[1,3,8,8] z) "
    "{ a = vx.Foo(x) b = Relu(a) y = vx.Bar<k=2>(b) c = Exp(x) z = vx.Foo(c) }"
)
NMS = HEAD + (
    "(float[1,10,4] boxes, float[1,3,10] scores) => (int64[n,3] sel) "
    "<int64[1] m = {5}, float[1] i = {0.5}, float[1] s = {0.1}> { sel = NonMaxSuppression(boxes, scores, m, i, s) }"
)
TOPK = (
    HEAD + "(float[1,5000] x) => (float[1,4000] v, int64[1,4000] i) <int64[1] k = {4000}> { [top] v, i = TopK(x, k) }"
)
ROI = HEAD + (
    "(float[1,3,16,16] x, float[2,4] r, int64[2] b) => (float[2,3,7,7] y) { y = RoiAlign<output_height=7, "
    'output_width=7, coordinate_transformation_mode="half_pixel">(x, r, b) }'
)
DYNAMIC = HEAD + "(float[n,3] x) => (float[n,3] y) { y = Relu(x) }"


def needs(runtime: str) -> None:
    if reason := base.missing(runtime):
        pytest.skip(reason)


def probed(path: Path, *names: str, contract: Contract = Contract(), **options: Any) -> FileReport:  # noqa: B008
    """What the runtimes of these targets (the default ones where none is given) say of a file."""
    judged, _ = targets.resolve(list(names))
    rules = {code: rule for code, rule in RULES.items() if rule.source != "model"}
    config = Config(folder=path.parent, models=(contract,) if contract.path else ())
    prober = ask.prober(ask.Options(names=names, **options), judged)
    return engine.check_file(path, Settings(rules, config, judged), prober=prober)


def only(report: FileReport) -> Probe:
    (probe,) = report.probes
    return probe


def outcomes(probe: Probe) -> dict[str, str]:
    return {stage.name: stage.outcome for stage in probe.stages}


def found(report: FileReport) -> list[tuple[str, str, list[int | None]]]:
    """Code, operator and node indices of each finding."""
    return [(f.code, f.place.op, [p.index for p in (f.place, *f.more)]) for f in report.findings]


class TestOnnxRuntime:
    def test_it_takes_the_detector(self) -> None:
        needs("onnxruntime")
        report = probed(DETECTOR / "clean.onnx", "onnxruntime")
        probe = only(report)
        assert (report.status, report.findings, probe.reason) == ("checked", (), "")
        assert outcomes(probe) == {"load": "passed"}
        assert probe.device == "CPUExecutionProvider"
        assert list(probe.placement) == ["CPUExecutionProvider"]
        assert sum(probe.placement.values()) > 50
        (output,) = probe.outputs
        assert (output.dtype, output.shape, output.declared, output.agrees) == (
            ("float32", "[1,7,2100]", "float32 [1,7,2100]", True)
        )

    def test_an_unknown_operator_is_found_wherever_it_is(self) -> None:
        needs("onnxruntime")
        report = probed(DETECTOR / "custom_mish.onnx", "onnxruntime")
        (finding,) = report.findings
        assert (finding.code, finding.severity, finding.count) == ("VEX901", "error", 7)
        assert {p.op for p in (finding.place, *finding.more)} == {"Mish"}
        assert finding.message.endswith("does not load it: shapes:Mish(-1) is not a registered function/op")
        assert outcomes(only(report)) == {"load": "failed"}

    @pytest.mark.parametrize(
        ("body", "index", "said"),
        [
            ("(float[1,3] x) => (float[1,3] y) { z = Relu(x) [m] y = Mish(z) }", 1, "No Op registered for Mish"),
            ("(float[1,3] x) => (float[1,3] y) { z = Relu(x) y = Mish(z) }", 1, "No Op registered for Mish"),
            ("(float[1,3] x, int64[1,3] z) => (float[1,3] y) { [bad] y = Add(x, z) }", 0, "Type Error: "),
            ("(float[1,3] x, int64[1,3] z) => (float[1,3] y) { y = Add(x, z) }", 0, "Type Error: "),
            ("(float[1,3] x, float[4,5] z) => (float[1,5] y) { [mm] y = MatMul(x, z) }", 0, "Node (mm) Op (MatMul)"),
            ("(float[1,3] x) => (float[1,3] y) { y = Relu<foo=1>(x) }", 0, "Unrecognized attribute: foo"),
            ("(double[1,3,8,8] x, double[4,3,3,3] w) => (double[1,4,6,6] y) { [c] y = Conv(x, w) }", 0, "Could not"),
            ("(int8[1,3] x) => (int8[1,3] y) { [c] y = Sin(x) }", 0, "Type Error: Type 'tensor(int8)'"),
            (
                '(float[1,3,8,8] x, float[1,4,4,2] z) => (float[1,3,4,4] y) { y = GridSample<mode="no">(x, z) }',
                0,
                "Exc",
            ),
        ],
    )
    def test_its_words_lead_to_the_node(self, body: str, index: int, said: str, tmp_path: Path) -> None:
        needs("onnxruntime")
        report = probed(save(HEAD + body, tmp_path), "onnxruntime")
        (finding,) = report.findings
        assert (finding.place.kind, finding.place.index) == ("node", index)
        assert finding.message.partition("does not load it: ")[2].startswith(said)
        assert "onnxruntime_src" not in finding.message

    def test_a_node_of_a_subgraph(self, tmp_path: Path) -> None:
        needs("onnxruntime")
        body = """(bool c, float[1,3] x) => (float[1,3] y) { [if] y = If(c) <
            then_branch = t () => (float[1,3] a) { [in] a = vx.Foo(x) },
            else_branch = e () => (float[1,3] b) { b = Relu(x) }> }"""
        path = save(HEAD + body, tmp_path)
        (finding,) = probed(path, "onnxruntime").findings
        assert (finding.place.graph, finding.place.op) == ("graph/node[0]/then_branch", "Foo")

    def test_nodes_that_share_a_name_are_all_named(self, tmp_path: Path) -> None:
        needs("onnxruntime")
        body = "(float[1,3] x) => (float[1,3] y) { [a] z = Relu(x) [b] w = Exp(z) [a] y = Relu(w) }"
        assert found(probed(save(HEAD + body, tmp_path), "onnxruntime")) == [("VEX901", "Relu", [0, 2])]

    def test_a_provider_that_takes_nothing(self, tmp_path: Path) -> None:
        """Azure's provider is in every build and takes no node of any model."""
        needs("onnxruntime")
        import onnxruntime as module

        if "AzureExecutionProvider" not in module.get_available_providers():
            pytest.skip("this build of onnxruntime has no provider besides the CPU's")
        report = probed(save(RELU, tmp_path), "onnxruntime", providers=("azure",))
        (finding,) = report.findings
        assert (finding.code, finding.severity, finding.verdict) == ("VEX903", "warning", "falls-back")
        assert finding.message == (
            "AzureExecutionProvider takes none of the nodes: 1 of 1 run on CPUExecutionProvider instead (Relu 1)"
        )
        assert finding.data == {"wanted": "AzureExecutionProvider", "on": "CPUExecutionProvider", "nodes": 1, "of": 1}

    def test_a_provider_that_is_not_in_this_build(self, tmp_path: Path) -> None:
        needs("onnxruntime")
        import onnxruntime as module

        other = next(p for p in module.get_all_providers() if p not in module.get_available_providers())
        report = probed(save(RELU, tmp_path), "onnxruntime", providers=(other,))
        assert report.status == "incomplete"
        assert f"this build of onnxruntime has no {other}" in (report.reason or "")

    def test_external_data_is_found_beside_the_file(self, tmp_path: Path) -> None:
        needs("onnxruntime")
        model = onnx.load(DETECTOR / "clean.onnx")
        onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin")
        assert probed(tmp_path / "m.onnx", "onnxruntime").status == "checked"

    def test_a_model_in_text(self, tmp_path: Path) -> None:
        needs("onnxruntime")
        path = tmp_path / "model.onnxtxt"
        path.write_text(RELU, "utf-8")
        assert outcomes(only(probed(path, "onnxruntime"))) == {"load": "passed"}

    def test_a_session_without_the_provider_asked_for_says_nothing_about_it(self) -> None:
        """As onnxruntime-gpu does where CUDA's libraries are missing: a session on the CPU, and no error."""
        node = SimpleNamespace(name="a", domain="", op_type="Relu")
        part = SimpleNamespace(ep_name="CPUExecutionProvider", get_nodes=lambda: [node])
        session = SimpleNamespace(
            get_providers=lambda: ["CPUExecutionProvider"], get_provider_graph_assignment_info=lambda: [part]
        )
        told = list(onnxruntime._sits(session, "CUDAExecutionProvider"))
        model = read(DETECTOR / "clean.onnx")
        (target,) = targets.resolve(["onnxruntime"])[0]
        head = {"version": "1.32.0", "device": "CUDAExecutionProvider"}
        probe, hits = answers.fold(model, target, [head, *told], "", False)
        assert probe.reason == "asked for CUDAExecutionProvider, the session has CPUExecutionProvider only"
        assert [code for code, _ in hits] == ["VEX903"]

    def test_a_version_that_keeps_no_record(self) -> None:
        session = SimpleNamespace(get_providers=lambda: ["CPUExecutionProvider"])
        (told,) = onnxruntime._sits(session, "CPUExecutionProvider")
        assert told == {"note": "which node sits on which provider is not recorded"}


class TestOpenVino:
    def test_it_takes_the_detector(self) -> None:
        needs("openvino")
        report = probed(DETECTOR / "clean.onnx", "openvino")
        probe = only(report)
        assert (report.status, report.findings) == ("checked", ())
        assert outcomes(probe) == {"read": "passed", "compile": "passed"}
        assert list(probe.placement) == ["CPU"]
        assert [(o.shape, o.agrees) for o in probe.outputs] == [("[1,7,2100]", True)]

    def test_every_unknown_operator_is_named(self, tmp_path: Path) -> None:
        needs("openvino")
        report = probed(save(TWO_PLACES, tmp_path), "openvino")
        assert found(report) == [("VEX901", "Bar", [2]), ("VEX901", "Foo", [0, 4])]

    def test_what_fails_behind_an_unknown_operator_is_no_cause(self) -> None:
        needs("openvino")
        (finding,) = probed(DETECTOR / "custom_mish.onnx", "openvino").findings
        assert (finding.place.op, finding.count) == ("Mish", 7)

    def test_its_words_lead_to_the_node(self, tmp_path: Path) -> None:
        needs("openvino")
        body = "(float[1,3] x, int64[1,3] z) => (float[1,3] y) { [bad] y = Add(x, z) }"
        (finding,) = probed(save(HEAD + body, tmp_path), "openvino").findings
        assert finding.place.name == "bad"
        assert finding.message.endswith("(arg0 element type: f32, arg1 element type: i64).")

    def test_a_device_that_is_not_here(self, tmp_path: Path) -> None:
        needs("openvino")
        report = probed(save(RELU, tmp_path), "openvino", device="NPU")
        assert (report.status, report.reason) == (
            ("incomplete", "openvino@2026.4.1: OpenVINO has no device NPU here, only CPU")
        )

    def test_nodes_on_the_second_device(self) -> None:
        model = read(DETECTOR / "clean.onnx")
        (target,) = targets.resolve(["openvino"])[0]
        name = model.graph.nodes[0].name
        told: list[Any] = [
            {"version": "2026.4.1", "device": "HETERO:GPU,CPU"},
            {"placement": {"GPU": 392, "CPU": 1}, "elsewhere": {"CPU": [[name, "", ""]]}},
        ]
        _, hits = answers.fold(model, target, told, "", False)
        ((code, hit),) = hits
        assert (code, hit.place.name, hit.count) == ("VEX903", name, 1)
        assert hit.message == "HETERO:GPU,CPU leaves nodes: 1 of 393 run on CPU instead (Conv 1)"

    @pytest.mark.parametrize(
        ("name", "dtype"),
        [("f32", "float32"), ("i64", "int64"), ("u8", "uint8"), ("boolean", "bool"), ("string", "string")],
    )
    def test_element_types(self, name: str, dtype: str) -> None:
        port = SimpleNamespace(get_element_type=lambda: SimpleNamespace(get_type_name=lambda: name))
        assert openvino._dtype(port) == dtype


class TestTensorRtRtx:
    def test_parse_and_build_are_told_apart(self, tmp_path: Path) -> None:
        """Every NonMaxSuppression parses; no engine with one is built."""
        needs("tensorrt-rtx")
        report = probed(save(NMS, tmp_path), "tensorrt-rtx")
        assert outcomes(only(report)) == {"parse": "passed", "build": "failed"}
        assert found(report) == [("VEX902", "NonMaxSuppression", [0])]

    def test_a_limit_that_only_the_builder_knows(self, tmp_path: Path) -> None:
        needs("tensorrt-rtx")
        (finding,) = probed(save(TOPK, tmp_path), "tensorrt-rtx").findings
        assert (finding.code, finding.place.name) == ("VEX902", "top")
        assert "K exceeds the maximum value allowed (3840)" in finding.message

    def test_an_engine_for_a_gpu_that_is_not_here(self) -> None:
        needs("tensorrt-rtx")
        probe = only(probed(DETECTOR / "clean.onnx", "rtx", capability="8.9"))
        assert (outcomes(probe), probe.device) == ({"parse": "passed", "build": "passed"}, "compute capability 8.9")
        assert [(o.dtype, o.shape, o.agrees) for o in probe.outputs] == [("float32", "[1,7,2100]", True)]

    def test_a_gpu_that_it_does_not_know(self, tmp_path: Path) -> None:
        needs("tensorrt-rtx")
        report = probed(save(RELU, tmp_path), "rtx", capability="1.0")
        assert "it cannot build for compute capability 1.0, only for " in (report.reason or "")
        assert outcomes(only(report)) == {"parse": "passed"}, "what was said before stands"

    def test_every_node_is_judged_not_the_first(self, tmp_path: Path) -> None:
        needs("tensorrt-rtx")
        report = probed(save(TWO_PLACES, tmp_path), "tensorrt-rtx")
        assert found(report) == [("VEX901", "Foo", [0, 4]), ("VEX901", "Bar", [2])]
        assert any("comes of refused nodes: 1 node" in note for note in only(report).notes)

    def test_nodes_after_the_one_at_which_the_parser_stops(self, tmp_path: Path) -> None:
        needs("tensorrt-rtx")
        body = (
            "(float[1,3] x, int64[1,3] i) => (float[1,3] y, float[1] z) "
            '{ [add] a = Add(x, i) b = Relu(x) [e] z = Einsum<equation="iii->i">(b) [mul] y = Mul(x, i) }'
        )
        report = probed(save(HEAD + body, tmp_path), "tensorrt-rtx")
        assert {f.place.name for f in report.findings} == {"add", "e", "mul"}
        assert all("Error Code" not in f.message for f in report.findings)

    def test_what_needs_a_driver_is_undecided(self, tmp_path: Path) -> None:
        needs("tensorrt-rtx")
        report = probed(save(ROI, tmp_path), "tensorrt-rtx")
        if only(report).stages[0].outcome == "passed":
            pytest.skip("there is a CUDA driver here: it decides")
        assert outcomes(only(report)) == {"parse": "undecided"}
        assert (report.status, report.findings) == ("incomplete", ())
        assert "needs a CUDA driver to judge RoiAlign" in (report.reason or "")

    def test_a_private_operator_is_taken_by_its_name(self) -> None:
        needs("tensorrt-rtx")
        assert probed(DETECTOR / "custom_mish.onnx", "tensorrt-rtx").findings == ()

    @pytest.mark.parametrize(
        ("contract", "codes"),
        [
            (Contract(), ["VEX902"]),
            (Contract(path="*", inputs={"x": Input((2, 3))}), []),
            (Contract(path="*", profile={"x": Profile((1, 3), (4, 3), (8, 3))}), []),
            (Contract(path="*", profile={"x": Profile((1, 5), (4, 5), (8, 5))}), ["VEX902"]),
            (Contract(path="*", inputs={"x": Input(("n", 3))}), ["VEX902"]),
        ],
    )
    def test_profiles_come_from_the_contract(self, contract: Contract, codes: list[str], tmp_path: Path) -> None:
        needs("tensorrt-rtx")
        report = probed(save(DYNAMIC, tmp_path), "rtx", contract=contract)
        assert [f.code for f in report.findings] == codes

    def test_external_data_is_found_beside_the_file(self, tmp_path: Path) -> None:
        needs("tensorrt-rtx")
        model = onnx.load(DETECTOR / "clean.onnx")
        onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin")
        report = probed(tmp_path / "m.onnx", "rtx")
        assert outcomes(only(report)) == {"parse": "passed", "build": "passed"}


def stub(refused: int = 0, builds: bool = True) -> Any:
    """A module with TensorRT's interface: a parser that refuses the first nodes, a builder that may fail."""
    trt: Any = ModuleType("tensorrt")
    trt.__version__ = "11.5.0"
    trt.BuilderFlag = SimpleNamespace(FP16="fp16")
    trt.NetworkDefinitionCreationFlag = SimpleNamespace(STRONGLY_TYPED=1)

    class Logger:
        Severity = SimpleNamespace(ERROR=1, INTERNAL_ERROR=0, WARNING=2)

    trt.ILogger = Logger
    output = SimpleNamespace(name="y", dtype="DataType.HALF", shape=(-1, 3))
    trt.flags, trt.configs = [], []

    class Builder:
        def __init__(self, log: Any) -> None:
            self.log = log

        def create_network(self, flags: int) -> Any:
            trt.flags.append(flags)
            return SimpleNamespace(num_inputs=0, num_outputs=1, get_output=lambda i: output)

        def create_builder_config(self) -> Any:
            trt.configs.append([])
            return SimpleNamespace(set_flag=trt.configs[-1].append)

        def build_serialized_network(self, network: Any, config: Any) -> Any:
            if not builds:
                self.log.log(
                    1, "[x.cpp::f::1] Error Code 10: Internal Error (Could not find any implementation for node a.)"
                )
            return SimpleNamespace(nbytes=2_000_000) if builds else None

    class Parser:
        def __init__(self, network: Any, log: Any) -> None:
            self.log, self.num_errors = log, 0

        def parse_from_file(self, path: str) -> bool:
            self.num_errors = refused
            return not refused

        def parse(self, data: bytes, path: str) -> bool:
            return True

        def get_error(self, i: int) -> Any:
            names = {
                "node": i,
                "node_name": "",
                "node_operator": "Relu",
                "desc": "false",
                "code": "ErrorCode.UNSUPPORTED_NODE",
            }
            return SimpleNamespace(**{k: lambda v=v: v for k, v in names.items()})

    trt.Builder, trt.OnnxParser = Builder, Parser
    return trt


class TestTensorRt:
    """Against a stand-in: what differs between machines is whether there is a GPU, not how it is asked."""

    def asked(self, monkeypatch: pytest.MonkeyPatch, module: Any, path: Path, **question: Any) -> list[Any]:
        monkeypatch.setitem(sys.modules, "tensorrt", module)
        monkeypatch.setattr(tensorrt, "_gpu", lambda: "NVIDIA L4")
        return list(tensorrt.probe(Question(str(path), **question)))

    def test_parse_then_build(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        module = stub()
        told = self.asked(monkeypatch, module, save(RELU, tmp_path))
        assert told[0] == {"version": "11.5.0", "device": "NVIDIA L4"}
        assert [(a["stage"], a["outcome"]) for a in told if "stage" in a] == [("parse", "passed"), ("build", "passed")]
        assert {"outputs": [["y", "float16", [None, 3]]]} in told
        assert {"note": "engine of 2.0 MB"} in told
        assert (module.flags, module.configs) == ([2], [[]])

    def test_half_is_the_builders_choice_where_the_contract_says_so(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        module = stub()
        self.asked(monkeypatch, module, save(RELU, tmp_path), precision="fp16")
        assert (module.flags, module.configs) == ([0], [["fp16"]])

    def test_refused_nodes(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        told = self.asked(monkeypatch, stub(refused=1), save(RELU, tmp_path))
        (parse,) = (a for a in told if "stage" in a)
        assert parse["refusals"] == [{"text": "unsupported node", "index": 0, "name": "", "op": "Relu"}]

    def test_a_build_that_fails(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        told = self.asked(monkeypatch, stub(builds=False), save(RELU, tmp_path))
        assert told[-1]["said"] == "Could not find any implementation for node a."

    def test_no_compute_capability_but_its_own(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        with pytest.raises(Missing, match=r"cannot build for compute capability 8.9, only for this GPU"):
            self.asked(monkeypatch, stub(), save(RELU, tmp_path), capability="8.9")


@pytest.fixture
def fake(fakes: Path) -> Path:
    """A file that stands in for the openvino package."""
    return fakes / "openvino.py"


FAKE = """
import os, sys, time
__version__ = "2026.4.1-1-fake"
class Core:
    available_devices = ["CPU"]
    def read_model(self, path):
        {}
"""


class TestWhenItGoesWrong:
    def test_a_file_that_is_no_model_is_not_handed_to_anybody(self, tmp_path: Path) -> None:
        path = tmp_path / "m.onnx"
        path.write_bytes((DETECTOR / "clean.onnx").read_bytes()[:5000])
        report = probed(path, "onnxruntime")
        assert ([f.code for f in report.findings], report.status, report.probes) == (["VEX001"], "incomplete", ())

    def test_a_runtime_that_crashes(self, fake: Path, tmp_path: Path) -> None:
        fake.write_text(FAKE.format("print('bad plugin', file=sys.stderr, flush=True); os.abort()"), "utf-8")
        report = probed(save(RELU, tmp_path), "openvino")
        assert (report.status, report.findings) == ("incomplete", ())
        assert report.reason == "openvino@2026.4.1: openvino crashed probing model.onnx (signal 6): bad plugin"

    def test_a_runtime_that_is_killed(self, fake: Path, tmp_path: Path) -> None:
        """As the operating system does to the largest process where memory runs out."""
        note = tmp_path / "pid"
        fake.write_text(FAKE.format(f"open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"), "utf-8")

        def kill() -> None:
            while not (note.exists() and note.read_text()):
                time.sleep(0.05)
            os.kill(int(note.read_text()), 9)

        killer = threading.Thread(target=kill)
        killer.start()
        report = probed(save(RELU, tmp_path), "openvino")
        killer.join()
        assert report.reason == "openvino@2026.4.1: openvino crashed probing model.onnx (signal 9)"

    def test_a_runtime_that_hangs(self, fake: Path, tmp_path: Path) -> None:
        fake.write_text(FAKE.format("time.sleep(60)"), "utf-8")
        report = probed(save(RELU, tmp_path), "openvino", deadline=1.5)
        assert report.reason == "openvino@2026.4.1: openvino did not end probing model.onnx within 1.5 s"

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a process from taking memory")
    def test_more_memory_than_it_may_take(self, fake: Path, tmp_path: Path) -> None:
        fake.write_text(FAKE.format("bytearray(2 << 30)"), "utf-8")
        report = probed(save(RELU, tmp_path), "openvino", memory=1 << 30)
        assert (report.status, report.findings) == ("incomplete", ())
        assert report.reason == "openvino@2026.4.1: read undecided: MemoryError"

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a process from taking memory")
    def test_a_model_that_needs_more_memory_than_it_may_take(self, tmp_path: Path) -> None:
        needs("onnxruntime")
        body = "(float[1,64] x) => (float[1,16777216] y) <int64[2] s = {1, 262144}> { y = Tile(x, s) }"
        model = onnx.parser.parse_model(HEAD + body)
        model.graph.initializer.append(onnx.helper.make_tensor("w", 1, [1 << 26], bytes(1 << 28), raw=True))
        model.graph.node.append(onnx.helper.make_node("Relu", ["w"], ["r"]))
        model.graph.output.append(onnx.helper.make_tensor_value_info("r", 1, [1 << 26]))
        onnx.save(model, tmp_path / "m.onnx")
        report = probed(tmp_path / "m.onnx", "onnxruntime", memory=300 << 20)
        assert (report.status, report.findings) == ("incomplete", ())
        assert "load undecided" in (report.reason or "")

    def test_a_runtime_that_is_not_installed_and_was_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("vexlint.runtimes.base.missing", lambda name: f"{name} is not installed: pip install it")
        report = probed(save(RELU, tmp_path), "openvino")
        assert (report.status, report.reason) == (
            ("incomplete", "openvino@2026.4.1: openvino is not installed: pip install it")
        )

    def test_a_default_runtime_that_is_not_installed_is_skipped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        needs("onnxruntime")
        monkeypatch.setattr("vexlint.runtimes.base.missing", lambda name: "" if name == "onnxruntime" else "not here")
        report = probed(save(RELU, tmp_path))
        assert report.status == "checked"
        assert {p.runtime: p.skipped for p in report.probes} == {
            "onnxruntime": False,
            "tensorrt": True,
            "openvino": True,
        }
        assert "not asked not here" in text.render(Report((report,), ()))

    def test_where_no_runtime_is_here_nothing_is_passed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("vexlint.runtimes.base.missing", lambda name: "not here")
        report = probed(save(RELU, tmp_path))
        assert report.status == "incomplete"
        assert (report.reason or "").startswith("no runtime was asked: onnxruntime@1.32.0: not here; tensorrt@")

    def test_the_standard_is_no_runtime(self, tmp_path: Path) -> None:
        assert probed(save(RELU, tmp_path), "onnx").reason == "no runtime was asked: no target is one"

    def test_another_version_says_nothing_about_the_one_named(self, fake: Path, tmp_path: Path) -> None:
        fake.write_text(
            FAKE.format("raise RuntimeError('should not be asked')").replace("2026.4.1", "2024.6.0"), "utf-8"
        )
        report = probed(save(RELU, tmp_path), "openvino@2026.4")
        assert (report.status, report.findings) == ("incomplete", ())
        assert "openvino 2024.6.0 is installed here: what it answers says nothing about openvino 2026.4" in (
            report.reason or ""
        )

    def test_an_installed_version_answers_for_itself_where_none_is_named(self, fake: Path, tmp_path: Path) -> None:
        fake.write_text(
            FAKE.format("raise RuntimeError('it does not like it')").replace("2026.4.1", "2024.6.0"), "utf-8"
        )
        report = probed(save(RELU, tmp_path), "openvino")
        (finding,) = report.findings
        assert (finding.target, finding.severity, report.status) == ("openvino@2024.6.0", "error", "checked")

    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ("1.32", "1.32.0", True),
            ("1.32.0", "1.32.1", True),
            ("1.17", "1.32.0", False),
            ("1", "1.32.0", True),
            ("1.7.1", "1.7.1.116", True),
            ("1.1", "1.17.0", False),
            ("2026.4", "2026.40", False),
        ],
    )
    def test_releases(self, one: str, other: str, same: bool) -> None:
        assert ask.same_release(one, other) is same

    def test_an_option_for_a_runtime_that_is_no_target(self) -> None:
        judged, _ = targets.resolve(["onnxruntime"])
        with pytest.raises(VexlintError, match=r"--compute-capability is for tensorrt-rtx.*add --target tensorrt-rtx"):
            ask.prober(ask.Options(capability="8.9"), judged)


class TestPlaces:
    def test_a_word_that_is_a_word_is_no_name(self, tmp_path: Path) -> None:
        path = save(HEAD + "(float[2,3] x) => (float[2,3] y) { [node] it = Relu(x) [a_1] y = Exp(it) }", tmp_path)
        model = read(path)
        assert places.nodes(model, {"text": "", "words": ["no", "runners", "for", "node", "it"]}) == []
        assert [n.index for n in places.nodes(model, {"text": "", "words": ["for", "a_1"]})] == [1]
        assert [n.index for n in places.nodes(model, {"text": "", "words": ["node_of_y_0"]})] == [1]
        assert [n.index for n in places.nodes(model, {"text": "", "words": ["a_1_27"]})] == [1]
        assert [n.index for n in places.nodes(model, {"text": "", "words": ["Layer", "node:"]})] == [0]

    def test_an_index_is_trusted_only_with_its_operator(self, tmp_path: Path) -> None:
        model = read(save(HEAD + "(float[2,3] x) => (float[2,3] y) { a = Relu(x) b = Exp(a) y = Exp(b) }", tmp_path))
        assert [n.index for n in places.nodes(model, {"text": "", "index": 1, "op": "Exp", "name": ""})] == [1]
        assert [n.index for n in places.nodes(model, {"text": "", "index": 2, "op": "Relu", "name": ""})] == [0]
        assert places.nodes(model, {"text": "", "index": 0, "op": "Exp", "name": ""}) == []
        assert places.nodes(model, {"text": "", "index": 99, "op": "", "name": ""}) == []

    def test_what_an_output_contradicts(self) -> None:
        model = read(DETECTOR / "clean.onnx")
        assert answers._output(model, "output0", "float32", [1, 7, 2101]).agrees is False
        assert answers._output(model, "output0", "float16", [1, 7, 2100]).agrees is False
        assert answers._output(model, "output0", "float32", [1, None, 2100]).agrees is True
        assert answers._output(model, "output0", "float32", None).agrees is True
        dynamic = read(DETECTOR / "dynamic.onnx")
        assert answers._output(dynamic, "output0", "float32", [1, 7, 2100]).agrees is True, "names are no sizes"


class TestCommands:
    def vexlint(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "vexlint", *words], capture_output=True, text=True, check=False)

    @pytest.mark.parametrize(("name", "code"), [("clean.onnx", 0), ("custom_mish.onnx", 1)], ids=["taken", "refused"])
    def test_exit_codes(self, name: str, code: int) -> None:
        needs("onnxruntime")
        done = self.vexlint("probe", str(DETECTOR / name), "--target", "onnxruntime")
        assert (done.returncode, done.stderr) == (code, "")

    def test_a_target_that_cannot_be_asked_is_exit_code_2(self) -> None:
        if not base.missing("tensorrt"):
            pytest.skip("tensorrt is installed here")
        for command in (["probe"], ["check", "--probe"]):
            done = self.vexlint(*command, str(DETECTOR / "clean.onnx"), "--target", "tensorrt")
            assert done.returncode == 2
            assert "tensorrt is not installed: pip install 'vexlint[tensorrt]'" in " ".join(done.stdout.split())

    def test_check_adds_what_runtimes_say(self) -> None:
        needs("onnxruntime")
        path = str(DETECTOR / "custom_mish.onnx")
        plain = self.vexlint("check", path, "--target", "onnxruntime").stdout
        asked = self.vexlint("check", path, "--target", "onnxruntime", "--probe").stdout
        assert "VEX101" in plain
        assert "VEX901" not in plain
        assert "VEX101" in asked
        assert "VEX901" in asked
        assert "load      failed" in asked

    def test_json(self, tmp_path: Path) -> None:
        needs("onnxruntime")
        import json as reader

        report = probed(save(RELU, tmp_path), "onnxruntime")
        (entry,) = reader.loads(json.render(Report((report,), ())))["files"]
        (probe,) = entry["probes"]
        assert probe["stages"][0]["name"] == "load"
        assert probe["placement"] == {"CPUExecutionProvider": 1}
        assert probe["outputs"] == [
            {"name": "y", "dtype": "float32", "shape": "[2,3]", "declared": "float32 [2,3]", "agrees": True}
        ]

    @pytest.mark.parametrize("option", ["--deadline", "--memory"])
    def test_a_limit_of_nothing(self, option: str) -> None:
        done = self.vexlint("probe", str(DETECTOR / "clean.onnx"), option, "0")
        assert (done.returncode, done.stderr) == (2, f"vexlint: {option} should be more than 0\n")


def test_a_message_of_tensorrt_without_its_own_source() -> None:
    said = "ITensor::getDimensions: Error Code 4: API Usage Error (a: no. In validate at /_src/x/y.cpp:40)"
    assert nvidia._words(said) == "a: no."
    assert nvidia._words("something else") == "something else"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ('creator && "Plugin not found, are the names correct?"', "Plugin not found, are the names correct?"),
        ('(mode == "a" || mode == "b") && "This mode is not supported."', "This mode is not supported."),
        ('(a) && "only half_pixel and " "align_corners"', "only half_pixel and align_corners"),
        ("Assertion failed: a && v(a) == V::k3: NonZero plugin was not found.", "NonZero plugin was not found."),
        ("Assertion !impls.empty() failed. a has no runners that implement it", "a has no runners that implement it"),
        ("Assertion failed: false", "Assertion failed: false"),
        ("no optimization profile", "no optimization profile"),
    ],
)
def test_an_assertion_of_tensorrt_says_what_it_says_for_people(said: str, text: str) -> None:
    assert nvidia._asserted(said) == text
