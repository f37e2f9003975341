"""What the numbers of a box are made of: each column of a tensor as a polynomial of what the graph does not compute.

`Tracer.trace` follows arithmetic back to constants, network outputs and what it does not understand, all three atoms of
the polynomial. Two columns can then be compared: x1 = c - w/2 and x2 = c + w/2 have c in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from vexlint.model import picks
from vexlint.model.graph import Node, Value
from vexlint.model.picks import Pick

Monomial = tuple[int, ...]  # atoms by number, ascending, a repeated one for a power; () is the number 1
Poly = dict[Monomial, float]
Nature = Literal["constant", "network", "unknown"]

DEEP = 120  # nodes followed on one path
MOST = 48  # terms of one polynomial
NUMBER: Monomial = ()
NETWORK = ("Conv", "ConvTranspose", "QLinearConv", "ConvInteger", "DeformConv", "Gemm")
# What makes no location of its own where its first input has none
PASSING = (
    *("Reshape", "Transpose", "Split", "Slice", "Gather", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Cast"),
    *("Sigmoid", "Softmax", "Exp", "Relu", "LeakyRelu", "Clip", "BatchNormalization", "Resize", "Dropout", "Softplus"),
    *("QuantizeLinear", "DequantizeLinear", "ReduceSum", "ReduceMean", "Expand", "HardSigmoid", "Tanh", "MaxPool"),
)
FUNCTIONS = ("Exp", "Sigmoid", "Tanh", "Softplus", "Relu", "Sqrt", "Log", "Abs", "Floor", "Ceil", "Round", "Mod", "Pow")


@dataclass(frozen=True, slots=True)
class Atom:
    """A number that is taken as given. `maker` is the node that makes it, None for an input or a constant; `output`
    which of the maker's outputs it is; `value` the tensor it stands in, at `pick`."""

    nature: Nature
    value: Value
    pick: Pick
    maker: Node | None
    output: int = 0
    inverse: bool = False


