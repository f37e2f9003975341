"""Fifty-three models, each with one feature of ONNX that tools lose, and how to see whether a file still has it.

Where a feature is a tensor its payload is large enough to be left on disk. `kept` looks for the feature in whatever a
tool made of the model, and may raise where the tool took away even its node. The models are built from names, types
and numbers that are theirs alone: nothing here is anybody's network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
WIDTH = 512  # floats of a tensor: 2 KiB
UNKNOWN = b"\xfa\x3e\x03abc"  # field 1007, which ONNX does not have (yet)
KEY, TEXT = "k", "v"  # of every metadata entry

Kept = Callable[[ModelProto], bool]


@dataclass(frozen=True, slots=True)
class Feature:
    """A model with a feature. `external` says that its one initializer is to be saved outside the file."""

    name: str
    model: ModelProto
    kept: Kept
    external: bool = False


FEATURES: dict[str, Callable[[], Feature]] = {}
Maker = Callable[[], tuple[ModelProto, Kept]]


def feature(name: str, external: bool = False) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        FEATURES[name] = lambda: Feature(name, *make(), external)
        return make

    return add


def value(name: str, shape: Sequence[int | str] | None = (1, WIDTH), data_type: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, data_type, shape)


def weights(name: str = "w", width: int = WIDTH) -> TensorProto:
    return numpy_helper.from_array(np.linspace(0.5, 2, width, dtype=np.float32), name)


def model(
    nodes: Sequence[NodeProto] = (),
    inputs: Sequence[ValueInfoProto] = (),
    outputs: Sequence[ValueInfoProto] = (),
    initializers: Sequence[TensorProto] = (),
    opsets: Sequence[tuple[str, int]] = (("", 17),),
    ir: int = 8,
    functions: Sequence[FunctionProto] = (),
    **more: Any,
) -> ModelProto:
    """x -> Relu -> Sigmoid -> y, but for what is given."""
    usual = [node("Relu", "x", "t", name="n0"), node("Sigmoid", "t", "y", name="n1")]
    graph = helper.make_graph(
        nodes or usual, "net", inputs or [value("x")], outputs or [value("y")], list(initializers), **more
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets]
    return helper.make_model(
        graph, opset_imports=imports, ir_version=ir, producer_name="maker", functions=list(functions)
    )


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node; names of values are separated by blanks, and "-" is one left out."""
    read, made = ([name.replace("-", "") for name in text.split()] for text in (inputs, outputs))
    return helper.make_node(op, read, made, **attributes)


def private(**attributes: Any) -> ModelProto:
    """A model with a node outside the standard, which may have any attribute."""
    return model([node("MyOp", "x", "y", name="n0", domain="my", **attributes)], opsets=(("", 17), ("my", 3)))


def adding(ir: int = 8) -> ModelProto:
    """y = x + w."""
    return model([node("Add", "x w", "y", name="n0")], initializers=[weights()], ir=ir)


def mark(entries: Any) -> None:
    entries.add(key=KEY, value=TEXT)


def marked(entries: Any) -> bool:
    return any((e.key, e.value) == (KEY, TEXT) for e in entries)


def first(found: ModelProto, op: str = "Relu") -> NodeProto:
    nodes: Sequence[NodeProto] = found.graph.node
    return next(n for n in nodes if n.op_type == op)


def initializer(found: ModelProto, name: str = "w") -> TensorProto:
    tensors: Sequence[TensorProto] = found.graph.initializer
    return next(t for t in tensors if t.name == name)


def attribute(found: NodeProto, name: str) -> Any:
    return next(a for a in found.attribute if a.name == name)


def ops(nodes: Any) -> list[str]:
    return [n.op_type for n in nodes]


# Nodes


@feature("node metadata")
def _() -> tuple[ModelProto, Kept]:
    made = model(ir=10)
    mark(made.graph.node[0].metadata_props)
    return made, lambda m: marked(first(m).metadata_props)


@feature("node doc string")
def _() -> tuple[ModelProto, Kept]:
    made = model()
    made.graph.node[0].doc_string = "why"
    return made, lambda m: first(m).doc_string == "why"


@feature("node names")
def _() -> tuple[ModelProto, Kept]:
    return model(), lambda m: [n.name for n in m.graph.node] == ["n0", "n1"]


