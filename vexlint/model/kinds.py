"""What flows through a model: the type and the sizes of what every node reads, found by walking forward once.

ONNX's own inference is native code in a child process, stops at subgraphs' doors and says nothing of function bodies.
This walk is neither: it knows types, by the type variables of the schemas, and sizes, by tables of operators; it goes
through subgraphs and calls. What it cannot know is unknown, "" or None, and a check is silent about it. Sizes come from
the inputs, the weights and the nodes alone: of what is declared inside only the rank is believed.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from vexlint.model import integers, schemas, sizes, tensors
from vexlint.model.forms import Way
from vexlint.model.integers import Numbers
from vexlint.model.signatures import Dims, Misfit

if TYPE_CHECKING:
    from vexlint.model.graph import Graph, Node
    from vexlint.model.model import Model

DEEP = 50  # graphs within graphs, calls among them, that are followed; bodies below are walked without their callers
MANY = 8  # ways to call one function that are followed, the first half with sizes; past them its outputs are unknown

TENSORS = {number: f"tensor({name})" for number, name in tensors.DTYPES.items()}
# Attributes that say the element type of an output
TYPE_ATTRIBUTES = {
    "Cast": "to", "RandomNormal": "dtype", "RandomUniform": "dtype", "RandomNormalLike": "dtype",
    "RandomUniformLike": "dtype", "EyeLike": "dtype", "Bernoulli": "dtype", "Multinomial": "dtype",
    "QuantizeLinear": "output_dtype", "DequantizeLinear": "output_dtype", "HannWindow": "output_datatype",
    "HammingWindow": "output_datatype", "BlackmanWindow": "output_datatype", "MelWeightMatrix": "output_datatype",
    "BitCast": "to",
}  # fmt: skip
# Attributes of Constant that hold numbers or words -> their type, and the field of the attribute
LISTED = {
    "value_int": ("tensor(int64)", "i"), "value_ints": ("tensor(int64)", "ints"),
    "value_float": ("tensor(float)", "f"), "value_floats": ("tensor(float)", "floats"),
    "value_string": ("tensor(string)", "s"), "value_strings": ("tensor(string)", "strings"),
}  # fmt: skip
LIKE = ("RandomNormalLike", "RandomUniformLike", "EyeLike", "Bernoulli")  # without it, the type of what they read


class Kind(NamedTuple):
    """A type as the schemas write it ("tensor(float)", "seq(tensor(int64))"), "" where unknown; sizes, None where not
    even the rank is known; the numbers of a short list or scalar of whole ones, where they are known."""

    type: str
    dims: Dims | None
    value: Numbers | None = None

    @property
    def rank(self) -> int | None:
        return None if self.dims is None else len(self.dims)


class Use(NamedTuple):
    """One node and the kinds of its inputs, by position; a node of a function has one for each way it is called. Nodes
    written alike with inputs of the same kinds share the `way`."""

    node: Node
    schema: schemas.Operator | None
    inputs: tuple[Kind, ...]
    way: Way


Scope = MutableMapping[str, Kind]


class Flow(NamedTuple):
    """What a walk found: every use, the nodes whose sizes cannot go together and why, the main graph's values."""

    uses: list[Use]
    misfits: list[tuple[Use, str]]
    values: Scope


UNKNOWN = Kind("", None)
FunctionKey = tuple[str, str, str]  # domain, name, overload


@dataclass(slots=True)
class _Walk:
    """What one walk has found."""

    uses: list[Use] = field(default_factory=list)
    misfits: list[tuple[Use, str]] = field(default_factory=list)
    bodies: dict[FunctionKey, Graph] = field(default_factory=dict)
    calls: dict[FunctionKey, dict[tuple[Kind, ...], list[Kind]]] = field(default_factory=dict)
    depth: int = 0
    later: list[FunctionKey] = field(default_factory=list)


def walk(model: Model) -> Flow:
    """Every node that can run with what it reads, in the order of the file, subgraphs after their node's place."""
    state = _Walk()
    for graph in model.graphs:
        if graph.is_function:
            body = graph.proto
            state.bodies[schemas.plain_domain(body.domain), body.name, body.overload] = graph
    values = _entries(model.graph, trusted=True)
    _graph(state, model.graph, values)
    while state.later:
        key = state.later.pop()
        if key not in state.calls:
            _call(state, key, ())
    return Flow(state.uses, state.misfits, values)


