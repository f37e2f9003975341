"""Puts a tail behind a model that stays as it is, and cuts it off again.

What the tail was made with stands in the metadata under `vexlint.nms.`, with the outputs that it took the place of and
the hash of the file that it was put on.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint.model.model import Model
from vexlint.nms.heads import Head
from vexlint.nms.piece import PREFIX
from vexlint.nms.tail import OUTPUTS, Settings
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from onnx import ModelProto

KEY = "vexlint.nms."
REPLACED, SOURCE, DOMAIN = f"{KEY}replaced", f"{KEY}source", f"{KEY}domain"


def output_names(model: Model, head: Head) -> tuple[str, ...]:
    """num_dets, boxes, scores, labels; with "nms/" before each where the model uses one of the names."""
    used = {n for g in model.graphs for n in g.defined}
    return OUTPUTS if not used & set(OUTPUTS) else tuple(f"nms/{n}" for n in OUTPUTS)


def insert(proto: ModelProto, head: Head, settings: Settings, tail: ModelProto, digest: str) -> None:
    """Grafts a tail; `digest` is the SHA-256 of the source. The head's outputs become values inside."""
    graph = proto.graph
    replaced = [(i, o) for i, o in enumerate(graph.output) if o.name in head.outputs]
    note = ",".join(f"{i}:{base64.b64encode(o.SerializeToString()).decode()}" for i, o in replaced)
    for index, _ in reversed(replaced):
        del graph.output[index]
    for entry in tail.graph.output:
        graph.output.add().ParseFromString(entry.SerializeToString())
    for node in tail.graph.node:
        graph.node.add().ParseFromString(node.SerializeToString())
    for tensor in tail.graph.initializer:
        graph.initializer.add().ParseFromString(tensor.SerializeToString())
    known = {o.domain for o in proto.opset_import}
    added = [o for o in tail.opset_import if o.domain and o.domain not in known]
    for entry in added:
        proto.opset_import.add(domain=entry.domain, version=entry.version)
    said = {
        "layout": head.layout.name, "classes": head.classes, "score": settings.score, "iou": settings.iou,
        "max_detections": settings.most, "pre": settings.candidates(head), "tail": settings.tail,
        "multi_label": settings.multi_label, "agnostic": settings.agnostic,
    }  # fmt: skip
    for key, value in said.items():
        proto.metadata_props.add(key=KEY + key, value=str(value))
    proto.metadata_props.add(key=REPLACED, value=note)
    proto.metadata_props.add(key=SOURCE, value=f"sha256:{digest}")
    for entry in added:
        proto.metadata_props.add(key=DOMAIN, value=entry.domain)


def remove(proto: ModelProto, where: Path) -> str:
    """Cuts a tail of ours off. Returns the SHA-256 of the file that it was put on. Raises VexlintError where there is
    none, and where something else reads what it makes."""
    graph = proto.graph
    said = {e.key: e.value for e in proto.metadata_props}
    if REPLACED not in said:
        raise VexlintError(f"{where}: no tail of vexlint's in it (its metadata would say so): nothing to remove")
    ours = [n for n in graph.node if n.name.startswith(PREFIX)]
    made = {o for n in ours for o in n.output}
    readers = [n.name or n.op_type for n in graph.node if not n.name.startswith(PREFIX) and made & set(n.input)]
    if readers:
        raise VexlintError(f"{where}: node {readers[0]} reads what the tail makes: take that away first")
    domain = said.get(DOMAIN)
    _drop(graph.node, lambda e: e.name.startswith(PREFIX))
    _drop(graph.initializer, lambda e: e.name.startswith(PREFIX))
    _drop(graph.value_info, lambda e: e.name in made)
    _drop(graph.output, lambda e: e.name in made)
    _drop(proto.opset_import, lambda e: domain is not None and e.domain == domain)
    _drop(proto.metadata_props, lambda e: e.key.startswith(KEY))
    kept = [o.SerializeToString() for o in graph.output]
    for part in said[REPLACED].split(","):
        index, _, data = part.partition(":")
        kept.insert(int(index), base64.b64decode(data))
    del graph.output[:]
    for data in kept:
        graph.output.add().ParseFromString(data)
    return str(said[SOURCE]).removeprefix("sha256:")


def _drop(field: Any, mine: Callable[[Any], bool]) -> None:
    for index, entry in reversed(list(enumerate(field))):
        if mine(entry):
            del field[index]