@feature("node of a private domain")
def _() -> tuple[ModelProto, Kept]:
    return private(
        alpha=1.5
    ), lambda m: first(m, "MyOp").domain == "my" and attribute(first(m, "MyOp"), "alpha").f == 1.5


@feature("opset version of a private domain")
def _() -> tuple[ModelProto, Kept]:
    return private(), lambda m: {o.domain: o.version for o in m.opset_import} == {"": 17, "my": 3}


@feature("unused opset import")
def _() -> tuple[ModelProto, Kept]:
    made = model(opsets=(("", 17), ("unused", 2)))
    return made, lambda m: ("unused", 2) in [(o.domain, o.version) for o in m.opset_import]


@feature("order of nodes")
def _() -> tuple[ModelProto, Kept]:
    nodes = [node("Sigmoid", "x", "b", name="n0"), node("Relu", "x", "a", name="n1"), node("Add", "a b", "y")]
    return model(nodes), lambda m: ops(m.graph.node) == ["Sigmoid", "Relu", "Add"]


@feature("optional input left out in the middle")
def _() -> tuple[ModelProto, Kept]:
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s")
    made = model(
        [node("Resize", "x - s", "y", name="n0", mode="nearest")],
        [value("x", (1, 3, 4, 4))],
        [value("y", (1, 3, 8, 8))],
        [scales],
    )
    return made, lambda m: list(first(m, "Resize").input) == ["x", "", "s"]


@feature("optional inputs and outputs left out at the end")
def _() -> tuple[ModelProto, Kept]:
    made = model([node("Dropout", "x - -", "y -", name="n0")])
    return made, lambda m: [*first(m, "Dropout").input, *first(m, "Dropout").output] == ["x", "", "", "y", ""]


@feature("device configuration")
def _() -> tuple[ModelProto, Kept]:
    made = model(ir=11)
    made.configuration.add(name="board", num_devices=2)
    made.graph.node[0].device_configurations.add(configuration_id="board")
    return made, lambda m: len(m.configuration) == 1 and len(first(m).device_configurations) == 1


# Attributes


@feature("attribute doc string")
def _() -> tuple[ModelProto, Kept]:
    made = model([node("LeakyRelu", "x", "y", name="n0", alpha=0.2)])
    made.graph.node[0].attribute[0].doc_string = "slope"
    return made, lambda m: attribute(first(m, "LeakyRelu"), "alpha").doc_string == "slope"


@feature("type of an empty list attribute")
def _() -> tuple[ModelProto, Kept]:
    made = private()
    made.graph.node[0].attribute.add(name="e", type=onnx.AttributeProto.INTS)
    return made, lambda m: attribute(first(m, "MyOp"), "e").type == onnx.AttributeProto.INTS


@feature("integer above 2^53, negative zero and NaN as attributes")
def _() -> tuple[ModelProto, Kept]:
    made = private(big=2**62 + 1, zero=-0.0, nan=float("nan"))

    def kept(m: ModelProto) -> bool:
        big, zero, nan = (attribute(first(m, "MyOp"), n) for n in ("big", "zero", "nan"))
        return bool(big.i == 2**62 + 1 and str(zero.f) == "-0.0" and np.isnan(nan.f))

    return made, kept


@feature("type and list of tensors as attributes")
def _() -> tuple[ModelProto, Kept]:
    made = private()
    kind = made.graph.node[0].attribute.add(name="kind", type=onnx.AttributeProto.TYPE_PROTO)
    kind.tp.CopyFrom(helper.make_tensor_type_proto(FLOAT, [2]))
    made.graph.node[0].attribute.add(name="many", type=onnx.AttributeProto.TENSORS).tensors.add().CopyFrom(weights("q"))
    return (
        made,
        lambda m: (
            attribute(first(m, "MyOp"), "kind").HasField("tp") and len(attribute(first(m, "MyOp"), "many").tensors) == 1
        ),
    )


# Functions


def called(**more: Any) -> ModelProto:
    """A model that is one call of the function own::F."""
    body = more.pop("nodes", [node("Relu", "a", "t"), node("Sigmoid", "t", "b")])
    overload, ir = more.get("overload", ""), more.pop("ir", 8)
    function = helper.make_function("own", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)], **more)
    call = node("F", "x", "y", name="n0", domain="own", overload=overload)
    return model([call], opsets=(("", 17), ("own", 1)), ir=ir, functions=[function])


