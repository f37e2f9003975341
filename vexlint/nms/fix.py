"""VEX501: the contract's NMS behind the head. Changes what the model gives, on purpose."""

from __future__ import annotations

from collections.abc import Sequence

from vexlint.checks.context import Context
from vexlint.model.model import Model
from vexlint.nms import graft
from vexlint.nms.insert import Options, digest, plan
from vexlint.values import Change, Finding, VexlintError


def nms_inside(model: Model, findings: Sequence[Finding], context: Context) -> list[Change]:
    """Puts the tail on that `vexlint nms` would with the contract's layout and thresholds. Raises VexlintError with the
    question where a head is not sure."""
    try:
        made = plan(model, Options(), context.contract)
    except VexlintError as error:
        raise VexlintError(f"{error} (VEX501; --ignore VEX501 leaves NMS outside)") from None
    graft.insert(model.proto, made.head, made.settings, made.piece, digest(model.path))
    return [Change("VEX501", findings[0].place, str(made.head), ", ".join(made.names))]
