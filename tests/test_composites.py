"""Composites: the texts of rules/composites, what they compute, and what takes the place of a custom node."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.checker
import onnx.inliner
import onnx.parser
import onnx.reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import FunctionProto, ModelProto, NodeProto, helper

from vexlint import composites
from vexlint.composites import Composite
from vexlint.inline import PROVENANCE, NoComposite, expand, function
from vexlint.model import proto, schemas
from vexlint.values import VexlintError

sys.path.insert(0, str(Path(__file__).parents[1] / "golden_models"))
from shapes_detector import measure

Array = NDArray[Any]

ROOT = Path(__file__).resolve().parent.parent

KNOWN = composites.load()
NUMPY: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
OPSETS = range(7, schemas.newest_opset() + 1)


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, e) / (1 + e))


def softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def mish(x: Array) -> Array:
    return np.asarray(x * np.tanh(softplus(x)))


def gelu(x: Array, bias: float = 0) -> Array:
    x = x + bias
    return np.asarray(0.5 * x * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2)))


def gelu_tanh(x: Array, bias: float = 0) -> Array:
    x = x + bias
    return np.asarray(x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def swish(x: Array, beta: float = 1) -> Array:
    return np.asarray(x * sigmoid(beta * x))


def hard_sigmoid(x: Array, alpha: float = 1 / 6, beta: float = 0.5) -> Array:
    return np.clip(alpha * x + beta, 0, 1)


# Form -> what it computes, in float64, and the largest error of it in float16, float and double, a share of the result
# where that is above 1; None for a type that the form is not for. Measured over every finite half with onnx.reference,
# over `points` with onnx.reference (float, double) and ONNX Runtime (float), rounded up; ONNX Runtime's Sigmoid is what
# the larger errors of floats come from.
FORMS: dict[str, tuple[Callable[..., Array], tuple[float | None, float | None, float | None]]] = {
    "Gelu.erf": (gelu, (8.4e-4, 1.1e-7, None)),
    "Gelu.erf_bias": (gelu, (1.4e-3, 1.7e-7, None)),
    "GeluTanh.sigmoid": (gelu_tanh, (1.1e-3, 6e-7, 1e-15)),
    "GeluTanh.sigmoid_bias": (gelu_tanh, (1.6e-3, 6e-7, 1e-15)),
    "HardSigmoid.standard": (hard_sigmoid, (2.5e-4, 5e-8, None)),
    "HardSigmoid6.standard": (hard_sigmoid, (2.5e-4, 4e-8, None)),
    "HardSwish.hard_sigmoid": (lambda x, **a: x * hard_sigmoid(x, **a), (7.2e-4, 1.2e-7, None)),
    "HardSwish.standard": (lambda x: x * hard_sigmoid(x), (6.7e-4, 1.1e-7, None)),
    "LogSigmoid.exp": (lambda x: -softplus(-x), (9.6e-4, 1.5e-7, 3e-16)),
    "LogSigmoid.softplus": (lambda x: -softplus(-x), (4.9e-4, 1.1e-7, None)),
    "Mish.exp": (mish, (None, 1.3e-7, 4e-16)),
    "Mish.exp_half": (mish, (1.2e-3, None, None)),
    "Mish.softplus": (mish, (7.1e-4, 2.6e-7, None)),
    "QuickGelu.sigmoid": (lambda x, alpha=1.702: swish(x, alpha), (1.1e-3, 2.3e-6, 4e-9)),  # 1.702 is a float there
    "Relu6.clip": (lambda x: np.clip(x, 0, 6), (0, 0, 0)),
    "Relu6.clip_attributes": (lambda x: np.clip(x, 0, 6), (0, 0, None)),
    "SiLU.sigmoid": (swish, (1.1e-3, 2.3e-6, 1e-15)),
    "Softsign.division": (lambda x: x / (1 + np.abs(x)), (None, None, 1e-16)),
    "Softsign.standard": (lambda x: x / (1 + np.abs(x)), (7.1e-4, 1.1e-7, None)),
    "Swish.sigmoid": (swish, (1.1e-3, 3.4e-6, 1e-15)),
    "Swish.sigmoid_alpha": (lambda x, alpha=1.0: swish(x, alpha), (1.1e-3, 3.4e-6, 1e-15)),
    "Swish.sigmoid_input": (swish, (1.1e-3, 3.4e-6, 1e-15)),
}
# Attributes, and inputs after the first, that a form is tried with; {} where it has none
TRIED: dict[str, list[dict[str, float]]] = {
    "Gelu.erf_bias": [{"bias": 0.75}, {"bias": -2}],
    "GeluTanh.sigmoid_bias": [{"bias": 0.75}, {"bias": -2}],
    "HardSigmoid.standard": [{"alpha": 0.2, "beta": 0.5}, {"alpha": 1 / 6, "beta": 0.5}],
    "HardSwish.hard_sigmoid": [{}, {"alpha": 0.1667, "beta": 0.5}],
    "QuickGelu.sigmoid": [{}, {"alpha": 1}],
    "Swish.sigmoid": [{}, {"beta": 0.5}, {"beta": 8}, {"beta": -1}],
    "Swish.sigmoid_alpha": [{}, {"alpha": 0.5}],
    "Swish.sigmoid_input": [{"beta": 0.5}, {"beta": 2}],
}
CASES = [
    pytest.param(form, values, dtype, bound, id="-".join([form, *(f"{k}={v:.3g}" for k, v in values.items()), dtype]))
    for form, (_, bounds) in FORMS.items()
    for values in TRIED.get(form, [{}])
    for dtype, bound in zip(NUMPY, bounds, strict=True)
    if bound is not None
]
SPECIAL = np.array([-np.inf, np.inf, np.nan])
# What becomes of minus infinity and infinity (nan stays nan). The limit at minus infinity is 0 for Mish and its like,
# but the definition itself, x times 0, is nan there.
LIMITS = {
    "Gelu": (math.nan, math.inf),
    "GeluTanh": (math.nan, math.inf),
    "HardSigmoid": (0, 1),
    "HardSigmoid6": (0, 1),
    "HardSwish": (math.nan, math.inf),
    "LogSigmoid": (-math.inf, 0),
    "Mish": (math.nan, math.inf),
    "QuickGelu": (math.nan, math.inf),
    "Relu6": (0, 6),
    "SiLU": (math.nan, math.inf),
    "Softsign": (math.nan, math.nan),
    "Swish": (math.nan, math.inf),
}
BODY = '<domain: "vexlint.composites", opset_import: ["" : 7]>\nNew (x) => (y) { y = Neg (x) }\n'
HEADER = "# New: -x\n# https://example.org\n#\n# stands for acme::Neg (x)  https://example.org\n\n"
GOOD = f"{HEADER}# form neg (float): a\n{BODY}"


def only(name: str) -> Composite:
    """The composite with nothing but this form, said to be it by a person."""
    composite, form = name.split(".")
    forms = tuple(f for f in KNOWN[composite].forms if f.name == form)
    return replace(KNOWN[composite], signatures=(), forms=forms)


def call(op: str, *inputs: str, domain: str = "acme", name: str = "/act/Op", **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs or ("x",), ["y"], name, domain=domain, **attributes)


def model(
    nodes: Sequence[NodeProto], feeds: dict[str, Array], opset: int, functions: Sequence[FunctionProto] = ()
) -> ModelProto:
    """A model of these nodes, from `feeds` to y, which has the type and shape of the first of them."""
    infos = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()
    ]
    result = onnx.ValueInfoProto()
    result.CopyFrom(infos[0])
    result.name = "y"
    imports = [helper.make_opsetid(d, 1) for d in {n.domain for n in nodes} - {""}]
    graph = helper.make_graph(nodes, "g", infos, [result])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), *imports], functions=functions, ir_version=9
    )


def reference(of: ModelProto, feeds: dict[str, Array]) -> Array:
    """Node by node in numpy, each result rounded to its type."""
    with np.errstate(all="ignore"):
        (result,) = onnx.reference.ReferenceEvaluator(of).run(None, feeds)
    return np.asarray(result)


def onnxruntime(of: ModelProto, feeds: dict[str, Array], optimise: bool = True) -> Array:
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(of.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def expanded(
    name: str, values: dict[str, float], x: Array, dtype: str, opset: int = 0
) -> tuple[ModelProto, dict[str, Array]]:
    """One call of a form as standard nodes, and what to feed it with. At opset 17, where the form has that."""
    composite = only(name)
    opset = opset or (10 if name == "Relu6.clip_attributes" else 17)
    inputs = re.findall(r"\w+", re.findall(r"\(([\w, ]+)\) =>", composite.forms[0].text)[0])
    given_inputs = {k: np.asarray(v, NUMPY[dtype]) for k, v in values.items() if k in inputs}
    attributes: dict[str, Any] = {k: float(v) for k, v in values.items() if k not in inputs}
    node = call("Op", *inputs, **attributes)
    feeds = {"x": x, **given_inputs}
    return model(expand(node, composite, opset, dtype, set()), feeds, opset), feeds


def halves() -> Array:
    """Every finite half, float16 [63488]."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return np.asarray(every[np.isfinite(every)])