@feature("function of the file's own")
def _() -> tuple[ModelProto, Kept]:
    return called(), lambda m: len(m.functions) == 1 and ops(m.functions[0].node) == ["Relu", "Sigmoid"]


@feature("overload of a function")
def _() -> tuple[ModelProto, Kept]:
    return called(overload="v1", ir=10), lambda m: first(m, "F").overload == m.functions[0].overload == "v1"


@feature("function's doc, metadata, types, attribute default and reference")
def _() -> tuple[ModelProto, Kept]:
    leaky = node("LeakyRelu", "a", "b")
    leaky.attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    made = called(
        nodes=[leaky],
        attribute_protos=[helper.make_attribute("alpha", 0.3)],
        doc_string="what",
        value_info=[value("b")],
        ir=10,
    )
    mark(made.functions[0].metadata_props)

    def kept(m: ModelProto) -> bool:
        f = m.functions[0]
        reference = f.node[0].attribute[0].ref_attr_name == "alpha"
        described = f.doc_string == "what" and marked(f.metadata_props)
        return described and len(f.value_info) == len(f.attribute_proto) == 1 and reference

    return made, kept


# The model and its graph


@feature("model metadata")
def _() -> tuple[ModelProto, Kept]:
    made = model()
    mark(made.metadata_props)
    return made, lambda m: marked(m.metadata_props)


@feature("model's doc, domain, version and producer")
def _() -> tuple[ModelProto, Kept]:
    said = {"doc_string": "what", "domain": "d", "model_version": 7, "producer_name": "maker", "producer_version": "9"}
    made = model()
    for name, text in said.items():
        setattr(made, name, text)
    return made, lambda m: {name: getattr(m, name) for name in said} == said


@feature("graph metadata")
def _() -> tuple[ModelProto, Kept]:
    made = model(ir=10)
    mark(made.graph.metadata_props)
    return made, lambda m: marked(m.graph.metadata_props)


@feature("graph doc string and name")
def _() -> tuple[ModelProto, Kept]:
    made = model()
    made.graph.doc_string = "what"
    return made, lambda m: (m.graph.doc_string, m.graph.name) == ("what", "net")


@feature("quantization annotation")
def _() -> tuple[ModelProto, Kept]:
    made = adding()
    made.graph.initializer.append(numpy_helper.from_array(np.array(0.1, np.float32), "scale"))
    note = made.graph.quantization_annotation.add(tensor_name="w")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    return made, lambda m: len(m.graph.quantization_annotation) == 1


@feature("training graphs")
def _() -> tuple[ModelProto, Kept]:
    made = model()
    step = helper.make_graph([node("Relu", "a", "b")], "step", [value("a")], [value("b")], [weights("rate")])
    made.training_info.add().algorithm.CopyFrom(step)
    return made, lambda m: len(m.training_info) == 1


@feature("IR version 7")
def _() -> tuple[ModelProto, Kept]:
    return model(ir=7), lambda m: m.ir_version == 7


@feature("IR version 10")
def _() -> tuple[ModelProto, Kept]:
    return model(ir=10), lambda m: m.ir_version == 10


@feature("unknown field of a newer ONNX")
def _() -> tuple[ModelProto, Kept]:
    made = model()
    made.MergeFromString(UNKNOWN)
    return made, lambda m: UNKNOWN in m.SerializeToString()


# Values


@feature("metadata of an input")
def _() -> tuple[ModelProto, Kept]:
    made = model(ir=10)
    mark(made.graph.input[0].metadata_props)
    return made, lambda m: marked(m.graph.input[0].metadata_props)


@feature("doc string of an input")
def _() -> tuple[ModelProto, Kept]:
    made = model()
    made.graph.input[0].doc_string = "RGB"
    return made, lambda m: m.graph.input[0].doc_string == "RGB"


@feature("shapes of inner values")
def _() -> tuple[ModelProto, Kept]:
    return model(value_info=[value("t")]), lambda m: [v.name for v in m.graph.value_info] == ["t"]


