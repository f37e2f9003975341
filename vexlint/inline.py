"""Puts a composite in the place of a call, or beside it as a function, where the call surely is the activation.

onnx.inliner is not used: it forgets attribute defaults, node names and metadata, and does nothing at all where the
opsets differ. A body of `rules/composites/` is a flat list of nodes, so that substitution is all there is to do.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from vexlint.composites import Composite, Form, Signature
from vexlint.model import schemas
from vexlint.model.schemas import plain_domain
from vexlint.values import VexlintError

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, NodeProto

    Message = TypeVar("Message", bound=NodeProto)

PROVENANCE = "vexlint.composite"  # the key of a node's metadata that says what the node was made of
ELEMENTS = {"float": (1, "<f"), "float16": (10, "<e"), "double": (11, "<d")}  # -> TensorProto.DataType, struct format
FLOAT, INT, STRING, TENSOR = 1, 2, 3, 4  # AttributeProto.AttributeType

Value = float | str  # of an attribute; a str is the name of an attribute of the function around the call


class NoComposite(Exception):  # noqa: N818 - what is unknown about a call, not a mistake of the user's
    """No standard nodes can take the place of a call. The message goes on after "the call": "has 3 inputs where …"."""


def expand(
    node: NodeProto, composite: Composite, opset: int, dtype: str, taken_names: set[str], runtime: str = ""
) -> list[NodeProto]:
    """The standard nodes, in order, that take the place of one call, wherever in a file it is.

    `opset` is that of the default domain where the call is; `dtype` the element type of its inputs as ONNX text names
    it, "" where unknown; `runtime` (without a version) the one the file is for. Nodes and values are named
    `<call>/<Op>` after the call or, where it has no name, its output; no name in `taken_names` is used, and the new
    ones are added to it. The last node makes the call's own output. Each node has the call's documentation and
    metadata, and says in its metadata what it was made of. The nodes are messages of the call's own class.

    Raises NoComposite where the call may not be the activation or no form fits: nothing is guessed.
    """
    inputs, output = _values(node)
    _, given = _bind(node, composite, len(inputs), dtype)
    body, values = _choose(composite, given, len(inputs), opset, dtype, runtime)
    taken_names.update(inputs, [output])
    names = dict(zip(body.input, inputs, strict=True)) | {body.output[0]: output}
    made = list(_nodes(type(node), body, values, dtype))
    for new in made:
        new.name = _unique(f"{node.name or output}/{new.op_type}", taken_names)
        for position, name in enumerate(new.input):
            new.input[position] = names[name]
        if new.output[0] not in names:
            names[new.output[0]] = _unique(f"{new.name}_output_0", taken_names)
        new.output[0] = names[new.output[0]]
        if node.doc_string:
            new.doc_string = node.doc_string
        new.metadata_props.extend(node.metadata_props)
        new.metadata_props.add(key=PROVENANCE, value=f"{node.domain or 'ai.onnx'}::{node.op_type} -> {composite.name}")
    return made


def function(composite: Composite, node: NodeProto, opset: int, dtype: str, runtime: str = "") -> FunctionProto:
    """What `expand` makes of a call, as a function of the call's own domain and name: with it the original file runs.

    Attributes stay attributes, so that one function serves all calls of an operator whose inputs, element type and
    names of attributes are alike, whatever the values. Raises NoComposite as `expand` does. Two runtimes do not do what
    the standard says: ONNX Runtime runs its own kernel for an operator of com.microsoft whatever the file says, and
    onnx.reference ignores attribute defaults of functions, and cannot hand an attribute on to most operators.
    """
    from onnx import FunctionProto, NodeProto

    inputs, _ = _values(node)
    signature, _ = _bind(node, composite, len(inputs), dtype)
    own = {name: name for name in signature.attributes}
    body, values = _choose(composite, own, len(inputs), opset, dtype, runtime)
    made = FunctionProto(name=node.op_type, domain=node.domain, input=body.input, output=body.output)
    made.node.extend(_nodes(NodeProto, body, values, dtype))
    made.opset_import.add(domain="", version=opset)
    made.attribute.extend(name for name, default in signature.attributes.items() if default is None)
    for name, default in signature.attributes.items():
        if default is not None:
            made.attribute_proto.add(name=name, type=FLOAT, f=default)
    for name, value in signature.fixed.items():
        if isinstance(value, str):
            made.attribute_proto.add(name=name, type=STRING, s=value.encode())
        else:
            made.attribute_proto.add(name=name, type=INT, i=value)
    return made


def _values(node: NodeProto) -> tuple[list[str], str]:
    """A call's inputs, without those left out at the end, and its one output."""
    inputs = list(node.input)
    while inputs and not inputs[-1]:
        inputs.pop()
    if "" in inputs:
        raise NoComposite(f"leaves out input {inputs.index('')}")
    if not node.output or not node.output[0] or any(node.output[1:]):
        raise NoComposite("has not one output")
    if node.overload:
        raise NoComposite(f"is of the overload {node.overload!r}")
    return inputs, node.output[0]