def points(dtype: str) -> Array:
    """Numbers up to 10,000 either way: evenly spread, and powers of two from the smallest denormal of floats on."""
    powers = np.ldexp(1.0, np.arange(-149, 14))
    spread = [np.linspace(-30, 30, 60001), np.linspace(-1e4, 1e4, 20001)]
    return np.concatenate([*spread, powers, -powers, [0.0, -0.0]]).astype(NUMPY[dtype])


def error(found: Array, truth: Array) -> float:
    """The largest error, a share of the result where that is above 1; infinite where it is no number but should be."""
    finite = np.abs(truth) <= np.finfo(found.dtype).max
    apart = np.abs(found.astype(float) - truth)[finite] / np.maximum(1, np.abs(truth[finite]))
    return float(np.where(np.isfinite(apart), apart, np.inf).max())


def test_every_form_is_measured() -> None:
    assert set(FORMS) == {f"{c.name}.{form.name}" for c in KNOWN.values() for form in c.forms}
    for name, (_, bounds) in FORMS.items():
        given_types = tuple(t for t, bound in zip(NUMPY, bounds, strict=True) if bound is not None)
        assert set(only(name).forms[0].dtypes) == set(given_types), name
    assert set(LIMITS) == set(KNOWN)


@pytest.mark.parametrize(("name", "values", "dtype", "bound"), CASES)
def test_a_form_computes_the_activation(name: str, values: dict[str, float], dtype: str, bound: float) -> None:
    """Halves by onnx.reference alone: ONNX Runtime computes in floats between nodes and would hide an overflow."""
    x = halves() if dtype == "float16" else points(dtype)
    built, feeds = expanded(name, values, x, dtype)
    with np.errstate(all="ignore"):
        truth = FORMS[name][0](x.astype(float), **values)
    found = reference(built, feeds)
    assert found.dtype == NUMPY[dtype]
    assert error(found, truth) <= bound
    if dtype == "float":
        assert error(onnxruntime(built, feeds), truth) <= bound