@feature("symbolic size and denotations")
def _() -> tuple[ModelProto, Kept]:
    made = model(inputs=[value("x", ("N", WIDTH))], outputs=[value("y", ("N", WIDTH))])
    made.graph.input[0].type.denotation = "IMAGE"
    made.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"

    def kept(m: ModelProto) -> bool:
        kind = m.graph.input[0].type
        dim = kind.tensor_type.shape.dim[0]
        return (dim.dim_param, dim.denotation, kind.denotation) == ("N", "DATA_BATCH", "IMAGE")

    return made, kept


@feature("order of inputs")
def _() -> tuple[ModelProto, Kept]:
    nodes = [node("Sub", "c a", "t", name="n0"), node("Sub", "t b", "y", name="n1")]
    made = model(nodes, [value(n) for n in "bca"])
    return made, lambda m: [i.name for i in m.graph.input] == ["b", "c", "a"]


@feature("unused input")
def _() -> tuple[ModelProto, Kept]:
    made = model(inputs=[value("u", (2,)), value("x")])
    return made, lambda m: [i.name for i in m.graph.input] == ["u", "x"]


@feature("initializer that is an input too")
def _() -> tuple[ModelProto, Kept]:
    made = adding()
    made.graph.input.append(value("w", (WIDTH,)))
    return made, lambda m: "w" in [i.name for i in m.graph.input] and "w" in [t.name for t in m.graph.initializer]


@feature("output that is an input")
def _() -> tuple[ModelProto, Kept]:
    return model(outputs=[value("y"), value("x")]), lambda m: [o.name for o in m.graph.output] == ["y", "x"]


@feature("output without a shape")
def _() -> tuple[ModelProto, Kept]:
    made = model(outputs=[value("y", None)])
    return made, lambda m: not m.graph.output[0].type.tensor_type.HasField("shape")


@feature("output that is a sequence")
def _() -> tuple[ModelProto, Kept]:
    sequence = helper.make_tensor_sequence_value_info("y", FLOAT, [1, WIDTH])
    made = model([node("SequenceConstruct", "x x", "y", name="n0")], outputs=[sequence])
    return made, lambda m: m.graph.output[0].type.sequence_type.elem_type.tensor_type.elem_type == FLOAT


@feature("input that is optional")
def _() -> tuple[ModelProto, Kept]:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [1, WIDTH]))
    entry = helper.make_value_info("x", kind)
    made = model([node("OptionalGetElement", "x", "y", name="n0")], [entry], opsets=(("", 18),))
    return made, lambda m: m.graph.input[0].type.HasField("optional_type")


# Subgraphs


def choosing(then: GraphProto, other: GraphProto, initializers: Sequence[TensorProto] = ()) -> ModelProto:
    nodes = [node("Relu", "x", "t", name="n0"), node("If", "c", "y", then_branch=then, else_branch=other, name="if")]
    return model(nodes, [value("x"), value("c", (), TensorProto.BOOL)], initializers=initializers)


def branch(op: str, weight: str, output: str, own: Sequence[TensorProto] = ()) -> GraphProto:
    return helper.make_graph([node(op, f"t {weight}", output, name=op)], op, [], [value(output)], own)


@feature("subgraph that reads from around it")
def _() -> tuple[ModelProto, Kept]:
    made = choosing(branch("Add", "w", "p"), branch("Mul", "w", "q"), [weights()])

    def kept(m: ModelProto) -> bool:
        then = attribute(first(m, "If"), "then_branch").g
        return (then.name, list(then.node[0].input)) == ("Add", ["t", "w"])

    return made, kept


@feature("initializers of one name in two subgraphs")
def _() -> tuple[ModelProto, Kept]:
    two, five = (numpy_helper.from_array(np.full(WIDTH, n, np.float32), "v") for n in (2, 5))
    made = choosing(branch("Add", "v", "p", [two]), branch("Mul", "v", "q", [five]))

    def kept(m: ModelProto) -> bool:
        then, other = (attribute(first(m, "If"), n).g.initializer[0] for n in ("then_branch", "else_branch"))
        return bool((numpy_helper.to_array(then) == 2).all() and (numpy_helper.to_array(other) == 5).all())

    return made, kept


# Tensors


