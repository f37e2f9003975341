"""Operators and attributes that the standard does not have at the opset a file imports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vexlint.checks.context import Context
from vexlint.composites import find, load
from vexlint.files import nearest
from vexlint.model import schemas
from vexlint.model.attributes import attribute_type, attribute_value
from vexlint.model.model import Model, Node
from vexlint.targets import covers
from vexlint.values import Hit, Severity

if TYPE_CHECKING:
    from onnx import AttributeProto

PYTORCH = (
    "a PyTorch call that the exporter found no ONNX form for: export at a newer opset, or write the module with "
    "operators that have one"
)
# What the well-known domains outside the standard are, and the way out
DOMAINS = {
    "com.microsoft": "an operator of ONNX Runtime's own, written by its optimiser: ship the file from before the "
    "optimisation, or run it on ONNX Runtime only",
    "org.pytorch.aten": PYTORCH,
    "aten": PYTORCH,
    "mmdeploy": "an operator of MMDeploy's runtime libraries: ship them, or export with a standard twin",
    "mmcv": "an operator of MMCV's runtime library: ship it, or export with a standard twin",
    "TRT": "a TensorRT plugin: it runs there and nowhere else",
    "ai.onnx.contrib": "an operator of onnxruntime-extensions: ship that library with ONNX Runtime",
}
# Experimental operators of the first releases; ONNX Runtime 1.32 runs them in files below opset 10
DROPPED = ("Affine", "Crop", "ImageScaler", "ParametricSoftplus", "ScaledTanh")
# Operators that ONNX Runtime has of its own below the opset where the standard has them
EARLY = {("", "LayerNormalization")}
# Values of a later or earlier version of the operator that ONNX Runtime or OpenVINO run all the same (seen with
# ONNX Runtime 1.32 and OpenVINO 2026.4.1): outside the standard, but not refused everywhere
TOLERATED = {
    ("Resize", "mode", "cubic"),
    ("Resize", "coordinate_transformation_mode", "tf_half_pixel_for_nn"),
    ("Resize", "coordinate_transformation_mode", "half_pixel_symmetric"),
    ("Pad", "mode", "wrap"),
    ("ScatterND", "reduction", "max"),
    ("ScatterND", "reduction", "min"),
    ("ScatterElements", "reduction", "max"),
    ("ScatterElements", "reduction", "min"),
}


def custom_node(model: Model, context: Context) -> Iterator[Hit]:
    """VEX101: an operator of neither the standard nor a function of the model; one hit a (domain, operator)."""
    for (domain, op), nodes in model.operators.items():
        if not model.is_foreign(domain, op):
            continue
        refusing = _without_plugin(domain, op, context)
        if refusing == []:
            continue
        message, way_out = _stranger(domain, op)
        more = tuple(n.place for n in nodes[1:])
        if refusing is None:
            composite = find(domain, op, context.composites)
            if composite is not None:
                way_out = f"its composite of standard operators is {composite.summary}"
            yield Hit(
                nodes[0].place,
                message,
                way_out,
                severity=_grade(domain, context),
                fix="safe" if composite else "none",
                more=more,
                count=len(nodes),
            )
        else:
            for target in refusing or ():
                text = f"{message}; the plugin that the configuration allows is not for {target}"
                yield Hit(nodes[0].place, text, way_out, target, "refuses", more=more, count=len(nodes))


def _grade(domain: str, context: Context) -> Severity | None:
    """A warning for ONNX Runtime's own operators unless another runtime was named, else the page's."""
    others = any(t.named and t.runtime not in ("onnx", "onnxruntime") for t in context.targets)
    return Severity.WARNING if domain == "com.microsoft" and not others else None


def _without_plugin(domain: str, op: str, context: Context) -> list[str] | None:
    """The targets that an allowed plugin does not cover, [] where it covers all; None where no plugin is allowed."""
    plugin = context.plugin(domain, op)
    if plugin is None:
        return None
    runtimes = [t for t in context.targets if t.runtime != "onnx"]
    return [str(t) for t in runtimes if plugin.targets and not any(covers(name, t) for name in plugin.targets)]


def _stranger(domain: str, op: str) -> tuple[str, str]:
    """What a node outside the standard is, and the way out."""
    if not domain and op.endswith("_TRT"):
        return f"{op} is a TensorRT plugin, no ONNX operator", DOMAINS["TRT"]
    if not domain and op in DROPPED:
        return (
            f"{op} was an experimental operator of ONNX that opset 10 no longer has",
            "ONNX Runtime runs it in old files, nobody else: export again",
        )
    if not domain:
        close = schemas.nearest("", op)
        return (
            f"{op or 'a node without an operator'} is no ONNX operator" + (f"; did you mean {close}?" if close else ""),
            "no runtime can know what it computes: correct the name, or put it into a domain and ship a kernel for it",
        )
    message = f"{domain}::{op} is outside the ONNX standard and the file has no function of that name"
    if domain in DOMAINS:
        return message, DOMAINS[domain]
    namesake = next((name for name in load() if name.lower() == op.lower()), None)
    if namesake is not None:
        return message, (
            f'if it computes {namesake}, say so in vexlint.toml ([composites] "{domain}::{op}" = "{namesake}") and '
            "vexlint fix replaces it; else export the module with standard operators"
        )
    since = schemas.versions("", op)
    twin = f"ONNX has a {op} of its own since opset {since[0]}: if it is meant, export with it; else " if since else ""
    return message, f"{twin}export the module with standard operators, or ship a kernel and allow it with [[plugin]]"


def newer_than_opset(model: Model, context: Context) -> Iterator[Hit]:
    """VEX102: a standard operator that only a later opset has; one hit a (domain, operator)."""
    for (domain, op), nodes in model.operators.items():
        versions = schemas.versions(domain, op)
        if not versions or (domain, op) in model.functions:
            continue
        early = [n for n in nodes if 0 < n.graph.opsets.get(domain, 0) < versions[0]]
        if early:
            opset = early[0].graph.opsets[domain]
            where = domain or "ai.onnx"
            release = schemas.release_for(versions[0], domain)
            yield Hit(
                early[0].place,
                f"{op} enters {where} at opset {versions[0]}; the file imports {opset}",
                f"export at opset {versions[0]} or later (onnx {release}), or with the operators of opset {opset}; "
                "never raise the number alone",
                severity=Severity.WARNING if (domain, op) in EARLY else None,
                data={"since": versions[0], "opset": opset},
                more=tuple(n.place for n in early[1:]),
                count=len(early),
            )


def unknown_attribute(model: Model, context: Context) -> Iterator[Hit]:
    """VEX106: an attribute, or a value of one, that the operator's schema at this opset does not have."""
    found: dict[tuple[str, str, str, str], list[Node]] = {}
    details: dict[tuple[str, str, str, str], Hit] = {}
    for (domain, op), nodes in model.operators.items():
        if (domain, op) in model.functions:
            continue
        graph = schema = None
        for node in nodes:
            if node.graph is not graph:  # the schema is the graph's: one look-up for all its nodes of an operator
                graph, schema = node.graph, node.schema
            if schema is None:
                continue  # another rule speaks of it
            for attribute in node.proto.attribute:
                known = schema.attributes.get(attribute.name)
                if known is None:
                    hit: Hit | None = _name_hit(node, schema, attribute)
                elif attribute_type(attribute) != known.type:
                    hit = _type_hit(node, known, attribute)
                elif known.values:
                    hit = _value_hit(node, known, attribute)
                else:
                    continue
                if hit is not None:
                    key = (domain, op, attribute.name, hit.message)
                    details.setdefault(key, hit)
                    found.setdefault(key, []).append(node)
    for key, nodes in found.items():
        hit, more = details[key], tuple(n.place for n in nodes[1:])
        yield Hit(hit.place, hit.message, hit.help, severity=hit.severity, data=hit.data, more=more, count=len(nodes))