def _bind(node: NodeProto, composite: Composite, inputs: int, dtype: str) -> tuple[Signature, dict[str, Value]]:
    """The signature that a call fits, and the values of its attributes, with the defaults that are the operator's.

    An operator that the composite does not list was said to be it by a person: then the forms say what it takes, and
    keep their own defaults.
    """
    operator = plain_domain(node.domain), node.op_type
    listed = [s for s in composite.signatures if s.operator == operator]
    known = listed or [_own(form) for form in composite.forms]
    fitting = [s for s in known if s.inputs == inputs]
    if not fitting:
        takes = " or ".join(map(str, sorted({s.inputs for s in known})))
        raise NoComposite(f"has {inputs} inputs where {composite.name} takes {takes}")
    reasons = []
    for signature in fitting:
        try:
            written = dict(_written(node, signature, dtype))
        except NoComposite as reason:
            reasons.append(reason)
            continue
        defaults = {k: v for k, v in signature.attributes.items() if v is not None and listed}
        return signature, defaults | written
    raise reasons[0]


def _own(form: Form) -> Signature:
    body = _body(form)
    attributes: dict[str, float | None] = dict.fromkeys(body.attribute)
    return Signature(("", ""), attributes | {a.name: a.f for a in body.attribute_proto}, {}, len(body.input), "")


def _written(node: NodeProto, signature: Signature, dtype: str) -> Iterator[tuple[str, Value]]:
    """The values of the attributes that a call writes. Raises NoComposite where they are not the signature's."""
    given = {a.name: a for a in node.attribute}
    for name, default in signature.attributes.items():
        if default is None and name not in given:
            raise NoComposite(f"does not say {name}, which has no default")
    for name, attribute in given.items():
        if name in signature.fixed:
            value = {STRING: attribute.s.decode("utf-8", "replace"), INT: attribute.i}.get(attribute.type)
            if value != signature.fixed[name] or attribute.ref_attr_name:
                raise NoComposite(f"has an attribute {name} that is not {signature.fixed[name]!r}")
        elif name not in signature.attributes:
            raise NoComposite(f"has an attribute {name}, of which nothing is known")
        elif attribute.type != FLOAT:
            raise NoComposite(f"has an attribute {name} that is not a float")
        elif attribute.ref_attr_name:
            yield name, attribute.ref_attr_name
        elif dtype in ELEMENTS and not _fits(attribute.f, dtype):
            raise NoComposite(f"has an attribute {name} of {attribute.f:g}, which is no number of type {dtype}")
        else:
            yield name, attribute.f


def _choose(
    composite: Composite, given: Mapping[str, Value], inputs: int, opset: int, dtype: str, runtime: str
) -> tuple[FunctionProto, dict[str, Value]]:
    """The first form that fits, those best on the runtime before the others, and the values of its attributes."""
    forms = [form for form in composite.forms if dtype in form.dtypes]
    if not forms:
        known = f"computes in {dtype}, which no form of {composite.name} is for"
        raise NoComposite(known if dtype else "has elements of an unknown type")
    reasons = []
    for form in sorted(forms, key=lambda form: runtime not in form.best_on):
        body = _body(form)
        values: dict[str, Value] = {a.name: a.f for a in body.attribute_proto} | dict(given)
        if len(body.input) != inputs or values.keys() != {*body.attribute, *(a.name for a in body.attribute_proto)}:
            continue
        reason = _unfit(form, body, opset, dtype)
        if not reason:
            return body, values
        reasons.append(reason)
    raise NoComposite("; ".join(reasons) or f"has inputs or attributes that no form of {composite.name} has")