@pytest.mark.parametrize(("name", "values", "dtype", "bound"), CASES)
def test_a_form_at_infinity(name: str, values: dict[str, float], dtype: str, bound: float) -> None:
    limits = LIMITS[name.partition(".")[0]]
    if values.get("beta") == -1:
        limits = (-math.inf, math.nan)
    built, feeds = expanded(name, values, SPECIAL.astype(NUMPY[dtype]), dtype)
    assert np.array_equal(reference(built, feeds), [*limits, math.nan], equal_nan=True)
    assert np.array_equal(onnxruntime(built, feeds), [*limits, math.nan], equal_nan=True)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_the_same_at_every_opset(name: str) -> None:
    values = TRIED.get(name, [{}])[0]
    x = np.linspace(-9, 9, 19).astype(np.float32)
    form = only(name).forms[0]
    for dtype in form.dtypes:
        truth, worked = FORMS[name][0](x.astype(float), **values), []
        for opset in OPSETS:
            try:
                built, feeds = expanded(name, values, x.astype(NUMPY[dtype]), dtype, opset)
            except NoComposite:
                continue
            worked.append(opset)
            onnx.checker.check_model(built, full_check=True)
            assert error(reference(built, feeds), truth) < 2e-3, (dtype, opset)
            if opset in (17, 20) or (opset == form.opset and dtype != "double"):
                assert error(onnxruntime(built, feeds), truth) < 2e-3, (dtype, opset)
        last = 10 if name == "Relu6.clip_attributes" else OPSETS[-1]
        assert worked == [*range(form.opset, last + 1)], dtype