class Tracer:
    """The polynomials of one model, each found once. `sums` are the Adds that were met, with what was picked."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.sums: list[tuple[Node, Pick]] = []
        self._numbers: dict[object, int] = {}
        self._found: dict[tuple[str, str, Pick], Poly] = {}
        self._natures: dict[tuple[str, str], Nature] = {}

    def trace(self, value: Value | None, pick: Pick, depth: int = 0) -> Poly:
        """The picked element of a value as a polynomial."""
        if value is None:
            return {}
        key = (*_name(value), pick)
        if key not in self._found:
            self._found[key] = {}  # what a value that depends on itself finds
            self._found[key] = self._opaque(value, pick) if depth > DEEP else self._made(value, pick, depth)
        return self._found[key]

    def columns(self, value: Value | None) -> list[Poly]:
        """The four numbers of boxes [..., 4]."""
        return [self.trace(value, ((-1, k),)) for k in range(4)]

    def natures(self, poly: Poly) -> set[Nature]:
        """What the atoms of a polynomial are."""
        return {self.atoms[a].nature for monomial in poly for a in monomial}

    def constant(self, monomial: Monomial) -> bool:
        """Whether a term is the same for every picture, and no plain number: where on the grid a place is."""
        return monomial != NUMBER and all(self.atoms[a].nature == "constant" for a in monomial)

    def _made(self, value: Value, pick: Pick, depth: int) -> Poly:
        if value.is_constant:
            return self._written(value, pick)
        maker = value.producer
        if maker is None or maker.domain:
            return self._opaque(value, pick)
        found = self._computed(maker, pick, depth)
        if found is None and (step := picks.back(maker, value.name, pick)) is not None:
            source = self.trace(maker.input(step.position), step.pick, depth + 1)
            found = self._elsewhere(source, maker) if step.moved else source
        return self._opaque(value, pick) if found is None or len(found) > MOST else found

    def _computed(self, node: Node, pick: Pick, depth: int) -> Poly | None:
        """The result of arithmetic; None where the operator is none."""
        if node.op == "MatMul":
            return self._turned(node, pick, depth)
        if node.op not in ARITHMETIC and node.op not in FUNCTIONS:
            return None
        given = [v for i in range(len(node.inputs)) if (v := node.input(i)) is not None]
        if len(given) < OPERANDS.get(node.op, 1):
            return None
        parts = [self.trace(v, picks.fit(v, pick), depth + 1) for v in given]
        if node.op == "Add":
            self.sums.append((node, pick))
        if node.op in FUNCTIONS or (node.op == "Div" and _whole(node)):
            return self._function(node, parts, pick)
        if node.op == "Div":
            parts[1] = self._inverse(parts[1], given[1], node)
        return ARITHMETIC[node.op](parts)

    def _function(self, node: Node, parts: list[Poly], pick: Pick) -> Poly:
        if node.op == "Pow" and parts[1] == {NUMBER: 2.0}:
            return times(parts[0], parts[0])
        nature: Nature = "network" if self.natures(parts[0]) == {"network"} else "unknown"
        if self.natures(parts[0]) <= {"constant"}:
            nature = "constant"
        key = (node.op, *(tuple(sorted(p.items())) for p in parts))
        return self._atom(key, Atom(nature, Value(node.graph, node.outputs[0]), pick, node))

    def _turned(self, node: Node, pick: Pick, depth: int) -> Poly | None:
        """Boxes times a small constant matrix: centre and size become corners in one MatMul."""
        matrix, chosen = node.input(1), dict(pick)
        shape = matrix.shape if matrix else None
        numbers = matrix.constant if matrix else None
        if shape is None or shape.rank != 2 or numbers is None or shape.size(0) != 4 or -1 not in chosen:
            return None
        wide = shape.size(1) or 0
        column = [float(numbers[row * wide + chosen[-1]]) for row in range(4)]
        rows = [self.trace(node.input(0), tuple(sorted((chosen | {-1: k}).items())), depth + 1) for k in range(4)]
        return total([scaled(poly, factor) for poly, factor in zip(rows, column, strict=True)])

    def _inverse(self, poly: Poly, value: Value, node: Node) -> Poly:
        if set(poly) == {NUMBER} and poly[NUMBER]:
            return {NUMBER: 1 / poly[NUMBER]}
        natures = self.natures(poly)
        nature: Nature = "constant" if natures == {"constant"} else "unknown"
        key = ("1/", tuple(sorted(poly.items())))
        return self._atom(key, Atom(nature, value, (), node, inverse=True))

    def _written(self, value: Value, pick: Pick) -> Poly:
        """A constant as a number where all that is picked is one number."""
        shape, numbers = value.shape, value.constant
        if numbers is not None and all(isinstance(n, int | float) for n in numbers):
            chosen = numbers if shape is None else selected(numbers, list(shape.dims), pick)
            if len(set(chosen)) == 1:
                return {NUMBER: float(chosen[0])} if chosen[0] else {}
        return self._opaque(value, pick)

    def _opaque(self, value: Value, pick: Pick) -> Poly:
        maker = value.producer
        output = maker.outputs.index(value.name) if maker else 0
        return self._atom((*_name(value), pick), Atom(self.nature(value), value, pick, maker, output))

    def _elsewhere(self, poly: Poly, node: Node) -> Poly:
        """The same numbers at the rows that a node chose."""
        found: Poly = {}
        for monomial, factor in poly.items():
            there = [self._number(("rows", node.graph.path, node.index, a), self.atoms[a]) for a in monomial]
            found[tuple(sorted(there))] = factor
        return found

    def _atom(self, key: object, atom: Atom) -> Poly:
        return {(self._number(key, atom),): 1.0}

    def _number(self, key: object, atom: Atom) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.atoms)
            self.atoms.append(atom)
        return self._numbers[key]

    def nature(self, value: Value, depth: int = 0) -> Nature:
        """Whether a value is the same for every picture, comes out of the network as it is, or is not understood."""
        key = _name(value)
        if key not in self._natures:
            self._natures[key] = "unknown"  # what a value that depends on itself finds
            self._natures[key] = self._judged(value, depth)
        return self._natures[key]

    def _judged(self, value: Value, depth: int) -> Nature:
        maker = value.producer
        if value.is_constant or (maker is not None and maker.op in ("Shape", "Size")):
            return "constant"
        if maker is None:
            home = value.home
            return "network" if home is not None and value.name in home.model.graph.inputs else "unknown"
        if maker.op in NETWORK or (maker.op == "MatMul" and _weighs(maker)):
            return "network"
        if maker.domain or depth > DEEP:
            return "unknown"
        given = [self.nature(v, depth + 1) for i in range(len(maker.inputs)) if (v := maker.input(i)) is not None]
        return _made_of(maker, given)


def _made_of(node: Node, given: list[Nature]) -> Nature:
    if given and set(given) == {"constant"} and not node.graph.captured.get(node.index):
        return "constant"
    if node.op == "Concat":
        return "network" if set(given) == {"network"} else "unknown"
    return "network" if node.op in PASSING and given and given[0] == "network" else "unknown"


def _weighs(node: Node) -> bool:
    """Whether a MatMul is a layer, not a change of coordinates: by a constant of more than a few rows."""
    for position in (0, 1):
        value = node.input(position)
        shape = value.stated if value is not None and value.is_constant else None
        if shape is not None and (shape.size(-2 if shape.rank > 1 else -1) or 0) >= 8:
            return True
    return False


def _whole(node: Node) -> bool:
    """Whether a node reads whole numbers: their quotient is cut off."""
    kinds = node.graph.model.reads.get(node, ())
    return bool(kinds) and "int" in kinds[0].type


def _name(value: Value) -> tuple[str, str]:
    home = value.home
    return (home.path if home else "", value.name)


def selected(numbers: list[float], dims: list[object], pick: Pick) -> list[float]:
    """The elements of a row-major tensor that a pick leaves."""
    chosen = {len(dims) + axis: index for axis, index in pick if -len(dims) <= axis < 0}
    found = numbers
    for axis in sorted(chosen):
        length = dims[axis]
        inner = 1
        for dim in dims[axis + 1 :]:
            inner *= dim if isinstance(dim, int) else 1
        if not isinstance(length, int) or not length or chosen[axis] >= length:
            return []
        found = [
            n for start in range(chosen[axis] * inner, len(found), length * inner) for n in found[start : start + inner]
        ]
        dims = [*dims[:axis], 1, *dims[axis + 1 :]]
    return found


def scaled(poly: Poly, factor: float) -> Poly:
    """A polynomial times a number."""
    return {m: f * factor for m, f in poly.items()}


def times(one: Poly, other: Poly) -> Poly:
    """The product of two polynomials."""
    found: Poly = {}
    for a, x in one.items():
        for b, y in other.items():
            both = tuple(sorted(a + b))
            found[both] = found.get(both, 0) + x * y
    return _clean(found)


def total(parts: Iterable[Poly]) -> Poly:
    """The sum of polynomials."""
    found: Poly = {}
    for poly in parts:
        for monomial, factor in poly.items():
            found[monomial] = found.get(monomial, 0) + factor
    return _clean(found)


def _clean(poly: Poly) -> Poly:
    return {m: f for m, f in poly.items() if abs(f) > 1e-12}


def _other(parts: list[Poly]) -> Poly | None:
    """Of several operands the one that is no plain number: the others bound it, or fill up."""
    rest = [p for p in parts if set(p) - {NUMBER}]
    return rest[0] if len(rest) == 1 else None


def _minus(parts: list[Poly]) -> Poly:
    return total([parts[0], scaled(parts[1], -1)])


OPERANDS = {"Sub": 2, "Mul": 2, "Div": 2, "Pow": 2, "Mod": 2, "Where": 3}  # the fewest; else 1
ARITHMETIC: dict[str, Callable[[list[Poly]], Poly | None]] = {
    "Add": total,
    "Sum": total,
    "Sub": _minus,
    "Neg": lambda parts: scaled(parts[0], -1),
    "Mul": lambda parts: times(parts[0], parts[1]),
    "Div": lambda parts: times(parts[0], parts[1]),  # by the inverse
    "Where": lambda parts: _other(parts[1:]),
    "Clip": lambda parts: parts[0],
    "Min": _other,
    "Max": _other,
}
