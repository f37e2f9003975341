"""Operators that the standard does not have, or no longer has, at the opset a file imports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vexlint.checks import plugins
from vexlint.checks.context import Context
from vexlint.checks.foreign import composite_of, is_runtimes_own, lookalikes
from vexlint.model import schemas
from vexlint.model.model import Model
from vexlint.values import Hit, Severity

if TYPE_CHECKING:
    pass

# Domains and operators by which exporters write what they found no ONNX form for
FALLBACK_DOMAINS = ("org.pytorch.aten", "org.pytorch.prim", "org.pytorch._caffe2", "aten", "prim", "onnx-caffe2", "tf")
FALLBACK_OPERATORS = ("ATen", "PyOp", "PythonOp", "PyOpPlaceholder", "PlaceholderOp")
TORCH_LIBRARIES = ("pkg.onnxscript.torch_lib", "onnxscript.atenlib", "pkg.torch")
# What the well-known domains outside the standard are, and the way out
DOMAINS = {
    "com.microsoft": "ONNX Runtime 1.32 has no such operator: correct the name, or ship the library that brings it",
    "mmdeploy": "an operator of MMDeploy's runtime libraries: ship them, or export with a standard twin",
    "mmcv": "an operator of MMCV's runtime library: ship it, or export with a standard twin",
    "TRT": "a TensorRT plugin: it runs there and nowhere else",
    "ai.onnx.contrib": "an operator of onnxruntime-extensions: ship that library with ONNX Runtime",
}
# What took the place of operators that were given up
SUCCESSORS = {"Upsample": "Resize", "Scatter": "ScatterElements"}
# Experimental operators of the first releases; ONNX Runtime 1.32 runs them in files below opset 10
DROPPED = ("Affine", "Crop", "ImageScaler", "ParametricSoftplus", "ScaledTanh")
# Operators that ONNX Runtime has of its own below the opset where the standard has them
EARLY = {("", "LayerNormalization")}


def custom_node(model: Model, context: Context) -> Iterator[Hit]:
    """VEX101: an operator of neither the standard nor a function of the model; one hit a (domain, operator)."""
    for (domain, op), nodes in model.operators.items():
        if not model.is_foreign(domain, op) or _another_rule(model, domain, op, context):
            continue
        refusing = _without_plugin(domain, op, context)
        if refusing == []:
            continue
        message, way_out = _stranger(domain, op)
        more = tuple(n.place for n in nodes[1:])
        if refusing is None:
            composite = composite_of(domain, op, context)
            if composite is not None:
                way_out = f"its composite of standard operators is {composite.summary}"
            yield Hit(
                nodes[0].place,
                message,
                way_out,
                fix="safe" if composite else "none",
                more=more,
                count=len(nodes),
            )
        else:
            for target in refusing or ():
                text = f"{message}; the plugin that the configuration allows is not for {target}"
                yield Hit(nodes[0].place, text, way_out, target, "refuses", more=more, count=len(nodes))


def _another_rule(model: Model, domain: str, op: str, context: Context) -> bool:
    """Whether VEX104, VEX103, VEX506 or VEX105 says what kind of foreign operator this is."""
    return (
        _left_behind(domain, op, context)
        or is_runtimes_own(domain, op)
        or op in plugins.SUPPRESSORS
        or bool(lookalikes(model, domain, op, context))
    )


def _left_behind(domain: str, op: str, context: Context) -> bool:
    """Whether an operator outside the standard is what an exporter writes where it knows no ONNX form, and neither a
    plugin nor a composite stands for it."""
    left = domain in FALLBACK_DOMAINS or op in FALLBACK_OPERATORS or domain.startswith(TORCH_LIBRARIES)
    return left and context.plugin(domain, op) is None and composite_of(domain, op, context) is None


def fallback_node(model: Model, context: Context) -> Iterator[Hit]:
    """VEX104: a call of the framework left where the exporter found no ONNX form; one hit a (domain, operator)."""
    for (domain, op), nodes in model.operators.items():
        if not model.is_foreign(domain, op) or not _left_behind(domain, op, context):
            continue
        called = nodes[0].attribute("operator")
        what = f" ({called})" if isinstance(called, str) and called else ""
        yield Hit(
            nodes[0].place,
            f"{domain + '::' if domain else ''}{op}{what} is a call of the framework, left where its exporter found no "
            "ONNX form",
            "no runtime has it: export at a newer opset or with a newer exporter, or write the module with operators "
            "that have an ONNX form",
            more=tuple(n.place for n in nodes[1:]),
            count=len(nodes),
        )


def deprecated_operator(model: Model, context: Context) -> Iterator[Hit]:
    """VEX208: an operator that the standard has given up; one hit a (domain, operator). An error where that was before
    the opset that the file imports: such an operator does not exist there."""
    for (domain, op), nodes in model.operators.items():
        if (domain, op) in model.functions:
            continue
        newest = schemas.operator(domain, op, schemas.newest_opset(domain))
        if newest is None or not newest.deprecated:
            continue
        gone = [n for n in nodes if n.graph.opsets.get(domain, 0) >= newest.since]
        twin = SUCCESSORS.get(op, "")
        then = f": {twin} took its place" if twin else ""
        for places, message, severity in (
            (gone, f"{op} is no operator any more from opset {newest.since} on; the file imports", Severity.ERROR),
            ([n for n in nodes if n not in gone], f"{op} is deprecated from opset {newest.since} on", None),
        ):
            if places:
                opset = f" {places[0].graph.opsets.get(domain, 0)}" if severity else ""
                yield Hit(
                    places[0].place,
                    f"{message}{opset}{then}",
                    "export again: onnx.checker and ONNX Runtime refuse it"
                    if severity
                    else f"it runs at the file's opset; an export at opset {newest.since} or later has no such node",
                    severity=severity,
                    more=tuple(n.place for n in places[1:]),
                    count=len(places),
                )


def _without_plugin(domain: str, op: str, context: Context) -> list[str] | None:
    """The targets that an allowed plugin does not cover, [] where it covers all; None where nobody has it."""
    runtimes = [t for t in context.targets if t.runtime != "onnx"]
    bare = [str(t) for t in runtimes if not context.covered(domain, op, t)]
    return None if len(bare) == len(runtimes) and context.plugin(domain, op) is None else bare


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
    from vexlint.composites import load

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
    """VEX102: a standard operator that only a later opset has; one hit a (domain, operator). A warning where every
    named target looks for the operator by its name."""
    for (domain, op), nodes in model.operators.items():
        versions = schemas.versions(domain, op)
        if not versions or (domain, op) in model.functions:
            continue
        early = [n for n in nodes if n.graph.opsets.get(domain, versions[0]) < versions[0]]
        if early:
            opset = early[0].graph.opsets[domain]
            where = domain or "ai.onnx"
            release = schemas.release_for(versions[0], domain)
            or_older = f", or with the operators of opset {opset}" if opset > 0 else ""
            yield Hit(
                early[0].place,
                f"{op} enters {where} at opset {versions[0]}; the file imports {opset}",
                f"export at opset {versions[0]} or later (onnx {release}){or_older}; never raise the number alone",
                severity=Severity.WARNING if (domain, op) in EARLY or context.lenient else None,
                data={"since": versions[0], "opset": opset},
                more=tuple(n.place for n in early[1:]),
                count=len(early),
            )