@pytest.mark.parametrize(
    ("node", "inputs"),
    [
        (call("Gelu", domain="com.microsoft"), 1),
        (call("BiasGelu", "x", "b", domain="com.microsoft"), 2),
        (call("FastGelu", domain="com.microsoft"), 1),
        (call("FastGelu", "x", "b", domain="com.microsoft"), 2),
        (call("FastGelu", "x", "", domain="com.microsoft"), 1),
        (call("QuickGelu", domain="com.microsoft"), 1),
        (call("QuickGelu", domain="com.microsoft", alpha=1.25), 1),
    ],
    ids=lambda value: value.op_type if isinstance(value, NodeProto) else str(value),
)
@pytest.mark.parametrize(("dtype", "bound"), [("float", 3e-6), ("float16", 2e-3)])
def test_operators_of_onnxruntime_are_what_its_own_kernels_compute(
    node: NodeProto, inputs: int, dtype: str, bound: float
) -> None:
    x = np.linspace(-12, 12, 24008).reshape(-1, 8).astype(NUMPY[dtype])
    feeds = {"x": x} | ({"b": np.linspace(-1, 1, 8).astype(NUMPY[dtype])} if inputs == 2 else {})
    composite = composites.find(node.domain, node.op_type, {})
    assert composite is not None
    theirs = onnxruntime(model([node], feeds, 17), feeds, optimise=False)
    ours = onnxruntime(model(expand(node, composite, 17, dtype, set()), feeds, 17), feeds, optimise=False)
    assert error(ours, theirs.astype(float)) < bound


@pytest.mark.parametrize("opset", [10, 17])
@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_the_function_form_is_the_same_for_every_value(opset: int, dtype: str) -> None:
    """Attributes of the function, from the caller's or by default, as ONNX Runtime reads them."""
    nodes = [
        helper.make_node("Swish", ["x"], ["a"], "/a", domain="opmx", beta=0.5),
        helper.make_node("Swish", ["a"], ["b"], "/b", domain="opmx"),
        helper.make_node("Swish", ["b"], ["y"], "/c", domain="opmx", beta=-2.0),
    ]
    composite, taken, feeds = KNOWN["Swish"], set[str](), {"x": np.linspace(-4, 4, 99).astype(NUMPY[dtype])}
    made = {function(composite, node, opset, dtype).SerializeToString() for node in nodes}
    assert len(made) == 1
    attached = model(nodes, feeds, opset, [FunctionProto.FromString(made.pop())])
    inlined = model([n for node in nodes for n in expand(node, composite, opset, dtype, taken)], feeds, opset)
    for built in (attached, inlined):
        onnx.checker.check_model(built)
    assert error(onnxruntime(attached, feeds), onnxruntime(inlined, feeds).astype(float)) < 1e-6
    attached.graph.node[1].attribute.append(helper.make_attribute("beta", 1.0))  # onnx.inliner forgets the default
    by_onnx = onnx.inliner.inline_local_functions(attached)
    assert {n.domain for n in by_onnx.graph.node} == {""}
    assert error(reference(by_onnx, feeds), reference(inlined, feeds).astype(float)) == 0