@feature("metadata of an initializer")
def _() -> tuple[ModelProto, Kept]:
    made = adding(ir=10)
    mark(made.graph.initializer[0].metadata_props)
    return made, lambda m: marked(initializer(m).metadata_props)


@feature("doc string of an initializer")
def _() -> tuple[ModelProto, Kept]:
    made = adding()
    made.graph.initializer[0].doc_string = "learned"
    return made, lambda m: initializer(m).doc_string == "learned"


@feature("unused initializer")
def _() -> tuple[ModelProto, Kept]:
    return model(initializers=[weights()]), lambda m: [t.name for t in m.graph.initializer] == ["w"]


@feature("sparse initializer")
def _() -> tuple[ModelProto, Kept]:
    places = numpy_helper.from_array(np.arange(0, 2 * WIDTH, 2), "w_places")
    sparse = helper.make_sparse_tensor(weights(), places, [2 * WIDTH])
    wide = [value(n, (1, 2 * WIDTH)) for n in "xy"]
    made = model([node("Add", "x w", "y", name="n0")], wide[:1], wide[1:], sparse_initializer=[sparse])
    return made, lambda m: len(m.graph.sparse_initializer) == 1


@feature("initializer of strings that are not UTF-8")
def _() -> tuple[ModelProto, Kept]:
    words = [b"a", b"\xff", *(b"word %d" % i for i in range(200))]
    tensor = TensorProto(name="w", data_type=TensorProto.STRING, dims=[len(words)], string_data=words)
    outputs = [value("y"), value("s", (len(words),), TensorProto.STRING)]
    made = model(
        [node("Identity", "w", "s", name="n0"), node("Relu", "x", "y")], outputs=outputs, initializers=[tensor]
    )
    return made, lambda m: list(initializer(m).string_data) == words


@feature("NaN with a payload in an initializer")
def _() -> tuple[ModelProto, Kept]:
    numbers = np.arange(WIDTH, dtype=np.float32)
    numbers.view(np.uint32)[0] = 0x7FC12345
    made = adding()
    made.graph.initializer[0].raw_data = numbers.tobytes()
    return made, lambda m: numpy_helper.to_array(initializer(m)).tobytes() == numbers.tobytes()


@feature("external data stays external", external=True)
def _() -> tuple[ModelProto, Kept]:
    return adding(), lambda m: initializer(m).data_location == TensorProto.EXTERNAL


def narrow(data_type: int, bits: int, ir: int, opset: int) -> Maker:
    """An initializer of a narrow type, joined to an input of float32."""

    def make() -> tuple[ModelProto, Kept]:
        width = 4096
        raw = bytes(range(0x10, 0x50)) * (width * bits // 8 // 64)  # numbers, no NaN, in every one of the types
        tensor = TensorProto(name="w", data_type=data_type, dims=[width], raw_data=raw)
        nodes = [
            node("Cast", "x", "c", to=data_type, name="n0"),
            node("Concat", "c w", "d", axis=0, name="n1"),
            node("Cast", "d", "y", to=FLOAT, name="n2"),
        ]
        ends = [value("x", (width,))], [value("y", (2 * width,))]
        made = model(nodes, *ends, [tensor], (("", opset),), ir)

        def kept(m: ModelProto) -> bool:
            found = initializer(m)
            numbers, wanted = (numpy_helper.to_array(t).tobytes() for t in (found, tensor))
            return found.data_type == data_type and numbers == wanted

        return made, kept

    return make


for _name, _type, _bits, _ir, _opset in (
    ("bfloat16", TensorProto.BFLOAT16, 16, 8, 17),
    ("float8e4m3fn", TensorProto.FLOAT8E4M3FN, 8, 9, 19),
    ("float8e5m2", TensorProto.FLOAT8E5M2, 8, 9, 19),
    ("int4", TensorProto.INT4, 4, 10, 21),
    ("uint4", TensorProto.UINT4, 4, 10, 21),
    ("float4e2m1", TensorProto.FLOAT4E2M1, 4, 11, 23),
    ("float8e8m0", getattr(TensorProto, "FLOAT8E8M0", 24), 8, 12, 24),
):
    feature(f"initializer of type {_name}")(narrow(_type, _bits, _ir, _opset))
