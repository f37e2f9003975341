"""The tensors that a file holds, each with its place and with where its data are: found once, for every check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from vexlint.model import tensors
from vexlint.model.wire import Payload, payload_at
from vexlint.values import Place

if TYPE_CHECKING:
    from onnx import TensorProto

    from vexlint.model.graph import Node
    from vexlint.model.model import Model


class Held(NamedTuple):
    """An initializer, or a tensor of a node's attribute.

    `path` is that of its graph, `name` the initializer's ("" where a node holds the tensor). `record` is its
    external-data record, None where the data are in the proto at hand; `payload` what `wire.strip` left on disk.
    """

    path: str
    node: Node | None
    name: str
    tensor: TensorProto
    record: dict[str, str] | None
    payload: Payload | None

    @property
    def place(self) -> Place:
        return self.node.place if self.node else Place("initializer", self.path, name=self.name, value=self.name)


def everything(model: Model) -> Iterator[Held]:
    """Every tensor of the graphs that can run, initializers and attributes, in the order of the file."""
    for graph in model.graphs:
        path = graph.path
        for name, tensor in graph.initializers.items():
            yield _held(model, path, None, name, tensor)
        if not graph.is_function:
            for sparse in graph.proto.sparse_initializer:
                for tensor in (sparse.values, sparse.indices):
                    yield _held(model, path, None, sparse.values.name, tensor)
        for node, attribute in graph.holders:
            if attribute.HasField("t"):
                yield _held(model, path, node, "", attribute.t)
            for tensor in attribute.tensors:
                yield _held(model, path, node, "", tensor)


def _held(model: Model, path: str, node: Node | None, name: str, tensor: TensorProto) -> Held:
    if not tensors.is_external(tensor):
        return Held(path, node, name, tensor, None, None)
    entries = [(entry.key, entry.value) for entry in tensor.external_data[:]]
    left = None if model.stripped is None else payload_at(entries, model.stripped)
    return Held(path, node, name, tensor, dict(entries), left)
