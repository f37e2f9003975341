"""Broken files: each ends in `Unreadable`, soon, or reads as protobuf reads it. `python -m tests.fuzz_wire` goes on."""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz_wire import damage, judge, oddly, random_model, seeds
from tests.malformed import corpus, model_bytes
from vexlint.model import proto, wire

CORPUS = corpus()
MODELS = seeds()
SECONDS, MEBIBYTES = 2, 200  # of CPU and of memory, far above what one small file takes


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "model.onnx"


def judge_in_bounds(data: bytes, path: Path) -> str:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    verdict = judge(data, path)
    assert time.process_time() - began < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEBIBYTES * 1024
    return verdict


@pytest.mark.parametrize("name", CORPUS)
def test_every_malformed_file_is_refused_with_a_reason(name: str, path: Path) -> None:
    reason = judge_in_bounds(CORPUS[name], path)
    assert reason.startswith(("byte ", "not an ONNX model: ", "the file is empty")), reason


def test_the_model_that_the_malformed_ones_are_made_of_is_readable(path: Path) -> None:
    assert judge(model_bytes(), path) == "read"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("git-lfs-pointer", "git lfs pull"),
        ("html", "a download that went wrong"),
        ("onnx-text", "ONNX text"),
        ("tensorflow-saved-model", "TensorFlow SavedModel"),
        ("nested-5000-deep", "nested deeper than 100 messages"),
        ("length-beyond-file", "byte 2: ModelProto.graph needs 997 bytes more than there are, the file is cut short"),
        (
            "small-node-longer-than-graph",
            "byte 4: GraphProto.node needs 1 bytes more than there are, GraphProto ends at byte 12",
        ),
        ("op-type-as-number", "NodeProto.op_type has wire type 0 where 2 is due"),
        ("metadata-not-utf-8", "StringStringEntryProto.value is not UTF-8"),
        ("no-graph", "there is no graph in it"),
    ],
)
def test_the_reason_says_what_to_do_or_where_to_look(name: str, words: str, path: Path) -> None:
    assert words in judge(CORPUS[name], path)


@pytest.mark.parametrize("model", [model_bytes(), *MODELS[:2]], ids=len)
def test_a_file_cut_short_anywhere_is_refused_unless_it_ends_between_fields(model: bytes, path: Path) -> None:
    step = max(1, len(model) // 500)
    for size in range(0, len(model), step):
        if judge(model[:size], path) == "read":
            onnx.ModelProto.FromString(model[:size])


@settings(max_examples=300, deadline=None)
@given(model=st.sampled_from(MODELS), other=st.sampled_from(MODELS), seed=st.integers(0, 1 << 32))
def test_damaged_files_are_refused_or_read_as_protobuf_reads_them(
    path: Path, model: bytes, other: bytes, seed: int
) -> None:
    judge_in_bounds(damage(model, other, random.Random(seed)), path)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    limits=st.sampled_from([(1, 0), (64, 128), (1024, 65536)]),
    harm=st.sampled_from([0.01, 0.1]),
)
def test_damage_inside_messages_is_found_as_protobuf_finds_it(
    path: Path, seed: int, limits: tuple[int, int], harm: float
) -> None:
    dice = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "BIG", limits[0])
        patch.setattr(wire, "KEPT", limits[1])
        judge_in_bounds(oddly(random_model(dice), dice, harm), path)


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_refused_or_parsed(data: bytes) -> None:
    try:
        proto.parse(data)
    except wire.Unreadable:
        return
    onnx.ModelProto.FromString(data)