def test_a_function_has_the_attributes_that_its_calls_may_write() -> None:
    node = call("GELU", domain="pmx", approximate=0)
    made = function(KNOWN["Gelu"], node, 17, "float")
    assert [(a.name, a.i) for a in made.attribute_proto] == [("approximate", 0)]
    onnx.checker.check_model(model([node], {"x": np.zeros(1, np.float32)}, 17, [made]))
    made = function(KNOWN["Mish"], call("Mish", domain="Mish", name="/m"), 17, "float")
    assert [(a.name, a.s) for a in made.attribute_proto] == [("name", b"Mish")]
    made = function(KNOWN["HardSwish"], call("HardSwish", domain="mmdeploy", alpha=0.1667, beta=0.5), 17, "float")
    assert list(made.attribute) == ["alpha", "beta"]
    assert (made.domain, made.name, made.opset_import[0].version) == ("mmdeploy", "HardSwish", 17)


@pytest.mark.parametrize("composite", KNOWN.values(), ids=lambda c: c.name)
def test_every_listed_operator_has_a_public_source_and_a_form(composite: Composite) -> None:
    for source in [composite.source, *(s.source for s in composite.signatures)]:
        assert source.startswith("https://") or (ROOT / source).is_file(), source
    for signature in composite.signatures:
        domain, op = signature.operator
        attributes: dict[str, Any] = {k: 0.5 if v is None else v for k, v in signature.attributes.items()}
        attributes |= signature.fixed
        node = call(op, *"xb"[: signature.inputs], domain=domain, **attributes)
        nodes = expand(node, composite, 17, "float", set())
        assert nodes[-1].output[0] == "y"
        assert {n.domain for n in nodes} == {""}
        assert function(composite, node, 17, "float").name == op
        assert composites.find(domain, op, {}) is composite


@pytest.mark.parametrize(
    ("name", "node", "opset", "dtype", "reason"),
    [
        ("Mish", call("Mish", "x", "b"), 17, "float", "has 2 inputs where Mish takes 1"),
        ("Mish", helper.make_node("Mish", [], ["y"], domain="acme"), 17, "float", "has 0 inputs where Mish takes 1"),
        ("Gelu", call("BiasGelu", domain="com.microsoft"), 17, "float", "has 1 inputs where Gelu takes 2"),
        ("Gelu", call("Gelu", "x", "b", domain="com.microsoft"), 17, "float", "has 2 inputs where Gelu takes 1"),
        ("GeluTanh", call("FastGelu", "", "b", domain="com.microsoft"), 17, "float", "leaves out input 0"),
        ("Mish", helper.make_node("Mish", ["x"], ["y", "z"], domain="acme"), 17, "float", "has not one output"),
        ("Mish", helper.make_node("Mish", ["x"], [""], domain="acme"), 17, "float", "has not one output"),
        (
            "Mish",
            helper.make_node("Mish", ["x"], ["y"], domain="acme", overload="o"),
            17,
            "float",
            "of the overload 'o'",
        ),
        ("Mish", call("Mish", threshold=20.0), 17, "float", "has an attribute threshold, of which nothing is known"),
        ("Swish", call("Swish", domain="opmx", alpha=1.0), 17, "float", "has an attribute alpha, of which nothing"),
        ("Swish", call("Swish", beta=1), 17, "float", "has an attribute beta that is not a float"),
        ("HardSigmoid", call("HardSigmoid", alpha=0.2), 17, "float", "does not say beta, which has no default"),
        (
            "HardSwish",
            call("HardSwish", domain="mmdeploy", beta=0.5),
            17,
            "float",
            "does not say alpha, which has no def",
        ),
        ("Gelu", call("Gelu", domain="ai.onnx", approximate="tanh"), 17, "float", "approximate that is not 'none'"),
        ("Gelu", call("GELU", domain="pmx", approximate=1), 17, "float", "approximate that is not 0"),
        (
            "QuickGelu",
            call("QuickGelu", alpha=1e6),
            17,
            "float16",
            "has an attribute alpha of 1e+06, which is no number of type float16",
        ),
        (
            "QuickGelu",
            call("QuickGelu", alpha=math.inf),
            17,
            "float",
            "an attribute alpha of inf, which is no number of type float",
        ),
        ("Mish", call("Mish"), 17, "", "has elements of an unknown type"),
        ("Mish", call("Mish"), 17, "bfloat16", "computes in bfloat16, which no form of Mish is for"),
        ("Mish", call("Mish"), 6, "float", "is at opset 6, and exp is for 8 to"),
        ("Mish", call("Mish"), 99, "float", "is at opset 99, and exp is for 8 to"),
        ("LogSigmoid", call("LogSigmoid"), 7, "double", "is at opset 7, and exp is for 8 to"),
        ("Swish", call("Swish", "x", "b", beta=1.0), 17, "float", "has an attribute beta, of which nothing is known"),
    ],
)
def test_nothing_is_guessed(name: str, node: NodeProto, opset: int, dtype: str, reason: str) -> None:
    for make in (
        lambda: expand(node, KNOWN[name], opset, dtype, set()),
        lambda: function(KNOWN[name], node, opset, dtype),
    ):
        with pytest.raises(NoComposite, match=re.escape(reason)):
            make()


