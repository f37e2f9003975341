"""Breaks models in the ways that exporters, converters and hands do: one small mistake each, seeded.

A kind is a function `(model, dice) -> bool`: it edits the model in place and says whether there was something to break.
"""

from __future__ import annotations

from onnx import ModelProto

from tests.mutants import attributes, inputs, names, operators, stored
from tests.mutants.common import Dice, Mutate

KINDS: dict[str, Mutate] = {
    "misspelt attribute": attributes.misspelt_attribute,
    "wrong attribute type": attributes.wrong_attribute_type,
    "attribute out of range": attributes.attribute_out_of_range,
    "unknown enumerated value": attributes.unknown_enumerated_value,
    "axes as attribute/input swapped": attributes.axes_swapped,
    "misspelt operator": operators.misspelt_operator,
    "foreign domain": operators.foreign_domain,
    "dropped import": operators.dropped_import,
    "import too old": operators.import_too_old,
    "import too new": operators.import_too_new,
    "wrong input dtype": inputs.wrong_input_dtype,
    "swapped inputs": inputs.swapped_inputs,
    "missing required input": inputs.missing_required_input,
    "extra input": inputs.extra_input,
    "dangling input": inputs.dangling_input,
    "duplicate value": names.duplicate_value,
    "duplicate node name": names.duplicate_node_name,
    "unsorted nodes": names.unsorted_nodes,
    "shadowed name in a subgraph": names.shadowed_name,
    "wrong declared shape": stored.wrong_declared_shape,
    "wrong declared dtype": stored.wrong_declared_dtype,
    "truncated raw data": stored.truncated_raw_data,
    "wrong dims for the data": stored.wrong_dims,
    "zero quantization scale": stored.zero_scale,
    "NaN weight": stored.nan_weight,
}


def mutate(model: ModelProto, kind: str, dice: Dice) -> ModelProto | None:
    """A copy broken in that way, None where there is nothing to break or nothing changed."""
    copy: ModelProto = ModelProto.FromString(model.SerializeToString())
    before = copy.SerializeToString(deterministic=True)
    if not KINDS[kind](copy, dice) or copy.SerializeToString(deterministic=True) == before:
        return None
    return copy
