"""A model as text for people and for `git diff`: one line a tensor and a node, by name, never by index.

Left out is what no runtime computes with: doc strings and the metadata of single nodes and values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint.model import native, payloads, tensors
from vexlint.model.attributes import attribute_type, attribute_value
from vexlint.model.model import Model
from vexlint.model.read import read
from vexlint.model.schemas import plain_domain
from vexlint.model.wire import Unreadable, payload_of
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto

FEW = 8  # elements that are written out; of more, a digest


def lines(path: Path) -> Iterator[str]:
    """The text of a model, line by line: the same for the same model, wherever it lies.

    A file that cannot be read is one line that says why: git ends a diff where its helper fails. Raises VexlintError
    for a file that is not there.
    """
    if not path.exists():
        raise VexlintError(f"{path}: no such file")
    try:
        model = read(path)
    except (Unreadable, native.Stopped) as error:
        yield f"unreadable: {_line(str(error))}"
        return
    yield from _Shown(model).model_lines()


class _Shown:
    """One model being written; weights that were left on disk are read from its file."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def model_lines(self) -> Iterator[str]:
        proto = self.model.proto
        yield f"ir_version {proto.ir_version}"
        if proto.producer_name or proto.producer_version:
            yield _line(f"producer {proto.producer_name} {proto.producer_version}".rstrip())
        if proto.model_version:
            yield f"model_version {proto.model_version}"
        yield from _opsets(proto)
        for entry in sorted(proto.metadata_props, key=lambda e: e.key):
            yield f"metadata {_name(entry.key)} = {_line(entry.value)}"
        yield f"graph {_name(proto.graph.name)}".rstrip()
        yield from self.graph_lines(proto.graph, "  ")
        for function in sorted(proto.functions, key=lambda f: (f.domain, f.name, f.overload)):
            yield from self.function_lines(function)
        if proto.training_info:
            yield f"training_info {_digest([t.SerializeToString(deterministic=True) for t in proto.training_info])}"

    def graph_lines(self, graph: GraphProto, indent: str) -> Iterator[str]:
        for kind, values in (("input", graph.input), ("output", graph.output)):
            for value in values:
                yield f"{indent}{kind} {_name(value.name)}: {_type(value.type)}"
        for tensor in sorted(graph.initializer, key=lambda t: t.name):
            yield f"{indent}initializer {_name(tensor.name)}: {self.tensor(tensor)}"
        for sparse in sorted(graph.sparse_initializer, key=lambda s: s.values.name):
            name, dims = _name(sparse.values.name), ",".join(map(str, sparse.dims))
            yield f"{indent}sparse {name}: [{dims}] {self.tensor(sparse.values)} at {self.tensor(sparse.indices)}"
        for value in sorted(graph.value_info, key=lambda v: v.name):
            yield f"{indent}value {_name(value.name)}: {_type(value.type)}"
        for note in sorted(graph.quantization_annotation, key=lambda q: q.tensor_name):
            said = ", ".join(f"{_name(e.key)}={_name(e.value)}" for e in note.quant_parameter_tensor_names)
            yield f"{indent}quantization {_name(note.tensor_name)}: {said}"
        for node in graph.node:
            yield from self.node_lines(node, indent)

    def function_lines(self, function: FunctionProto) -> Iterator[str]:
        called = f"{function.domain}::{function.name}" + (f":{function.overload}" if function.overload else "")
        inputs, outputs = (", ".join(map(_name, names)) for names in (function.input, function.output))
        yield f"function {_line(called)}({inputs}) -> ({outputs})"
        yield from (f"  {line}" for line in _opsets(function))
        yield from (f"  attribute {_name(name)}" for name in sorted(function.attribute))
        for attribute in sorted(function.attribute_proto, key=lambda a: a.name):
            yield f"  attribute {self.attribute(attribute)}"
        for node in function.node:
            yield from self.node_lines(node, "  ")

    def node_lines(self, node: NodeProto, indent: str) -> Iterator[str]:
        domain = plain_domain(node.domain)
        called = (f"{domain}::" if domain else "") + node.op_type + (f":{node.overload}" if node.overload else "")
        attributes = sorted(node.attribute, key=lambda a: a.name)
        plain = [f" {self.attribute(a)}" for a in attributes if not (a.HasField("g") or a.graphs)]
        outputs, inputs = (", ".join(_name(n) if n else "" for n in names) for names in (node.output, node.input))
        comment = f"  # {_line(node.name)}" if node.name else ""
        yield f"{indent}{outputs} = {_line(called)}({inputs}){''.join(plain)}{comment}"
        for attribute in attributes:
            held = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
            for graph in held:
                yield f"{indent}  {_name(attribute.name)}: graph {_name(graph.name)}".rstrip()
                yield from self.graph_lines(graph, f"{indent}    ")

    def attribute(self, attribute: AttributeProto) -> str:
        name = _name(attribute.name)
        if attribute.ref_attr_name:
            return f"{name}=@{_name(attribute.ref_attr_name)}"
        value = attribute_value(attribute)
        kind = attribute_type(attribute)
        if kind in ("TENSOR", "TENSORS"):
            found = [self.tensor(t) for t in ([value] if kind == "TENSOR" else value)]
            return f"{name}={'; '.join(found)}"
        if isinstance(value, list) and kind in ("FLOATS", "INTS", "STRINGS"):
            return f"{name}=[{', '.join(map(_scalar, value))}]"
        if kind in ("FLOAT", "INT", "STRING"):
            return f"{name}={_scalar(value)}"
        return f"{name}={kind or 'nothing'} {_digest([attribute.SerializeToString(deterministic=True)])}"

    def tensor(self, tensor: TensorProto) -> str:
        """Element type, sizes, and the elements where they are few, else a digest of their bytes.

        External data is told by its place: beside the text's file, as git makes it, that file does not lie.
        """
        head = f"{tensors.dtype_name(tensor.data_type)}[{','.join(map(str, tensor.dims))}]"
        stripped = self.model.stripped
        payload = payload_of(tensor, stripped) if stripped else None
        if payload is not None:
            spans = [(payload.offset, payload.offset + payload.length)] if payload.raw else payload.fields
            pieces = (payloads.read(self.model.path, start, end - start) for start, end in spans)
            return f"{head} {_digest(chain.from_iterable(pieces))}"
        if (record := tensors.external(tensor)) is not None:
            told = ", ".join(f"{_name(k)} {_line(v)}" for k, v in sorted(record.items()))
            return f"{head} external {told}"
        if 0 <= tensors.size(tensor) <= FEW:
            values = list(tensor.string_data) if tensor.data_type == 8 else tensors.values(tensor)
            if values is not None:
                return f"{head} {{{', '.join(map(_scalar, values))}}}"
        if tensor.HasField("raw_data"):
            return f"{head} {_digest([tensor.raw_data])}"
        fields = {d.name: v for d, v in tensor.ListFields() if d.name.endswith("_data")}
        return f"{head} {_digest([repr([(k, list(v)) for k, v in sorted(fields.items())]).encode()])}"