@given(beta=st.floats(-100, 100, width=16), dtype=st.sampled_from(["float16", "float"]))
@settings(max_examples=50, deadline=None)
def test_swish_with_any_factor(beta: float, dtype: str) -> None:
    """Each result within what three roundings may do to it.

    Rounding z = beta x moves sigmoid(z) by |z| times as large a share of itself (all of it is gone beyond 20), rounding
    the sigmoid and the result by one share each; a sigmoid among the smallest numbers is off by half their distance.
    """
    x = halves()[::16].astype(NUMPY[dtype])
    built, feeds = expanded("Swish.sigmoid", {"beta": beta}, x, dtype)
    share, least = {"float16": (2.0**-11, 2.0**-25), "float": (2.0**-24, 2.0**-150)}[dtype]
    wide = x.astype(float)
    truth, z = swish(wide, beta), np.minimum(np.abs(beta * wide), 20)
    bound = share * (z + 4) * np.maximum(np.abs(truth), least) + (np.abs(wide) + 1) * least
    found = reference(built, feeds).astype(float)
    finite = np.abs(truth) <= np.finfo(NUMPY[dtype]).max
    assert bool(np.all(np.abs(found - truth)[finite] <= bound[finite]))


@given(alpha=st.floats(-1000, 1000, width=16), beta=st.floats(-10, 10, width=16))
@settings(max_examples=50, deadline=None)
def test_hard_sigmoid_with_any_slope(alpha: float, beta: float) -> None:
    x = points("float")[::16]
    built, feeds = expanded("HardSigmoid.standard", {"alpha": alpha, "beta": beta}, x, "float")
    assert error(reference(built, feeds), hard_sigmoid(x.astype(float), alpha, beta)) < 1e-6


def test_names_and_documentation() -> None:
    node = call("NPUMish", domain="npu", name="/head/act")
    node.doc_string = "of the head"
    node.metadata_props.add(key="namespace", value="head/act")
    taken = {"/head/act/Mul", "/head/act/Add_output_0", "x", "y"}
    nodes = expand(node, KNOWN["Mish"], 17, "float", taken)
    assert [n.op_type for n in nodes] == ["Constant", "Constant", "Min", "Exp", "Add", "Mul", "Add", "Div", "Mul"]
    assert [n.name for n in nodes[-4:]] == ["/head/act/Mul_1", "/head/act/Add_1", "/head/act/Div", "/head/act/Mul_2"]
    assert nodes[4].output[0] == "/head/act/Add_output_0_1"
    assert (nodes[2].input[0], nodes[-1].input[0], nodes[-1].output[0]) == ("x", "x", "y")
    assert taken >= {n.name for n in nodes} | {o for n in nodes for o in n.output}
    for n in nodes:
        assert n.doc_string == "of the head"
        assert {m.key: m.value for m in n.metadata_props} == {
            "namespace": "head/act",
            PROVENANCE: "npu::NPUMish -> Mish",
        }
    again = expand(node, KNOWN["Mish"], 17, "float", taken)
    assert not {n.name for n in nodes} & {n.name for n in again}


