"""The read-only view over a ModelProto: its graphs, its operators, and what is found of the whole file once.

Only what can run is in the view: the main graph, its subgraphs, and the functions that are called from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vexlint.model import schemas
from vexlint.model.graph import Graph, Node
from vexlint.model.schemas import plain_domain
from vexlint.values import Place

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto

    from vexlint.model.forms import Form, Way
    from vexlint.model.heads import Head
    from vexlint.model.held import Held
    from vexlint.model.kinds import Flow, Kind, Use
    from vexlint.model.shapes import Shape
    from vexlint.model.wire import Stripped

OperatorKey = tuple[str, str]  # (domain, op_type); the default domain is ""


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

    def release(self) -> None:
        """Lets go of everything: graphs and nodes know each other, and a collector would have to look for them. The
        model is of no use after that."""
        for graph in self.graphs:
            graph.__dict__.clear()
        self.__dict__.clear()

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
