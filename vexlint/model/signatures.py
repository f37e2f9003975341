"""The shapes that operators take and make, written as the standard's documents write them.

One signature an operator: inputs, then "->" and outputs, commas between them. A letter is a size that is the same
wherever it stands, a number that size, "_" any size, "..." any axes that are the same wherever they stand, "scalar" one
number without an axis or in a list of one, "one" one number however it lies, "any" is not looked at, "?" an axis
whose size does not follow. What an input does not say contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

Dims = tuple[int | None, ...]  # None: a size that is open or not known
Tokens = tuple[str, ...]
FREE = ("scalar", "one", "any")

TABLE = {
    "BatchNormalization": "N C ..., C, C, C, C -> N C ..., C, C, C, C",
    "CausalConvWithState": "B C L, C 1 K, C, B C P -> B C L, B C P",
    "Clip": "..., scalar, scalar -> ...",
    "Col2Im": "N _ _, S, S -> N ? ?",
    "ConvInteger": "any, any, scalar, any",
    "CumProd": "..., scalar -> ...",
    "CumSum": "..., scalar -> ...",
    "Det": "... S S -> ...",
    "Dropout": "..., scalar, scalar -> ..., ...",
    "GroupNormalization": "N C ..., _, _ -> N C ...",
    "If": "one",
    "InstanceNormalization": "N C ..., C, C -> N C ...",
    "Loop": "one, one",
    "MaxRoiPool": "N C H W, R 5",
    "MaxUnpool": "..., ..., _",
    "NonMaxSuppression": "B N 4, B C N, scalar, scalar, scalar -> ? 3",
    "OneHot": "any, one, 2",
    "QLinearConv": "any, scalar, scalar, any, any, any, scalar, scalar, _",
    "QLinearMatMul": "any, any, any, any, any, any, any, any",
    "Range": "scalar, scalar, scalar",
    "ReverseSequence": "..., _ -> ...",
    "RotaryEmbedding": "any, ..., ...",
    "LinearAttention": "B T Q, B T K, B T V, any, B T _, B T _ -> B T ?",
    "RoiAlign": "N C H W, R 4, R",
    "STFT": "B L _, scalar, W, scalar",
    "Trilu": "... H W, scalar -> ... H W",
    "BlackmanWindow": "scalar",
    "HammingWindow": "scalar",
    "HannWindow": "scalar",
    "SequenceAt": "any, scalar",
    "SequenceErase": "any, scalar",
    "SequenceInsert": "any, any, scalar",
}


class Misfit(Exception):  # noqa: N818  what is wrong with a file, not with us
    """Sizes that cannot go together; the message says which."""


def show(dims: Dims) -> str:
    return "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


def match(op: str, signature: str, inputs: Sequence[Dims | None], outputs: int) -> list[Dims | None]:
    """The shapes of the outputs by a signature. Raises Misfit where an input does not fit it."""
    wanted, made = _parsed(signature)
    sizes: dict[str, int | None] = {}
    rest: list[Dims] = []
    for position, (tokens, dims) in enumerate(zip(wanted, inputs, strict=False)):
        if dims is not None and not _fits(tokens, dims, sizes, rest):
            bound = ", ".join(f"{t} = {sizes[t]}" for t in dict.fromkeys(tokens) if sizes.get(t) is not None)
            due = " ".join(tokens) if tokens[0] in FREE else f"[{','.join(tokens)}]"
            with_sizes = f" with {bound}" if bound else f" like {show(rest[0])}" if rest and "..." in tokens else ""
            raise Misfit(f"input {position} of {op} is {show(dims)} where {due}{with_sizes} is due")
    known = [_result(tokens, sizes, rest) for tokens in made[:outputs]]
    return [*known, *[None] * (outputs - len(known))]


@cache
def _parsed(signature: str) -> tuple[list[Tokens], list[Tokens]]:
    left, _, right = signature.partition("->")
    wanted, made = ([tuple(part.split()) for part in side.split(",")] if side else [] for side in (left, right))
    return wanted, made


def _fits(tokens: Tokens, dims: Dims, sizes: dict[str, int | None], rest: list[Dims]) -> bool:
    """Whether a shape fits its tokens; what letters and "..." stand for is kept."""
    if tokens[0] in FREE:
        one = all(d in (1, None) for d in dims)
        return tokens[0] == "any" or (one and (tokens[0] == "one" or len(dims) < 2))
    if "..." in tokens:
        at = tokens.index("...")
        tail = len(tokens) - at - 1
        if len(dims) < at + tail or not _same(dims[at : len(dims) - tail], rest):
            return False
        tokens = tokens[:at] + tokens[at + 1 :]
        dims = dims[:at] + dims[len(dims) - tail :]
    return len(tokens) == len(dims) and all(_size(t, d, sizes) for t, d in zip(tokens, dims, strict=True))


def _size(token: str, size: int | None, sizes: dict[str, int | None]) -> bool:
    if token == "_" or size is None:
        sizes.setdefault(token, None)
        return True
    wanted = int(token) if token.isdigit() else sizes.get(token)
    if wanted is None:
        sizes[token] = size
    return wanted in (None, size)


def _same(dims: Dims, rest: list[Dims]) -> bool:
    if not rest:
        rest.append(dims)
        return True
    if len(rest[0]) != len(dims) or any(None not in (a, b) and a != b for a, b in zip(rest[0], dims, strict=True)):
        return False
    rest[0] = tuple(b if a is None else a for a, b in zip(rest[0], dims, strict=True))
    return True


def _result(tokens: Tokens, sizes: dict[str, int | None], rest: list[Dims]) -> Dims | None:
    if "..." in tokens and not rest:
        return None
    parts = [rest[0] if t == "..." else (int(t) if t.isdigit() else sizes.get(t),) for t in tokens]
    return tuple(size for part in parts for size in part)