def test_a_call_without_a_name_lends_that_of_its_output() -> None:
    nodes = expand(call("Mish", domain="", name=""), KNOWN["Mish"], 17, "float", set())
    assert nodes[-1].name == "y/Mul_1"
    assert not nodes[0].HasField("doc_string")
    assert nodes[0].metadata_props[0].value == "ai.onnx::Mish -> Mish"


def test_nodes_are_messages_of_the_class_of_the_call() -> None:
    kind = proto.message_class("NodeProto")
    nodes = expand(kind.FromString(call("SiLU").SerializeToString()), KNOWN["SiLU"], 17, "float", set())
    assert {type(n) for n in nodes} == {kind}


def test_in_a_branch_and_in_a_function_with_its_callers_attribute() -> None:
    """The body of a function may hand its own attribute on to the call: no value is known there."""
    text = """
        <ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
        g (float[N] x, bool c) => (float[N] y) {
          y = If (c) <
            then_branch = t () => (float[N] a) { a = acme.Act <factor = 0.5> (x) },
            else_branch = e () => (float[N] b) { b = acme.Swish <beta = 3.0> (x) }
          >
        }
        <domain: "acme", opset_import: ["" : 17, "acme" : 1]>
        Act <factor> (x) => (y) { y = acme.Swish <beta: float = @factor> (x) }
    """
    built = onnx.parser.parse_model(text)
    branch = built.graph.node[0].attribute[1].g
    for body in (branch, built.functions[0]):
        nodes = expand(body.node[0], KNOWN["Swish"], 17, "float", set())
        del body.node[:]
        body.node.extend(nodes)
    x = np.linspace(-4, 4, 9).astype(np.float32)
    for taken, beta in ((True, 0.5), (False, 3.0)):
        feeds = {"x": x, "c": np.array(taken)}
        assert error(onnxruntime(built, feeds), swish(x.astype(float), beta)) < 1e-6


def test_the_form_that_is_best_on_a_runtime_comes_first() -> None:
    node = call("HardSwish", domain="")
    for runtime, ops in (
        ("", ["HardSigmoid", "Mul"]),
        ("openvino", ["HardSwish"]),
        ("tensorrt", ["HardSigmoid", "Mul"]),
    ):
        assert [n.op_type for n in expand(node, KNOWN["HardSwish"], 17, "float", set(), runtime)] == ops
    early = expand(node, KNOWN["HardSwish"], 13, "float", set(), "openvino")
    assert [n.op_type for n in early] == ["HardSigmoid", "Mul"]


