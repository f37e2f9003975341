"""The node tests that the installed onnx package generates, as models with their inputs."""

from __future__ import annotations

import random
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper


@dataclass(frozen=True, slots=True)
class NodeTest:
    """`inputs` are arrays by input name; lists and None for sequences and optionals."""

    name: str
    model: onnx.ModelProto
    inputs: dict[str, Any]


def node_tests(newest: int = 0) -> Iterator[NodeTest]:
    """Every generated test that carries a model. With `newest`, single nodes are stamped with any opset up to it under
    which the operator means the same, chosen by the name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is None or not case.data_sets:
            continue
        names = [value.name for value in case.model.graph.input]
        inputs = dict(zip(names, case.data_sets[0][0], strict=False))
        model = stamped(case.model, newest, case.name) if newest else case.model
        yield NodeTest(case.name, model, inputs)


def stamped(model: onnx.ModelProto, newest: int, name: str) -> onnx.ModelProto:
    """A copy whose opset is one of those that mean the same, the IR version that of the opset."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    main = next((entry for entry in copy.opset_import if entry.domain in ("", "ai.onnx")), None)
    if main is not None and len(copy.graph.node) == 1 and not copy.functions:
        op = copy.graph.node[0].op_type
        later = [o for o in range(main.version, newest + 1) if _since(op, o) == _since(op, main.version)]
        main.version = random.Random(zlib.crc32(name.encode())).choice(later or [main.version])
    copy.ir_version = helper.find_min_ir_version_for(copy.opset_import, ignore_unknown=True)
    return copy


def _since(op: str, opset: int) -> int:
    try:
        return int(onnx.defs.get_schema(op, opset, "").since_version)
    except onnx.defs.SchemaError:
        return 0


def frozen(test: NodeTest) -> NodeTest:
    """The same test with every tensor input but the first as an initializer, as weights are."""
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    kept = dict(test.inputs)
    for value in list(model.graph.input)[1:]:
        array = kept.get(value.name)
        if value.type.HasField("tensor_type") and array is not None and hasattr(array, "dtype"):
            tensor = numpy_helper.from_array(np.asarray(array), value.name)
            if tensor.data_type == value.type.tensor_type.elem_type:
                model.graph.initializer.append(tensor)
                model.graph.input.remove(value)
                del kept[value.name]
    return NodeTest(f"{test.name}/weights", model, kept)
