"""Runtimes in child processes: what they answer, and what happens when they are missing, crash or hang."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support import DETECTOR, save
from vexlint.runtimes import arena, base, child, onnxruntime, tensorrt
from vexlint.runtimes.base import Missing, Setup
from vexlint.runtimes.child import Child, Failed
from vexlint.values import VexlintError

RELU = """<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"""


def needs(*packages: str) -> None:
    for package in packages:
        pytest.importorskip(package, reason=f"{package} is not installed: pip install {package}")


def run(runtime: str, setup: Setup, work: Path, feed: dict[str, Any], deadline: float = child.RUNNING) -> Any:
    """What ran, and copies of the outputs for one feed."""
    with Child(runtime, setup, work, deadline) as started:
        ran = started.loaded()
        started.send(0, arena.Writer(work, "in").write(0, feed), "sample 0")
        return ran, {name: array.copy() for name, array in started.receive().items()}


def refused(runtime: str, setup: Setup, work: Path) -> str:
    """Why a runtime does not load a model."""
    with Child(runtime, setup, work) as started, pytest.raises(Failed) as failure:
        started.loaded()
    return str(failure.value)


class TestArena:
    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        arrays: dict[str, Any] = {
            "a": np.arange(5, dtype=np.int64),
            "b/c": np.ones((2, 3), np.float16),
            "none": np.empty((0, 4)),
        }
        header = json.loads(json.dumps(arena.Writer(tmp_path, "x").write(0, arrays)))
        found = arena.Reader(tmp_path).read(header)
        assert all(np.array_equal(found[n], a) and found[n].dtype == a.dtype for n, a in arrays.items())

    def test_slots_do_not_disturb_each_other_and_grow(self, tmp_path: Path) -> None:
        writer, reader = arena.Writer(tmp_path, "x"), arena.Reader(tmp_path)
        first = reader.read(writer.write(0, {"a": np.arange(4)}))["a"]
        reader.read(writer.write(1, {"a": np.zeros(10_000)}))
        assert first.tolist() == [0, 1, 2, 3]
        assert reader.read(writer.write(0, {"a": np.full(10_000, 7.0)}))["a"].min() == 7

    def test_tensors_are_aligned(self, tmp_path: Path) -> None:
        header = arena.Writer(tmp_path, "x").write(0, {"a": np.zeros(3, np.uint8), "b": np.zeros(3)})
        assert [offset % arena.ALIGNMENT for *_, offset in header["tensors"]] == [0, 0]

    def test_words_are_no_tensors(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="a holds object, not numbers"):
            arena.Writer(tmp_path, "x").write(0, {"a": np.array(["b"], object)})


class TestChild:
    def test_onnxruntime_computes(self, tmp_path: Path) -> None:
        needs("onnxruntime", "polygraphy")
        x = np.array([[-1, 0, 1], [2, -3, 4]], np.float32)
        ran, outputs = run("onnxruntime", Setup(str(save(RELU, tmp_path))), tmp_path, {"x": x})
        assert np.array_equal(outputs["y"], np.maximum(x, 0))
        assert (ran.runtime, ran.device, ran.detail) == ("onnxruntime", "CPUExecutionProvider", "")

    def test_openvino_computes_in_float32(self, tmp_path: Path) -> None:
        needs("openvino", "polygraphy")
        x = np.full((2, 3), 1 + 2**-20, np.float32)  # bfloat16 and half would lose the last bits
        ran, outputs = run("openvino", Setup(str(save(RELU, tmp_path))), tmp_path, {"x": x})
        assert np.array_equal(outputs["y"], x)
        assert (ran.runtime, ran.device, ran.detail) == ("openvino", "CPU", "f32")

    def test_several_runs_may_be_under_way(self, tmp_path: Path) -> None:
        needs("onnxruntime", "polygraphy")
        writer = arena.Writer(tmp_path, "in")
        with Child("onnxruntime", Setup(str(save(RELU, tmp_path))), tmp_path) as started:
            started.loaded()
            for slot in (0, 1):
                started.send(slot, writer.write(slot, {"x": np.full((2, 3), slot + 1, np.float32)}), "a sample")
            assert [started.receive()["y"].max() for _ in range(2)] == [1, 2]

    def test_a_model_that_is_refused_is_named_with_the_runtimes_words(self, tmp_path: Path) -> None:
        needs("onnxruntime", "polygraphy")
        said = refused("onnxruntime", Setup(str(DETECTOR / "custom_mish.onnx")), tmp_path)
        assert re.match(r"onnxruntime refuses custom_mish.onnx: .*Mish.* is not a registered", said)

    def test_a_run_that_fails_is_named(self, tmp_path: Path) -> None:
        needs("onnxruntime", "polygraphy")
        with pytest.raises(Failed, match=r"onnxruntime failed running model.onnx on sample 0: .*x"):
            run("onnxruntime", Setup(str(save(RELU, tmp_path))), tmp_path, {"x": np.zeros((3, 3), np.float32)})

    def test_a_loop_without_end_ends_at_the_deadline(self, tmp_path: Path) -> None:
        needs("onnxruntime", "polygraphy")
        with pytest.raises(Failed, match=r"onnxruntime did not end running loop.onnx on sample 0 within 1 s"):
            run("onnxruntime", Setup(str(endless(tmp_path))), tmp_path, {"x": np.zeros(1, np.float32)}, deadline=1.0)

    def test_nothing_is_reported_and_no_database_is_left_at_home(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """ONNX Runtime 1.32 sends usage data and keeps a database for it, unless told otherwise."""
        needs("onnxruntime", "polygraphy")
        home, work = tmp_path / "home", tmp_path / "work"
        home.mkdir()
        work.mkdir()
        for variable in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            monkeypatch.setenv(variable, str(home))
        run("onnxruntime", Setup(str(save(RELU, work))), work, {"x": np.zeros((2, 3), np.float32)})
        assert list(home.rglob("*")) == []

    def test_external_data_may_lie_inside_another_model(self, tmp_path: Path) -> None:
        needs("onnxruntime", "polygraphy")
        whole = (DETECTOR / "clean.onnx").read_bytes()
        model = onnx.load_from_string(whole)
        for tensor in model.graph.initializer:
            if len(tensor.raw_data) > 1000:
                at = whole.index(tensor.raw_data)
                for key, value in (("location", "clean.onnx"), ("offset", str(at)), ("length", len(tensor.raw_data))):
                    tensor.external_data.add(key=key, value=str(value))
                tensor.ClearField("raw_data")
                tensor.data_location = TensorProto.EXTERNAL
        thin = tmp_path / "thin.onnx"
        thin.write_bytes(model.SerializeToString())
        assert thin.stat().st_size < len(whole) / 4
        feed = {"images": np.random.default_rng(0).random((1, 3, 320, 320), np.float32)}
        _, wanted = run("onnxruntime", Setup(str(DETECTOR / "clean.onnx")), tmp_path, feed)
        for runtime in ("onnxruntime", "openvino"):
            if base.missing(runtime):
                continue
            _, found = run(runtime, Setup(str(thin), folder=str(DETECTOR)), tmp_path, feed)
            assert np.abs(found["output0"] - wanted["output0"]).max() < 1e-3, runtime


def endless(folder: Path) -> Path:
    """A Loop whose condition stays true and whose count is the largest there is."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Sin", ["v"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]),
        ],
    )
    constants = [
        helper.make_tensor("most", TensorProto.INT64, [], [2**63 - 1]),
        helper.make_tensor("start", TensorProto.BOOL, [], [True]),
    ]
    node = helper.make_node("Loop", ["most", "start", "x"], ["y"], body=body)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([node], "g", [x], [y], constants)
    path = folder / "loop.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


