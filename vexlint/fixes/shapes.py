"""VEX401: input axes frozen to the sizes that the contract gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vexlint.checks.context import Context
from vexlint.model.model import Model
from vexlint.model.shapes import declared_shape, infer
from vexlint.values import Change, Finding

if TYPE_CHECKING:
    from onnx import ValueInfoProto


def freeze(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """Gives each open axis of an input the contract's size, its symbol the same size wherever it stands, and the
    outputs the sizes that follow.

    A symbol that would have to be two sizes at once says nothing about other tensors: there it becomes unknown.
    """
    sizes: dict[str, set[int]] = {}
    changes = []
    for finding in findings:
        name = finding.place.name
        wanted = context.contract.inputs[name].shape or ()
        dims = model.graph.inputs[name].type.tensor_type.shape.dim
        before = str(declared_shape(model.graph.inputs[name]))
        for dim, size in zip(dims, wanted, strict=True):
            if isinstance(size, int) and not (dim.HasField("dim_value") and dim.dim_value >= 0):
                if dim.dim_param not in ("", "?"):
                    sizes.setdefault(dim.dim_param, set()).add(size)
                dim.dim_value = size
        after = str(declared_shape(model.graph.inputs[name]))
        changes.append(Change("VEX401", finding.place, before, after))
    for entry in _declarations(model):
        _substitute(entry, sizes)
    for entry in (*model.graph.proto.output, *model.graph.proto.value_info):
        _open_negative(entry)
    return [*changes, *_close_outputs(model)]


def _declarations(model: Model) -> Iterator[ValueInfoProto]:
    for graph in model.graphs:
        if not graph.is_function:
            yield from (*graph.proto.input, *graph.proto.output, *graph.proto.value_info)


def _substitute(entry: ValueInfoProto, sizes: dict[str, set[int]]) -> None:
    if not entry.type.HasField("tensor_type"):
        return
    for dim in entry.type.tensor_type.shape.dim:
        known: Any = sizes.get(dim.dim_param) if dim.HasField("dim_param") else None
        if known is not None:
            dim.ClearField("dim_param")
            if len(known) == 1:
                dim.dim_value = next(iter(known))


def _open_negative(entry: ValueInfoProto) -> None:
    """A size of -1, as some exporters write for "any", becomes unknown: beside inputs of fixed size inference takes it
    for a number, and a contradiction."""
    if entry.type.HasField("tensor_type"):
        for dim in entry.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < 0:
                dim.ClearField("dim_value")


def _close_outputs(model: Model) -> Iterator[Change]:
    """Writes the sizes of outputs that follow from the inputs, where shape inference finds them."""
    found = infer(model.proto)
    for name, entry in model.graph.outputs.items():
        shape, dims = found.get(("graph", name)), entry.type.tensor_type.shape.dim
        if shape is None or shape.rank != len(dims):
            continue
        before = str(declared_shape(entry))
        for dim, size in zip(dims, shape.dims, strict=True):
            if isinstance(size, int) and not dim.HasField("dim_value"):
                dim.dim_value = size
        if str(declared_shape(entry)) != before:
            from vexlint.model.graph import value_place

            yield Change("VEX401", value_place("output", name), before, str(declared_shape(entry)))
