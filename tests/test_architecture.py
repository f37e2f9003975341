"""The house: imports go down, public names, what the wheel holds, what an ordinary check imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import vexlint
from vexlint import rulebook

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "vexlint"
CLEAN = ROOT / "golden_models" / "shapes_detector" / "clean.onnx"

# The rooms, lowest first; a module imports its own room and those before it (docs/design.md)
ROOMS = [
    ("values", "outcomes", "files"),
    ("model",),
    ("config", "tables", "changes", "targets", "composites", "inline"),
    ("checks",),
    ("probing",),
    ("rulebook",),
    ("engine", "paths", "show"),
    ("declarations", "settings", "contract", "baseline", "repository"),
    ("draft",),
    ("fixes",),
    ("runtimes",),
    ("probes",),
    ("verify",),
    ("nms",),
    ("fixer",),
    ("repairs",),
    ("report",),
    ("commands",),
    ("cli",),
]
# What a room does not import although it lies below
NEVER = {
    "report": {"model", "config", "tables", "targets", "checks", "engine", "runtimes", "verify"},
    "config": {"model"},
    "tables": {"model", "config"},
    "targets": {"model"},
    "runtimes": {"model", "config", "tables", "targets", "checks", "engine"},
}


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "vexlint"


def imports(path: Path) -> set[str]:
    """The modules of vexlint that a file imports, anywhere in it, type checking included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "vexlint":
            names = {f"{node.module}.{a.name}" for a in node.names} if node.module == "vexlint" else {node.module}
            found |= {n for n in names if n != "vexlint.__version__"}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] == "vexlint"}
    return found


MODULES = [p for p in sorted(PACKAGE.rglob("*.py")) if "data" not in p.parts]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    height = {name: level for level, names in enumerate(ROOMS) for name in names}
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own == "__main__":
        assert imports(path) == {"vexlint.cli"}
        return
    if own == "__init__":
        assert imports(path) == set()
        return
    for module in imports(path):
        other = room(module)
        assert height[other] <= height[own], f"{own} imports {other}, which lies above it"
        assert other not in NEVER.get(own, set()), f"{own} should not know {other}"


def test_public_names() -> None:
    names = [n for n, v in vars(vexlint).items() if not n.startswith("_") and not isinstance(v, ModuleType)]
    assert names == [], "the program is the interface; the package offers only __version__"


def test_one_version_everywhere() -> None:
    """The changelog's newest section, what docs/gating.md pins, and no rule is newer."""
    changes, gating = ((ROOT / name).read_text("utf-8") for name in ("CHANGELOG.md", "docs/gating.md"))
    assert re.findall(r"^## ([\d.]+)", changes, re.MULTILINE)[0] == vexlint.__version__
    assert set(re.findall(r"\bv(\d+\.\d+\.\d+)\b", gating)) == {vexlint.__version__}
    newest = [int(part) for part in vexlint.__version__.split(".")]
    assert all([int(part) for part in rule.since.split(".")] <= newest for rule in rulebook.load().values())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        return {n for n in archive.namelist() if ".dist-info/" not in n}


def test_the_wheel_holds_the_package_and_the_rules_and_nothing_else(wheel: set[str]) -> None:
    package = {str(p.relative_to(ROOT)) for p in PACKAGE.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    rules = {f"vexlint/{p.relative_to(ROOT)}" for p in (ROOT / "rules").rglob("*") if p.is_file()}
    assert wheel == package | rules


def test_rules_are_found_in_an_installed_wheel(wheel: set[str], tmp_path: Path) -> None:
    """As pip would unpack it: rules inside the package, no checkout around."""
    assert "vexlint/rules/VEX301-resize-align-corners.md" in wheel
    for name in wheel:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source = ROOT / (name.removeprefix("vexlint/") if name.startswith("vexlint/rules/") else name)
        target.write_bytes(source.read_bytes())
    code = "from vexlint import rulebook, files; print(files.rules_folder(), len(rulebook.load()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    folder, count = done.stdout.split()
    assert Path(folder) == tmp_path / "vexlint" / "rules"
    assert int(count) == len(list((ROOT / "rules").glob("VEX*.md")))


def test_check_of_an_ordinary_file_imports_neither_numpy_nor_onnx() -> None:
    code = (
        "import sys\n"
        f"sys.argv = ['vexlint', 'check', {str(CLEAN)!r}]\n"
        "from vexlint.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code in (0, None), end.code\n"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'polygraphy', 'onnx_graphsurgeon', 'onnxsim', 'rich'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize("folder", sorted({p.parent for p in MODULES}), ids=lambda p: p.name)
def test_no_module_is_called_like_one_of_pythons(folder: Path) -> None:
    """A child that is started as a script has its folder first on the path: it would import ours instead."""
    ours = {p.stem for p in folder.glob("*.py")}
    scripts = [p for p in folder.glob("*.py") if '__name__ == "__main__"' in p.read_text("utf-8")]
    assert not scripts or not ours & sys.stdlib_module_names, ours & sys.stdlib_module_names