def _name_hit(node: Node, schema: schemas.Operator, attribute: AttributeProto) -> Hit:
    name, opset = attribute.name, node.graph.opsets[node.domain]
    formals = [f.name for f in schema.inputs]
    if name in formals and any(_had(node, name, v) for v in schemas.versions(node.domain, node.op)):
        message = f"{name} is an input of {node.op} since opset {schema.since}, here it is an attribute (opset {opset})"
        way_out = "some runtimes refuse the node, others ignore the attribute and use the default: export again"
    else:
        message = f"{node.op} has no attribute {name!r} at opset {opset}{nearest(name, list(schema.attributes))}"
        way_out = "correct the name, or export at the opset that has it"
    return Hit(node.place, message, way_out, data={"attribute": name, "opset": opset})


def _had(node: Node, name: str, version: int) -> bool:
    schema = schemas.operator(node.domain, node.op, version)
    return schema is not None and name in schema.attributes


def _type_hit(node: Node, known: schemas.Attribute, attribute: AttributeProto) -> Hit:
    opset, written = node.graph.opsets[node.domain], attribute_type(attribute)
    message = f"{known.name} of {node.op} takes {known.type} at opset {opset}, here it is {written or 'nothing'}"
    way_out = "runtimes refuse the node: correct the type, or export at the opset that has it"
    return Hit(node.place, message, way_out, data={"attribute": known.name, "type": written, "opset": opset})


def _value_hit(node: Node, known: schemas.Attribute, attribute: AttributeProto) -> Hit | None:
    if attribute.ref_attr_name or (known.name == "nearest_mode" and node.attribute("mode") != "nearest"):
        return None  # what a caller passes is unknown here; nearest_mode means nothing in the other modes
    value: Any = attribute_value(attribute)
    wrong = [v for v in (value if isinstance(value, list) else [value]) if v is not None and v not in known.values]
    if not wrong:
        return None
    opset = node.graph.opsets[node.domain]
    allowed = ", ".join(map(str, known.values))
    close = nearest(wrong[0], list(known.values)) if isinstance(wrong[0], str) else ""
    tolerated = (node.op, known.name, wrong[0]) in TOLERATED
    return Hit(
        node.place,
        f"{known.name} = {wrong[0]!r} is none of the values of {node.op} at opset {opset}: {allowed}{close}",
        "outside the standard at this opset, though some runtimes run it: export at the opset that has it"
        if tolerated
        else "a runtime refuses it or silently takes another value: write one of these",
        severity=Severity.WARNING if tolerated else None,
        data={"attribute": known.name, "value": wrong[0], "opset": opset},
    )