def _digest(pieces: Any) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return f"sha256:{digest.hexdigest()[:16]}"


def _opsets(proto: Any) -> Iterator[str]:
    for entry in sorted(proto.opset_import, key=lambda o: o.domain):
        yield f"opset {_name(entry.domain or 'ai.onnx')} {entry.version}"


def _type(proto: TypeProto) -> str:
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        dims = [str(d.dim_value) if d.HasField("dim_value") else _name(d.dim_param) or "?" for d in tensor.shape.dim]
        shape = f"[{','.join(dims)}]" if tensor.HasField("shape") else "[...]"
        return ("sparse " if kind.startswith("sparse") else "") + tensors.dtype_name(tensor.elem_type) + shape
    if kind in ("sequence_type", "optional_type"):
        return f"{kind.removesuffix('_type')}({_type(getattr(proto, kind).elem_type)})"
    if kind == "map_type":
        return f"map({tensors.dtype_name(proto.map_type.key_type)}, {_type(proto.map_type.value_type)})"
    return kind or "no type"


def _scalar(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if value.isprintable() else json.dumps(value)
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _name(name: str) -> str:
    """A name that cannot be taken for more than one word of a line."""
    plain = name.isprintable() and not set(name) & set(' ",()=@#')
    return name if plain else json.dumps(name, ensure_ascii=not name.isprintable())


def _line(text: str) -> str:
    """Text on one line."""
    return text if text.isprintable() else json.dumps(text)
