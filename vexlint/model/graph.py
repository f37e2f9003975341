"""Graphs at every depth, their nodes and values: the read-only view over a GraphProto or a FunctionProto.

Everything beyond the list of nodes is found when it is first asked for, so that a check pays for what it looks at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vexlint.model import forms, schemas, tensors
from vexlint.model.forms import Forms
from vexlint.values import Place, PlaceKind

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto, TensorProto, ValueInfoProto

    from vexlint.model.model import Model
    from vexlint.model.shapes import Shape


class Node:
    """One node of one graph. `inputs` and `outputs` are value names, "" for an optional one left out; `form` is what it
    shares with nodes written alike."""

    __slots__ = ("domain", "form", "graph", "index", "inputs", "op", "outputs", "proto")

    def __init__(self, proto: NodeProto, graph: Graph, index: int) -> None:
        # what every check asks for is read once: reading a field of a message takes longer than most checks of a node
        self.proto = proto
        self.graph = graph
        self.index = index
        self.inputs: Sequence[str] = proto.input[:]
        self.outputs: Sequence[str] = proto.output[:]
        self.form = graph.forms.of(proto, self.inputs, self.outputs)
        self.op = self.form.op
        self.domain = self.form.domain

    @property
    def name(self) -> str:
        return self.proto.name

    @property
    def schema(self) -> schemas.Operator | None:
        """The operator at the opset that this node's graph imports; None where the standard has none."""
        return self.form.schema

    @property
    def place(self) -> Place:
        first = next((o for o in self.outputs if o), "")
        return Place("node", self.graph.path, self.index, self.proto.domain, self.op, self.name, first)

    def input(self, position: int) -> Value | None:
        """The value at an input position, None where the node leaves it out."""
        names = self.inputs
        if position >= len(names) or not names[position]:
            return None
        return Value(self.graph, names[position])

    def attribute(self, name: str) -> Any:
        """The attribute as a Python value, the schema's default where the node does not write it, else None.

        Strings come as str; tensors and graphs as protos. An attribute that refers to the caller of a function
        (`ref_attr_name`), or of a standard operator one that is not of the schema's type, is unknown here: None.
        """
        return self.form.attribute(name)


class Value:
    """A tensor by name, seen from a graph: who makes it, whether it is a constant, its declared or inferred shape."""

    __slots__ = ("graph", "name")

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    @property
    def home(self) -> Graph | None:
        """The graph that defines the name, this one or one around it."""
        graph: Graph | None = self.graph
        while graph is not None and self.name not in graph.defined:
            graph = graph.parent
        return graph

    @property
    def producer(self) -> Node | None:
        home = self.home
        return home.producers.get(self.name) if home else None

    @property
    def tensor(self) -> TensorProto | None:
        """The TensorProto where the value is an initializer or a Constant's tensor, else None.

        An initializer that is an input too can be replaced by a caller; what is judged is the run that replaces none.
        """
        home = self.home
        if home is None:
            return None
        if self.name in home.initializers:
            return home.initializers[self.name]
        maker = home.producers.get(self.name)
        if maker is None or maker.op != "Constant" or maker.domain:
            return None
        value: TensorProto | None = maker.attribute("value")
        return value

    @property
    def is_constant(self) -> bool:
        """Whether the file holds the value itself, in an initializer or a Constant."""
        home = self.home
        if home is None or self.name in home.initializers:
            return home is not None
        maker = home.producers.get(self.name)
        return maker is not None and (maker.domain, maker.op) == ("", "Constant")

    @property
    def constant(self) -> list[Any] | None:
        """The elements of a constant, row-major, or None where it is none or its payload cannot be read."""
        maker = self.producer
        if maker is not None and maker.op == "Constant" and not maker.domain:
            for name in ("value_int", "value_float"):
                if (single := maker.attribute(name)) is not None:
                    return [single]
            for name in ("value_ints", "value_floats"):
                if (several := maker.attribute(name)) is not None:
                    return list(several)
        tensor = self.tensor
        return None if tensor is None else tensors.values(tensor, self.graph.model.folder)

    @property
    def shape(self) -> Shape | None:
        """Declared where the file declares it, else inferred; None where neither knows it."""
        home = self.home
        return None if home is None else home.shape(self.name)

    @property
    def stated(self) -> Shape | None:
        """The shape that the file itself says, None where only inference could tell."""
        home = self.home
        return None if home is None else home.stated(self.name)


