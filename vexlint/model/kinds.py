"""What flows through a model: the type and the rank of what every node reads, found by walking forward once.

ONNX's own inference is native code in a child process, stops at subgraphs' doors and says nothing of function bodies.
This walk is neither: it knows types, by the type variables of the schemas, and ranks, by a table of operators; it
goes through subgraphs and calls. What it cannot know is unknown, "" or None, and a check is silent about it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from vexlint.model import ranks, schemas, tensors

if TYPE_CHECKING:
    from vexlint.model.model import Graph, Model, Node

DEEP = 50  # graphs within graphs, calls among them, that are followed; bodies below are walked without their callers
MANY = 8  # ways to call one function that are followed; past them its outputs are unknown

# Attributes that say the element type of an output
TYPE_ATTRIBUTES = {
    "Cast": "to", "RandomNormal": "dtype", "RandomUniform": "dtype", "RandomNormalLike": "dtype",
    "RandomUniformLike": "dtype", "EyeLike": "dtype", "Bernoulli": "dtype", "Multinomial": "dtype",
    "QuantizeLinear": "output_dtype", "DequantizeLinear": "output_dtype", "HannWindow": "output_datatype",
    "HammingWindow": "output_datatype", "BlackmanWindow": "output_datatype", "MelWeightMatrix": "output_datatype",
    "BitCast": "to",
}  # fmt: skip
LIKE = ("RandomNormalLike", "RandomUniformLike", "EyeLike", "Bernoulli")  # without it, the type of what they read


class Kind(NamedTuple):
    """A type as the schemas write it ("tensor(float)", "seq(tensor(int64))"), "" where unknown; a rank, or None."""

    type: str
    rank: int | None


class Use(NamedTuple):
    """One node and the kinds of its inputs, by position; a node of a function has one for each way it is called."""

    node: Node
    schema: schemas.Operator | None
    inputs: tuple[Kind, ...]


UNKNOWN = Kind("", None)
Scope = MutableMapping[str, Kind]
FunctionKey = tuple[str, str, str]  # domain, name, overload


@dataclass(slots=True)
class _Walk:
    """What one walk has found. `made` remembers what an operator makes of its inputs, where no attribute has a say."""

    uses: list[Use] = field(default_factory=list)
    bodies: dict[FunctionKey, Graph] = field(default_factory=dict)
    calls: dict[FunctionKey, dict[tuple[Kind, ...], list[Kind]]] = field(default_factory=dict)
    made: dict[Any, list[Kind]] = field(default_factory=dict)
    depth: int = 0
    later: list[FunctionKey] = field(default_factory=list)


def walk(model: Model) -> list[Use]:
    """Every node that can run with what it reads, in the order of the file, subgraphs after their node's place."""
    state = _Walk()
    for graph in model.graphs:
        if graph.is_function:
            body = graph.proto
            state.bodies[schemas.plain_domain(body.domain), body.name, body.overload] = graph
    _graph(state, model.graph, _entries(model.graph))
    while state.later:
        key = state.later.pop()
        if key not in state.calls:
            _call(state, key, ())
    return state.uses


