"""Mistakes in operators and imports."""

from __future__ import annotations

import onnx
from onnx import ModelProto, helper

from tests.mutants.common import (
    Dice,
    misspelt,
    nodes,
    pick,
)


def misspelt_operator(model: ModelProto, dice: Dice) -> bool:
    node = dice.choice(nodes(model))
    node.op_type = misspelt(node.op_type, dice)
    return True


def foreign_domain(model: ModelProto, dice: Dice) -> bool:
    node = dice.choice(nodes(model))
    taken = {entry.domain for entry in model.opset_import}
    node.domain = dice.choice(["com.example.ops", "com.microsoft", "ai.onnx.ml", "ai.onnx.contrib", "mmdeploy"])
    if node.domain not in taken and dice.random() < 0.7:
        model.opset_import.append(helper.make_opsetid(node.domain, 1))
    return True


def dropped_import(model: ModelProto, dice: Dice) -> bool:
    index = pick(model.opset_import, dice)
    if index is None:
        return False
    del model.opset_import[index]
    return True


def import_too_old(model: ModelProto, dice: Dice) -> bool:
    entry = dice.choice(model.opset_import)
    if entry.version <= 1:
        return False
    entry.version = dice.randrange(1, entry.version)
    return True


def import_too_new(model: ModelProto, dice: Dice) -> bool:
    entry = dice.choice(model.opset_import)
    newest = onnx.defs.onnx_opset_version() if entry.domain in ("", "ai.onnx") else 6
    entry.version = dice.choice([newest + 1, newest + 5, 99, *range(entry.version + 1, newest + 1)])
    return True