class Graph:
    """The main graph, a subgraph of a control-flow node, or the body of a function that is called."""

    def __init__(self, model: Model, proto: Any, path: str, owner: Node | None, opsets: dict[str, int]) -> None:
        self.model = model
        self.proto: Any = proto  # a GraphProto, or a FunctionProto, whose inputs and outputs are bare names
        self.owner = owner  # the control-flow node that this graph belongs to
        self.parent = owner.graph if owner else None
        self.is_function = not hasattr(proto, "initializer")
        self.path = path
        self.opsets = opsets
        self.forms: Forms = owner.graph.forms if owner else forms.at(opsets, shared=not model.proto.functions)
        self.nodes = [Node(n, self, i) for i, n in enumerate(proto.node)]
        self.holders: list[tuple[Node, AttributeProto]] = []  # attributes that hold tensors; `Model` fills it
        self.inner: list[Graph] = []  # the subgraphs of its nodes, likewise

    def _entries(self, field: str) -> dict[str, ValueInfoProto]:
        return {} if self.is_function else {v.name: v for v in getattr(self.proto, field)}

    @cached_property
    def initializers(self) -> dict[str, TensorProto]:
        return {} if self.is_function else {t.name: t for t in self.proto.initializer}

    @cached_property
    def inputs(self) -> dict[str, ValueInfoProto]:
        """Declared inputs that a caller feeds: those an initializer of the same name fills are left out."""
        return {k: v for k, v in self._entries("input").items() if k not in self.initializers}

    @cached_property
    def outputs(self) -> dict[str, ValueInfoProto]:
        return self._entries("output")

    @cached_property
    def declared(self) -> dict[str, ValueInfoProto]:
        """Every value whose type the file declares."""
        return self._entries("value_info") | self._entries("input") | self.outputs

    @cached_property
    def producers(self) -> dict[str, Node]:
        return {name: node for node in self.nodes for name in node.outputs if name}

    @cached_property
    def defined(self) -> frozenset[str]:
        sparse = [] if self.is_function else [s.values.name for s in self.proto.sparse_initializer]
        inputs = self.proto.input if self.is_function else self._entries("input")
        return frozenset(self.producers).union(self.initializers, sparse, inputs)

    @cached_property
    def captured(self) -> dict[int, set[str]]:
        """Node index -> the values of this graph that the node's subgraphs, at any depth, read from here."""
        found: dict[int, set[str]] = {}
        for inner in self.inner:
            if inner.owner is not None:
                names = {n for node in inner.nodes for n in node.inputs} | set(inner.outputs)
                names = names.union(*inner.captured.values()) - inner.defined
                found.setdefault(inner.owner.index, set()).update(names - {""})
        return found

    @cached_property
    def read(self) -> Set[str]:
        """Every value that a node of this graph reads, itself or in its subgraphs, made here or around it."""
        found = set[str]().union(*self.captured.values())
        for node in self.nodes:
            found.update(node.inputs)
        found.discard("")
        return found

    @cached_property
    def results(self) -> list[str]:
        """The names of the graph's outputs."""
        return list(self.proto.output) if self.is_function else [entry.name for entry in self.proto.output]

    def reads(self, node: Node) -> list[str]:
        """The values a node depends on: its inputs, and what its subgraphs read from around them."""
        names = [name for name in node.inputs if name]
        captured = self.captured.get(node.index)
        return names + sorted(captured) if captured else names

    def upstream(self, *names: str) -> Iterator[Node]:
        """The nodes of this graph that these values depend on, nearest first."""
        seen, row = set[int](), list(names)
        while row:
            makers = [self.producers[n] for n in row if n in self.producers]
            fresh = {m.index: m for m in makers if m.index not in seen}
            seen.update(fresh)
            yield from fresh.values()
            row = [n for maker in fresh.values() for n in self.reads(maker)]

    @cached_property
    def readers(self) -> dict[str, list[Node]]:
        """Value -> the nodes of this graph that read it, themselves or in their subgraphs."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in set(self.reads(node)):
                found.setdefault(name, []).append(node)
        return found

    def downstream(self, names: Iterable[str]) -> set[str]:
        """The values of this graph that depend on one of these, with these: one walk, however many they are."""
        seen = set(names)
        row = list(seen)
        while row:
            made = {o for name in row for node in self.readers.get(name, ()) for o in node.outputs if o}
            row = list(made - seen)
            seen.update(row)
        return seen

    def depends(self, name: str, source: str) -> bool:
        """Whether a value depends on another one of this graph, or is it."""
        return name in self.downstream([source])

    def shape(self, name: str) -> Shape | None:
        """See `Value.shape`. Shapes of constants come from their tensors; what the walk knows needs no inference."""
        return self.stated(name) or self._walked(name) or self.model.inferred.get((self.path, name))

    def _walked(self, name: str) -> Shape | None:
        """The shape of a value of the main graph where the walk found every size."""
        from vexlint.model.shapes import Shape

        kind = self.model.flow.values.get(name) if self is self.model.graph else None
        element = schemas.element_name(kind.type) if kind is not None else ""
        if kind is None or not element or kind.dims is None or None in kind.dims:
            return None
        return Shape(element, kind.dims)

    def stated(self, name: str) -> Shape | None:
        """The shape that the file itself says, by a declaration or a tensor: never starts shape inference."""
        from vexlint.model.shapes import declared_shape

        if name in self.initializers:
            return declared_shape(self.initializers[name])
        # the few inputs and outputs first: `declared` looks at every value of the graph
        entry = self.inputs.get(name) or self.outputs.get(name) or self.declared.get(name)
        if entry is not None and (shape := declared_shape(entry)) is not None:
            return shape
        maker = self.producers.get(name)
        tensor = (
            maker.attribute("value") if maker is not None and (maker.domain, maker.op) == ("", "Constant") else None
        )
        return None if tensor is None else declared_shape(tensor)


def value_place(kind: PlaceKind, name: str, axis: int | None = None, graph: str = "graph") -> Place:
    """The place of a graph input, output, initializer or import."""
    return Place(kind, graph, name=name, value=name if kind != "import" else "", axis=axis)