def test_a_composite_is_found_by_pair_or_because_a_person_said_it() -> None:
    assert composites.find("shapes", "Mish", {}) is KNOWN["Mish"]
    assert composites.find("ai.onnx", "Mish", {}) is composites.find("", "Mish", {}) is KNOWN["Mish"]
    assert composites.find("com.acme.vision", "Mish", {}) is None
    mapping = {"com.acme.vision::Mish": "Mish", "shapes::Mish": "SiLU"}
    assert composites.find("com.acme.vision", "Mish", mapping) is KNOWN["Mish"]
    assert composites.find("shapes", "Mish", mapping) is KNOWN["SiLU"]
    with pytest.raises(VexlintError, match=r"acme::M: no composite is named 'Mich'; did you mean Mish\?"):
        composites.find("shapes", "Mish", {"acme::M": "Mich"})


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "New.onnxtxt").write_text(GOOD, "utf-8")
    own = composites.load(tmp_path)
    assert list(own) == ["New"]
    found = composites.find("acme", "Neg", {}, own)
    assert found is not None
    assert [n.op_type for n in expand(call("Neg"), found, 17, "float", set())] == ["Neg"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("# New:", "# Old:"), "New.onnxtxt:1: starts with '# New: its formula'"),
        (("# https://example.org\n#", "#"), "New.onnxtxt:1: starts with '# New: its formula'"),
        (("acme::Neg (x)", "acme.Neg (x)"), "New.onnxtxt:4: should be '# stands for domain::Op"),
        (("(x)  https://example.org", "(x)"), "New.onnxtxt:4: should be '# stands for domain::Op"),
        (("Neg (x) ", "Neg <alpha : 1> (x) "), "New.onnxtxt:4: should be '# stands for domain::Op"),
        (("stands for", "stands in for"), "New.onnxtxt:4: should be '# stands for domain::Op"),
        (("form neg (float): a", "form neg float: a"), "New.onnxtxt:6: should be '# form name"),
        (("(float)", "(half)"), "New.onnxtxt:6: half is none of float16, float, double"),
        (("vexlint.composites", "acme"), "New.onnxtxt:6: is not followed by '<domain:"),
        (("# form", "# the form"), "has no '# form'"),
        ((BODY, f"{BODY}# form neg (float): b\n{BODY}"), "New.onnxtxt:1: has two forms named neg"),
        (("y = Neg (x)", "y = Neg (x"), "New.onnxtxt: form neg: [ParseError"),
        (("y = Neg (x)", "y = Neg (x) z = Neg (x)"), "form neg: the last node should make the one output"),
        (("y = Neg (x)", "y = acme.Neg (x)"), "form neg: Neg should be a standard node of one output"),
        (("y = Neg (x)", "y = Constant <value_float = 1.0> ()"), "form neg: a Constant should be written"),
    ],
)
def test_a_file_out_of_order_is_refused_by_name_and_line(
    change: tuple[str, str], complaint: str, tmp_path: Path
) -> None:
    assert change[0] in GOOD
    (tmp_path / "New.onnxtxt").write_text(GOOD.replace(*change, 1), "utf-8")
    with pytest.raises(VexlintError) as refused:
        expand(call("Neg"), composites.load(tmp_path)["New"], 17, "float", set())
    assert complaint in str(refused.value)


def test_two_files_that_claim_one_operator_are_refused(tmp_path: Path) -> None:
    (tmp_path / "New.onnxtxt").write_text(GOOD, "utf-8")
    (tmp_path / "Other.onnxtxt").write_text(GOOD.replace("# New", "# Other"), "utf-8")
    with pytest.raises(VexlintError, match=r"Other\.onnxtxt: New stands for acme::Neg too"):
        composites.load(tmp_path)


def test_the_golden_detector_computes_what_pytorch_recorded() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    built = onnx.load(ROOT / "golden_models" / "shapes_detector" / "custom_mish.onnx")
    taken = {n.name for n in built.graph.node} | {o for n in built.graph.node for o in n.output}
    nodes: list[NodeProto] = []
    for node in built.graph.node:
        composite = composites.find(node.domain, node.op_type, {}) if node.domain else None
        nodes += expand(node, composite, 17, "float", taken) if composite else [node]
    del built.graph.node[:]
    built.graph.node.extend(nodes)
    del built.opset_import[1]
    onnx.checker.check_model(built, full_check=True)
    assert len({n.name for n in nodes}) == len(nodes)
    assert sum(n.op_type == "Exp" for n in nodes) == 7 + 3
    apart = measure.drift(measure.run(built.SerializeToString(), measure.inputs()), measure.recorded()["clean"])
    assert apart.box_px < 1e-3
    assert apart.score < 1e-5