def agreed(one: tuple[Kind, ...], other: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """What two ways to call a node have in common, position by position."""
    return tuple(
        Kind(a.type if a.type == b.type else "", a.rank if a.rank == b.rank else None)
        for a, b in zip(one, other, strict=False)
    )


def type_text(proto: Any) -> str:
    """A TypeProto as the schemas write it, "" where it does not say."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        number = getattr(proto, kind).elem_type
        name = "tensor" if kind == "tensor_type" else "sparse_tensor"
        return f"{name}({tensors.DTYPES[number]})" if number in tensors.DTYPES else ""
    if kind in ("sequence_type", "optional_type"):
        inner = type_text(getattr(proto, kind).elem_type)
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})" if inner else ""
    return ""


def declared_kind(entry: Any) -> Kind:
    """What a ValueInfoProto declares."""
    proto = entry.type
    has_rank = proto.HasField("tensor_type") and proto.tensor_type.HasField("shape")
    return Kind(type_text(proto), len(proto.tensor_type.shape.dim) if has_rank else None)


def tensor_kind(tensor: Any) -> Kind:
    """The kind of a TensorProto."""
    name = tensors.DTYPES.get(tensor.data_type)
    return Kind(f"tensor({name})" if name else "", len(tensor.dims))


def _entries(graph: Graph) -> dict[str, Kind]:
    """The kinds that a GraphProto declares of its inputs and initializers."""
    known = {entry.name: declared_kind(entry) for entry in graph.proto.input}
    known |= {name: tensor_kind(tensor) for name, tensor in graph.initializers.items()}
    for sparse in graph.proto.sparse_initializer:
        known[sparse.values.name] = Kind(tensor_kind(sparse.values).type, len(sparse.dims))
    return known


def _graph(state: _Walk, graph: Graph, known: Scope) -> list[Kind]:
    """Walks a graph whose entries are known; adds what its nodes make; gives the kinds of its outputs."""
    state.depth += 1
    inner: dict[int, list[Graph]] = {}
    for sub in graph.inner:
        if sub.owner is not None:
            inner.setdefault(sub.owner.index, []).append(sub)
    schema_of: dict[tuple[str, str], schemas.Operator | None] = {}  # a graph has one set of opsets
    for node in graph.nodes:
        proto = node.proto
        inputs = tuple([known.get(name, UNKNOWN) for name in proto.input])
        name_of = (proto.domain, proto.op_type)
        if name_of not in schema_of:
            schema_of[name_of] = node.schema or schemas.contrib(*name_of)
        use = Use(node, schema_of[name_of], inputs)
        state.uses.append(use)
        if inner and node.index in inner:
            made = _control(state, node, inputs, inner[node.index], known)
        else:
            made = _made(state, use)
        for name, kind in zip(proto.output, made, strict=False):
            if not name:
                continue
            known[name] = kind if kind.type and kind.rank is not None else _or_declared(graph, name, kind)
    state.depth -= 1
    return [known.get(name, UNKNOWN) for name in graph.results]


def _or_declared(graph: Graph, name: str, kind: Kind) -> Kind:
    """What is known of a value, the rest as the file declares it."""
    entry = graph.declared.get(name)
    said = declared_kind(entry) if entry is not None else UNKNOWN
    return Kind(kind.type or said.type, said.rank if kind.rank is None else kind.rank)


def _made(state: _Walk, use: Use) -> list[Kind]:
    """The kinds of what a node without subgraphs makes."""
    node, schema, inputs = use
    count = len(node.proto.output)
    if state.bodies and (key := (node.domain, node.op, node.proto.overload)) in state.bodies:
        return _call(state, key, inputs)
    if schema is None:
        return [UNKNOWN] * count
    op = schema.name
    if op == "Constant":
        return [_constant(node)]
    by_kinds = op in ranks.BY_RANKS and op not in TYPE_ATTRIBUTES
    way = (id(schema), count, inputs)
    if by_kinds and (known := state.made.get(way)) is not None:
        return known
    types = output_types(schema, [kind.type for kind in inputs], count, _said_type(node, inputs))
    contrib = schema.domain.startswith(schemas.CONTRIB)
    rank = [None] * count if contrib else ranks.outputs(node, [kind.rank for kind in inputs], count)
    made = [Kind(t, r) for t, r in zip(types, rank, strict=True)]
    if by_kinds:
        state.made[way] = made
    return made


def output_types(schema: schemas.Operator, inputs: list[str], count: int, says: str = "") -> Iterator[str]:
    """The types of `count` outputs by the schema's type variables; `says` is what an attribute says of the first."""
    bound: dict[str, str] = {}
    for formal, kind in formals(schema.inputs, inputs):
        if kind and formal.type_var and formal.homogeneous:
            bound.setdefault(formal.type_var, kind)
    for position in range(count):
        if not schema.outputs:
            yield ""
            continue
        formal = schema.outputs[min(position, len(schema.outputs) - 1)]
        if not formal.homogeneous:
            yield ""
        elif says and position == 0:
            yield says
        else:
            only = formal.types[0] if len(formal.types) == 1 else ""
            yield bound.get(formal.type_var, only) if formal.type_var else only


def formals(declared: tuple[schemas.Formal, ...], actual: list[Any]) -> Iterator[tuple[schemas.Formal, Any]]:
    """Each actual argument with what the schema declares there; the last variadic one takes all that remain."""
    for position, argument in enumerate(actual):
        if position < len(declared):
            yield declared[position], argument
        elif declared and declared[-1].option == "variadic":
            yield declared[-1], argument


def _said_type(node: Node, inputs: tuple[Kind, ...]) -> str:
    """The type of the first output that the node itself says, "" where schema and inputs say it."""
    op = node.op
    if op == "ConstantOfShape":
        tensor = node.attribute("value")
        return "tensor(float)" if tensor is None else tensor_kind(tensor).type
    if op not in TYPE_ATTRIBUTES:
        return ""
    number = node.attribute(TYPE_ATTRIBUTES[op])
    if isinstance(number, int) and number in tensors.DTYPES:
        return f"tensor({tensors.DTYPES[number]})"
    if op == "QuantizeLinear" and len(inputs) < 3:
        return "tensor(uint8)"
    return inputs[0].type if op in LIKE and inputs and number is None else ""


def _constant(node: Node) -> Kind:
    for attribute in node.proto.attribute:
        if attribute.ref_attr_name:
            return UNKNOWN
        if attribute.name == "value":
            return tensor_kind(attribute.t)
        if attribute.name == "sparse_value":
            return Kind(tensor_kind(attribute.sparse_tensor.values).type, len(attribute.sparse_tensor.dims))
        for word, name in (("float", "float"), ("int", "int64"), ("string", "string")):
            if attribute.name in (f"value_{word}", f"value_{word}s"):
                return Kind(f"tensor({name})", int(attribute.name.endswith("s")))
    return UNKNOWN


def _call(state: _Walk, key: FunctionKey, inputs: tuple[Kind, ...]) -> list[Kind]:
    """What a call of a function makes; each way of calling is walked once, a function in itself not at all."""
    body = state.bodies[key]
    if state.depth >= DEEP:
        state.later.append(key)
        return [UNKNOWN] * len(body.proto.output)
    ways = state.calls.setdefault(key, {})
    if inputs not in ways:
        if len(ways) >= MANY:
            return [UNKNOWN] * len(body.proto.output)
        ways[inputs] = [UNKNOWN] * len(body.proto.output)  # what a call of itself sees
        ways[inputs] = _graph(state, body, dict(zip(body.proto.input, inputs, strict=False)))
    return ways[inputs]


def _control(
    state: _Walk, node: Node, inputs: tuple[Kind, ...], inner: list[Graph], known: Mapping[str, Kind]
) -> list[Kind]:
    """What If, Loop and Scan make; of loops the type only, for a rank may change from turn to turn."""
    results = []
    for graph in inner:
        entries = _entries(graph)
        for position, name in enumerate(v.name for v in graph.proto.input):
            if node.op in ("Loop", "Scan") and not entries[name].type and position < len(inputs):
                entries[name] = Kind(inputs[position].type, None)
        results.append(_graph(state, graph, ChainMap(entries, known)))  # type: ignore[arg-type]
    count = len(node.proto.output)
    if node.op == "If" and len(results) == 2:
        return list(agreed(tuple(results[0]), tuple(results[1])))
    if node.op == "Loop" and results:
        carried = max(len(inputs) - 2, 0)
        kinds = results[0][1:]
        return [Kind(k.type if i < carried or k.type.startswith("tensor") else "", None) for i, k in enumerate(kinds)]
    if node.op == "Scan" and results:
        return [Kind(k.type, None) for k in results[0]]
    return [UNKNOWN] * count