def _unfit(form: Form, body: FunctionProto, opset: int, dtype: str) -> str:
    """Why a form cannot be used at this opset with this element type, "" where it can."""
    newest = schemas.newest_opset()
    if not form.opset <= opset <= newest:
        return f"is at opset {opset}, and {form.name} is for {form.opset} to {newest}"
    for node in (n for n in body.node if n.op_type != "Constant"):  # those are written anew
        schema = schemas.operator(node.domain, node.op_type, opset)
        known = schema is not None and {a.name for a in node.attribute} <= schema.attributes.keys()
        if schema is None or not known or not schema.min_inputs <= len(node.input) <= schema.max_inputs:
            return f"is at opset {opset}, which does not have {node.op_type} as {form.name} uses it"
        if any(f"tensor({dtype})" not in formal.types for formal in schema.inputs):
            return f"is at opset {opset}, where {node.op_type} does not take {dtype}"
    return ""


@cache
def _body(form: Form) -> FunctionProto:
    """The parsed function: not to be changed. Raises VexlintError where the text is not a flat ONNX function."""
    import onnx.parser

    where = f"{form.file}: form {form.name}"
    try:
        body = onnx.parser.parse_function(form.text)
    except onnx.parser.ParseError as error:
        said = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise VexlintError(f"{where}: {' '.join(said.split())}") from None
    if len(body.output) != 1 or list(body.node[-1].output) != list(body.output):
        raise VexlintError(f"{where}: the last node should make the one output")
    for node in body.node:
        if node.domain or len(node.output) != 1 or any(a.HasField("g") for a in node.attribute):
            raise VexlintError(f"{where}: {node.op_type} should be a standard node of one output, without a graph")
        if node.op_type == "Constant" and not any(a.ref_attr_name or len(a.t.double_data) == 1 for a in node.attribute):
            raise VexlintError(f"{where}: a Constant should be written <value = double {{1}}> or <value_float = @name>")
    return body


def _nodes(kind: type[Message], body: FunctionProto, values: Mapping[str, Value], dtype: str) -> Iterator[Message]:
    """The body's nodes as messages of a class (a model's need not be onnx's own), attributes filled in."""
    for written in body.node:
        node = kind.FromString(written.SerializeToString())
        node.ClearField("domain")
        if node.op_type != "Constant":
            for attribute in node.attribute:
                if attribute.ref_attr_name:
                    _put(attribute, values[attribute.ref_attr_name])
            yield node
            continue
        attribute = node.attribute[0]
        value = values[attribute.ref_attr_name] if attribute.ref_attr_name else attribute.t.double_data[0]
        yield from _from_attribute(node, value, dtype) if isinstance(value, str) else [_scalar(node, value, dtype)]


def _fits(value: float, dtype: str) -> bool:
    try:
        return math.isfinite(value) and bool(struct.pack(ELEMENTS[dtype][1], value))
    except OverflowError:
        return False


def _put(attribute: AttributeProto, value: Value) -> None:
    """A float of the call, or a reference to an attribute of the function that the call is in."""
    attribute.ClearField("ref_attr_name")
    if isinstance(value, str):
        attribute.ref_attr_name = value
    else:
        attribute.f = value


def _scalar(node: Message, value: float, dtype: str) -> Message:
    """Makes a Constant hold one scalar of this element type."""
    data_type, packing = ELEMENTS[dtype]
    del node.attribute[:]
    tensor = node.attribute.add(name="value", type=TENSOR).t
    tensor.data_type, tensor.raw_data = data_type, struct.pack(packing, value)
    return node


def _from_attribute(node: Message, name: str, dtype: str) -> Iterator[Message]:
    """A constant whose value only the function's caller knows, of any element type and at any opset.

    Constant takes it from opset 12 on only, and as a float only; -LeakyRelu(-1) is its alpha, exactly.
    """
    kind, value = type(node), node.output[0]
    yield _scalar(kind(op_type="Constant", output=[f"{value}.minus_one"]), -1.0, dtype)
    scaled = kind(op_type="LeakyRelu", input=[f"{value}.minus_one"], output=[f"{value}.scaled"])
    scaled.attribute.add(name="alpha", type=FLOAT, ref_attr_name=name)
    yield scaled
    yield kind(op_type="Neg", input=[f"{value}.scaled"], output=[value])


def _unique(name: str, taken: set[str]) -> str:
    count = 0
    while (free := f"{name}_{count}" if count else name) in taken:
        count += 1
    taken.add(free)
    return free