def agreed(one: tuple[Kind, ...], other: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """What two ways to call a node have in common, position by position."""
    return tuple(
        a if a == b else Kind(a.type if a.type == b.type else "", _common(a.dims, b.dims))
        for a, b in zip(one, other, strict=False)
    )


def _common(one: Dims | None, other: Dims | None) -> Dims | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


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


def declared_kind(entry: Any, sized: bool = False) -> Kind:
    """What a ValueInfoProto declares: type and rank, where `sized` the sizes too; 0 and below are written for "any"."""
    proto = entry.type
    if not proto.HasField("tensor_type") or not proto.tensor_type.HasField("shape"):
        return Kind(type_text(proto), None)
    dims = proto.tensor_type.shape.dim
    return Kind(type_text(proto), tuple([d.dim_value if sized and d.dim_value > 0 else None for d in dims]))


def tensor_kind(tensor: Any) -> Kind:
    """The kind of a TensorProto, with its numbers where they are few, whole and at hand."""
    kind, dims = tensor.data_type, tuple(tensor.dims[:])  # a list at once: a repeated field is slow to iterate
    if kind not in (6, 7) or len(dims) > 1 or sum(dims) > integers.MOST:
        return Kind(TENSORS.get(kind, ""), dims)
    found = tensors.values(tensor)
    return Kind(TENSORS[kind], dims, tuple(found) if found is not None else None)


def _entries(graph: Graph, trusted: bool = False) -> dict[str, Kind]:
    """The kinds that a GraphProto declares of its inputs and initializers; sizes of inputs where it is `trusted`: those
    of a loop's body may hold for the first turn only."""
    known = {entry.name: declared_kind(entry, trusted) for entry in graph.proto.input}
    known |= {name: tensor_kind(tensor) for name, tensor in graph.initializers.items()}
    for sparse in graph.proto.sparse_initializer:
        known[sparse.values.name] = Kind(tensor_kind(sparse.values).type, tuple(sparse.dims))
    return known


def _graph(state: _Walk, graph: Graph, known: Scope) -> list[Kind]:
    """Walks a graph whose entries are known; adds what its nodes make; gives the kinds of its outputs."""
    state.depth += 1
    inner: dict[int, list[Graph]] = {}
    for sub in graph.inner:
        if sub.owner is not None:
            inner.setdefault(sub.owner.index, []).append(sub)
    for node in graph.nodes:
        inputs = tuple([known.get(name, UNKNOWN) for name in node.inputs])
        form = node.form
        if (way := form.ways.get(inputs)) is None:
            way = form.ways[inputs] = Way()
        use = Use(node, form.arguments, inputs, way)
        state.uses.append(use)
        if way.made is not None:
            made, flaw = way.made
            if flaw:
                state.misfits.append((use, flaw))
        else:
            made = _control(state, use, inner[node.index], known) if node.index in inner else _made(state, use)
        for name, kind in zip(node.outputs, made, strict=False):
            if name:
                known[name] = kind if kind.type and kind.dims is not None else _or_declared(graph, name, kind)
    state.depth -= 1
    return [known.get(name, UNKNOWN) for name in graph.results]


def _or_declared(graph: Graph, name: str, kind: Kind) -> Kind:
    """What is known of a value, the rest as the file declares it."""
    entry = graph.declared.get(name)
    said = declared_kind(entry) if entry is not None else UNKNOWN
    return Kind(kind.type or said.type, said.dims if kind.dims is None else kind.dims, kind.value)


def _made(state: _Walk, use: Use) -> list[Kind]:
    """The kinds of what a node without subgraphs makes."""
    node, schema, inputs, way = use
    count = len(node.outputs)
    if state.bodies and (key := (node.domain, node.op, node.proto.overload)) in state.bodies:
        return _call(state, key, inputs)
    if schema is None:
        return [UNKNOWN] * count
    if node.op == "Constant":
        return [_constant(node)]
    made, flaw = _computed(use, schema, count)
    if node.op not in sizes.BY_CONSTANTS and (node.domain, node.op) not in node.graph.model.functions:
        way.made = made, flaw
    if flaw:
        state.misfits.append((use, flaw))
    return made


def _computed(use: Use, schema: schemas.Operator, count: int) -> tuple[list[Kind], str]:
    """What a standard node makes, and why its inputs cannot go together ("" where they can)."""
    node, _, inputs, _ = use
    types = list(output_types(schema, [kind.type for kind in inputs], count, _said_type(node, inputs)))
    if len(inputs) < schema.min_inputs or schema.domain.startswith(schemas.CONTRIB):
        return [Kind(kind, None) for kind in types], ""  # VEX111 says what is missing
    try:
        made = sizes.outputs(node, inputs, count)
    except Misfit as misfit:
        return [Kind(kind, None) for kind in types], str(misfit)
    kinds = [Kind(t, dims) for t, dims in zip(types, made, strict=True)]
    if kinds and node.op in integers.STEPS and (dims := kinds[0].dims) is not None and len(dims) < 2:
        kinds[0] = kinds[0]._replace(value=integers.followed(node, inputs))
    return kinds, ""


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
    if op in ("SplitToSequence", "SequenceConstruct"):
        return f"seq({inputs[0].type})" if inputs and inputs[0].type else ""
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
            return Kind(tensor_kind(attribute.sparse_tensor.values).type, tuple(attribute.sparse_tensor.dims))
        if attribute.name in LISTED:
            kind, held = LISTED[attribute.name]
            values = getattr(attribute, held)
            listed = tuple(values) if attribute.name.endswith("s") else (values,)
            dims = (len(listed),) if attribute.name.endswith("s") else ()
            return Kind(kind, dims, listed if held.startswith("i") and len(listed) <= integers.MOST else None)
    return UNKNOWN


def _call(state: _Walk, key: FunctionKey, inputs: tuple[Kind, ...]) -> list[Kind]:
    """What a call of a function makes; each way of calling is walked once, a function in itself not at all."""
    body = state.bodies[key]
    if state.depth >= DEEP:
        state.later.append(key)
        return [UNKNOWN] * len(body.proto.output)
    ways = state.calls.setdefault(key, {})
    if inputs not in ways and len(ways) >= MANY // 2:
        inputs = tuple([Kind(kind.type, kind.dims and (None,) * len(kind.dims)) for kind in inputs])
    if inputs not in ways:
        if len(ways) >= MANY:
            return [UNKNOWN] * len(body.proto.output)
        ways[inputs] = [UNKNOWN] * len(body.proto.output)  # what a call of itself sees
        ways[inputs] = _graph(state, body, dict(zip(body.proto.input, inputs, strict=False)))
    return ways[inputs]


def _control(state: _Walk, use: Use, inner: list[Graph], known: Mapping[str, Kind]) -> list[Kind]:
    """What If, Loop and Scan make; of loops the type only, for a rank may change from turn to turn."""
    node, schema, inputs, _ = use
    results = []
    if schema is not None and (flaw := _computed(use, schema, 0)[1]):
        state.misfits.append((use, flaw))
    for graph in inner:
        entries = _entries(graph)
        for position, name in enumerate(v.name for v in graph.proto.input):
            if node.op in ("Loop", "Scan") and not entries[name].type and position < len(inputs):
                entries[name] = Kind(inputs[position].type, None)
        results.append(_graph(state, graph, ChainMap(entries, known)))  # type: ignore[arg-type]
    count = len(node.outputs)
    if node.op == "If" and len(results) == 2:
        return list(agreed(tuple(results[0]), tuple(results[1])))
    if node.op == "Loop" and results:
        carried = max(len(inputs) - 2, 0)
        kinds = results[0][1:]
        return [Kind(k.type if i < carried or k.type.startswith("tensor") else "", None) for i, k in enumerate(kinds)]
    if node.op == "Scan" and results:
        return [Kind(k.type, None) for k in results[0]]
    return [UNKNOWN] * count
