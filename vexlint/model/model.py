"""The read-only view over a ModelProto: graphs at every depth, their nodes and values.

Everything beyond the list of nodes is found when it is first asked for, so that a check pays for what it looks at.
Only what can run is in the view: the main graph, its subgraphs, and the functions that are called from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint.model import forms, schemas, tensors
from vexlint.model.forms import Form, Forms
from vexlint.model.schemas import plain_domain
from vexlint.values import Place, PlaceKind

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

    from vexlint.model.forms import Way
    from vexlint.model.heads import Head
    from vexlint.model.held import Held
    from vexlint.model.kinds import Flow, Kind, Use
    from vexlint.model.shapes import Shape
    from vexlint.model.wire import Stripped

OperatorKey = tuple[str, str]  # (domain, op_type); the default domain is ""


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


class Model:
    """One file. `path` is where it was read from; `folder` where its external data lies; `stripped` says where in the
    file the payloads are that `proto` lacks (None where it lacks none)."""

    def __init__(self, proto: ModelProto, path: Path, stripped: Stripped | None = None) -> None:
        self.proto = proto
        self.path = path
        self.stripped = stripped
        self.folder = path.parent
        self.stopped: str | None = None
        self.judged: dict[str, Any] = {}  # by target: kept here, so that it goes when the model goes
        self.opsets = {plain_domain(o.domain): o.version for o in proto.opset_import}
        if not self.opsets and proto.ir_version < 3:
            self.opsets = {"": 1}  # IR 1 and 2 had no imports: operators were those of opset 1
        self.graph = Graph(self, proto.graph, "graph", None, self.opsets)
        self.functions = {(plain_domain(f.domain), f.name): f for f in proto.functions}
        self.graphs = list(self._walk())

    def _walk(self) -> Iterator[Graph]:
        """The graphs that can run, each before what is inside it; functions may call each other without end."""
        bodies = {(plain_domain(f.domain), f.name, f.overload): f for f in self.proto.functions}
        open_graphs = [iter([self.graph])]
        while open_graphs:
            graph = next(open_graphs[-1], None)
            if graph is None:
                open_graphs.pop()
            else:
                yield graph
                open_graphs.append(self._inside(graph, bodies))

    def _inside(self, graph: Graph, bodies: dict[tuple[str, str, str], FunctionProto]) -> Iterator[Graph]:
        """The subgraphs of a graph's nodes, and the functions (left in `bodies`) that they are the first to call."""
        for node in graph.nodes:
            for attribute in node.proto.attribute if node.form.holds else ():
                if attribute.HasField("t") or attribute.tensors:
                    graph.holders.append((node, attribute))
                if attribute.type in (0, 5, 10):  # none written (IR 1), GRAPH, GRAPHS
                    for label, proto in _subgraphs(attribute):
                        path = f"{graph.path}/node[{node.index}]/{label}"
                        graph.inner.append(Graph(self, proto, path, node, graph.opsets))
                        yield graph.inner[-1]
            if bodies and (body := bodies.pop((node.domain, node.op, node.proto.overload), None)) is not None:
                imports = {plain_domain(o.domain): o.version for o in body.opset_import}
                path = f"function {body.domain}::{body.name}" + (f":{body.overload}" if body.overload else "")
                yield Graph(self, body, path, None, imports or self.opsets)

    @cached_property
    def operators(self) -> dict[OperatorKey, list[Node]]:
        """(domain, operator) -> its nodes at every depth, in file order."""
        groups: dict[OperatorKey, list[Node]] = {}
        for graph in self.graphs:
            for node in graph.nodes:
                groups.setdefault((node.domain, node.op), []).append(node)
        return groups

    @cached_property
    def forms(self) -> dict[OperatorKey, dict[Form, Node]]:
        """(domain, operator) -> how its nodes are written, each with the first node that is written so."""
        groups = self.operators.items()
        return {operator: {node.form: node for node in reversed(nodes)} for operator, nodes in groups}

    def node_at(self, place: Place) -> Node:
        """The node at a place of this same model."""
        graph = next(g for g in self.graphs if g.path == place.graph)
        return graph.nodes[place.index or 0]

    def is_foreign(self, domain: str, op: str) -> bool:
        """Whether an operator is neither the standard's, at any opset, nor a function of the file."""
        return not schemas.versions(domain, op) and (domain, op) not in self.functions

    def nodes(self, *ops: str, domain: str = "") -> list[Node]:
        """The nodes of these operators of one domain at every depth: a look-up, not a walk."""
        return [node for op in ops for node in self.operators.get((domain, op), ())]

    @cached_property
    def held(self) -> list[Held]:
        """Every tensor of the graphs that can run."""
        from vexlint.model.held import everything

        return list(everything(self))

    @cached_property
    def uses(self) -> list[Use]:
        """Every node with the types and sizes of what it reads, as far as one walk tells (see `kinds.walk`)."""
        return self.flow.uses

    @cached_property
    def flow(self) -> Flow:
        """What one walk forward finds: uses, sizes that cannot go together, values."""
        from vexlint.model.kinds import walk

        return walk(self)

    @cached_property
    def ways(self) -> dict[Way, Use]:
        """The first use of those that are written alike and read the same kinds."""
        return {use.way: use for use in reversed(self.uses)}

    @cached_property
    def types_read(self) -> dict[OperatorKey, set[str]]:
        """(domain, operator) -> the element types of what its nodes read, as far as `uses` has them."""
        found: dict[OperatorKey, set[str]] = {}
        for node, _, inputs, _ in self.ways.values():
            found.setdefault((node.domain, node.op), set()).update([schemas.element_name(kind.type) for kind in inputs])
        return found

    @cached_property
    def reads(self) -> dict[Node, tuple[Kind, ...]]:
        """What each node reads, as `uses` has it; of a node called in several ways what all of them agree on."""
        from vexlint.model.kinds import agreed

        found: dict[Node, tuple[Kind, ...]] = {}
        for node, _, inputs, _ in self.uses:
            found[node] = agreed(found[node], inputs) if node in found else inputs
        return found

    @cached_property
    def heads(self) -> list[Head]:
        """The detector heads among the outputs: see `heads.find`."""
        from vexlint.model.heads import find

        return find(self)

    @cached_property
    def metadata(self) -> dict[str, str]:
        return {entry.key: entry.value for entry in self.proto.metadata_props}

    @cached_property
    def inferred(self) -> dict[tuple[str, str], Shape]:
        """(graph path, value) -> shape, as ONNX shape inference finds it in a child process.

        What inference could not reach is not in it. Where the child hung or crashed nothing is, and `stopped` says
        so: the caller must report it, for then checks judged without shapes.
        """
        return self._inferred(self.proto)

    @cached_property
    def derived(self) -> dict[tuple[str, str], Shape]:
        """As `inferred`, from the inputs and weights alone: what the file declares further on is left out."""
        from vexlint.model.shapes import undeclared

        return self._inferred(undeclared(self.proto))

    def _inferred(self, proto: ModelProto) -> dict[tuple[str, str], Shape]:
        from vexlint.model import native
        from vexlint.model.shapes import infer

        try:
            return infer(proto)
        except native.Stopped as error:
            self.stopped = str(error)
            return {}


def _subgraphs(attribute: AttributeProto) -> Iterator[tuple[str, GraphProto]]:
    if attribute.HasField("g"):
        yield attribute.name, attribute.g
    for index, graph in enumerate(attribute.graphs):
        yield f"{attribute.name}[{index}]", graph


def value_place(kind: PlaceKind, name: str, axis: int | None = None, graph: str = "graph") -> Place:
    """The place of a graph input, output, initializer or import."""
    return Place(kind, graph, name=name, value=name if kind != "import" else "", axis=axis)
