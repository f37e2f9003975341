"""How nodes are written. A graph of 100,000 nodes has a handful of ways to write one, and what follows from the way
alone is found once for all nodes that share it, and for those of the next file too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vexlint.model import schemas
from vexlint.model.attributes import attribute_type, attribute_value
from vexlint.model.schemas import plain_domain

if TYPE_CHECKING:
    from onnx import NodeProto

    from vexlint.model.kinds import Kind

PLAIN = frozenset((1, 2, 3, 6, 7, 8))  # AttributeProto.AttributeType: numbers, strings and lists of them
MANY = 10_000  # forms and uses of them, after which no more are kept from file to file


class Way:
    """One way to use a form: with inputs of certain kinds. `made` is what it makes of them and why they cannot go
    together ("" where they can), None as long as nobody has found out; `told` what a judge said of it."""

    __slots__ = ("made", "told")

    def __init__(self) -> None:
        self.made: tuple[list[Kind], str] | None = None
        self.told: dict[Any, Any] = {}


class Form:
    """An operator, which of its arguments are given, and its attributes: all of a node but the names.

    `schema` is None where the standard has none at the graph's opset; `arguments` is what is known of its inputs,
    outputs and attributes, of ONNX Runtime's own operators too. `holds` tells that an attribute holds a tensor or
    a graph; nodes whose attributes are not plain share their form with no other. `ways` are by the kinds of the
    inputs; `told` is what a judge of the form alone said.
    """

    def __init__(self, proto: NodeProto, opsets: Mapping[str, int]) -> None:
        self.proto = proto  # the first node written so
        self.op = proto.op_type
        self.domain = plain_domain(proto.domain)
        self.schema = schemas.operator(self.domain, self.op, opsets.get(self.domain, 0))
        self.arguments = self.schema or schemas.contrib(self.domain, self.op)
        self.ways: dict[tuple[Kind, ...], Way] = {}
        self.told: dict[Any, Any] = {}
        self.holds = any(a.type not in PLAIN or a.HasField("t") or len(a.tensors) for a in proto.attribute)

    @cached_property
    def written(self) -> dict[str, Any]:
        """The attributes that are written as Python values, None for what is unknown: see `Node.attribute`."""
        schema = self.schema or schemas.operator(self.domain, self.op, schemas.newest_opset(self.domain))
        known = schema.attributes if schema else None
        found = {}
        for attribute in reversed(self.proto.attribute):  # of two with one name the first counts
            name = attribute.name
            fits = known is None or (name in known and attribute_type(attribute) == known[name].type)
            found[name] = attribute_value(attribute) if fits and not attribute.ref_attr_name else None
        return found

    def attribute(self, name: str) -> Any:
        """See `Node.attribute`; a value is not to be changed."""
        if name in self.written:
            return self.written[name]
        declared = self.schema.attributes.get(name) if self.schema else None
        return declared.default if declared else None


class Forms:
    """The forms of graphs whose nodes are at these opsets."""

    def __init__(self, opsets: Mapping[str, int]) -> None:
        self._opsets = opsets
        self._known: dict[Any, Form] = {}

    def of(self, proto: NodeProto, inputs: Sequence[str], outputs: Sequence[str]) -> Form:
        """The form of a node with these inputs and outputs."""
        written = []
        for attribute in proto.attribute[:]:  # a list at once: a repeated field is slow to iterate
            if attribute.type not in PLAIN:
                return Form(proto, self._opsets)
            written.append(attribute.SerializeToString())
        key = (proto.op_type, proto.domain, _given(inputs), _given(outputs), *written)
        form = self._known.get(key)
        if form is None:
            own = type(proto)()
            own.CopyFrom(proto)  # so that a form keeps no file in memory
            form = self._known[key] = Form(own, self._opsets)
        return form

    @property
    def size(self) -> int:
        """How much is remembered: forms, and ways to use them."""
        return sum(1 + len(form.ways) for form in self._known.values())


_shared: dict[frozenset[tuple[str, int]], Forms] = {}


def at(opsets: Mapping[str, int], shared: bool) -> Forms:
    """The forms of nodes at these opsets; `shared` are those of every file in which operators mean what the standard
    says, and no function of the file's own."""
    if not shared:
        return Forms(opsets)
    if sum(forms.size for forms in _shared.values()) > MANY:
        _shared.clear()
    return _shared.setdefault(frozenset(opsets.items()), Forms(opsets))


def _given(names: Sequence[str]) -> Any:
    """Which of the arguments have a name: how many where all have one."""
    return tuple(map(bool, names)) if "" in names else len(names)