class TestMissing:
    def test_a_package_that_is_not_installed(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(Failed, match=r"openvino is not installed: pip install 'vexlint\[openvino\]'"):
            Child("openvino", Setup("model.onnx"), tmp_path)

    def test_a_package_that_cannot_be_imported(self, fakes: Path, tmp_path: Path) -> None:
        (fakes / "openvino.py").write_text("raise ImportError('libtbb.so.12 is missing')", "utf-8")
        assert refused("openvino", Setup("model.onnx"), tmp_path) == "libtbb.so.12 is missing"

    def test_a_crash_is_told_with_its_last_words(self, fakes: Path, tmp_path: Path) -> None:
        text = "import os, sys; print('terminate called: bad plugin', file=sys.stderr, flush=True); os.abort()"
        (fakes / "openvino.py").write_text(text, "utf-8")
        said = refused("openvino", Setup("some/model.onnx"), tmp_path)
        assert said == "openvino crashed loading model.onnx (signal 6): terminate called: bad plugin"

    def test_what_a_runtime_prints_does_not_disturb(self, fakes: Path, tmp_path: Path) -> None:
        text = "import os; os.write(1, b'hello'); print('there'); raise ImportError('missing')"
        (fakes / "openvino.py").write_text(text, "utf-8")
        assert refused("openvino", Setup("model.onnx"), tmp_path) == "missing"

    def test_tensorrt_without_a_gpu(self, fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tensorrt, "DRIVER", "libnothing.so.0")
        with pytest.raises(Missing, match=r"no NVIDIA GPU here: the driver's libnothing.so.0 is not installed"):
            tensorrt.load(Setup("model.onnx"))

    def test_names_aliases_and_devices(self) -> None:
        assert [base.named(n) for n in ("onnxruntime-cpu", "TRT", "openvino:GPU.1", "onnxruntime:cuda")] == [
            ("onnxruntime", ""),
            ("tensorrt", ""),
            ("openvino", "GPU.1"),
            ("onnxruntime", "cuda"),
        ]
        with pytest.raises(VexlintError, match=r"unknown runtime 'openvinno'; did you mean openvino\?; known: onnxr"):
            base.named("openvinno")


class TestProviders:
    """What ONNX Runtime says it has, and what it then really uses."""

    MODULE = SimpleNamespace(
        get_available_providers=lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"],
        get_all_providers=lambda: ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"],
    )

    def session(self, *providers: str, **nodes: int) -> Any:
        assigned = [SimpleNamespace(ep_name=name, get_nodes=lambda n=n: [0] * n) for name, n in nodes.items()]
        return SimpleNamespace(
            get_providers=lambda: list(providers), get_provider_graph_assignment_info=lambda: assigned
        )

    @pytest.mark.parametrize("spelling", ["cuda", "CUDA", "CUDAExecutionProvider"])
    def test_any_spelling(self, spelling: str) -> None:
        assert onnxruntime._provider(self.MODULE, spelling) == "CUDAExecutionProvider"

    def test_one_that_this_build_has_not(self) -> None:
        with pytest.raises(Missing, match="this build of onnxruntime has no TensorrtExecutionProvider, only CUDA"):
            onnxruntime._provider(self.MODULE, "tensorrt")

    def test_one_that_does_not_exist(self) -> None:
        with pytest.raises(Missing, match="knows no provider 'cudo'; did you mean cuda"):
            onnxruntime._provider(self.MODULE, "cudo")

    def test_a_session_that_fell_back_to_the_cpu_is_none(self) -> None:
        with pytest.raises(Missing, match="asked for CUDAExecutionProvider, onnxruntime made a session on CPUExec"):
            onnxruntime._placement(self.session("CPUExecutionProvider"), "CUDAExecutionProvider")

    def test_a_provider_that_took_no_node_did_not_run(self) -> None:
        both = ("CUDAExecutionProvider", "CPUExecutionProvider")
        with pytest.raises(Missing, match="CUDAExecutionProvider took none of the nodes: all 7 went to CPUExec"):
            onnxruntime._placement(self.session(*both, CPUExecutionProvider=7), "CUDAExecutionProvider")

    def test_nodes_that_went_elsewhere_are_counted(self) -> None:
        both = ("CUDAExecutionProvider", "CPUExecutionProvider")
        session = self.session(*both, CUDAExecutionProvider=90, CPUExecutionProvider=8)
        assert onnxruntime._placement(session, both[0]) == "90 of 98 nodes (8 on CPUExecutionProvider)"
        assert onnxruntime._placement(self.session(*both, CUDAExecutionProvider=98), both[0]) == ""

    def test_tensor_cores_may_not_round_float32(self) -> None:
        assert onnxruntime._provider_options("CUDAExecutionProvider", "fp32") == {"use_tf32": "0"}
