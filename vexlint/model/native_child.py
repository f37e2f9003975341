"""The child process of `native`: answers requests on stdin with ONNX's native parser, printer, checker and shape
inference.

Started as a script with the folder of the installed onnx package as its one argument. A request is an operation
(b"i" infer, b"p" parse, b"c" check, b"t" print), the payload's length as uint64, little endian, and the payload; an
answer has the same form with the status b"o" (ok) or b"e" (ONNX's error text).
"""

import importlib.util
import os
import struct
import sys
from pathlib import Path
from types import ModuleType

HEADER = struct.Struct("<cQ")
MEMORY = 8 << 30  # bytes of address space: a file must not take the machine down


def load_extension(package: Path) -> ModuleType:
    """ONNX's extension module by its file, 10 ms, without the package around it (200 ms, numpy, protobuf).

    That is no public interface, so the package itself is the fall-back.
    """
    for file in sorted(package.glob("onnx_cpp2py_export*")):
        if file.suffix in (".so", ".pyd"):
            spec = importlib.util.spec_from_file_location("onnx_cpp2py_export", file)
            if spec is not None and spec.loader is not None:
                module = importlib.util.module_from_spec(spec)
                try:
                    spec.loader.exec_module(module)
                    module.shape_inference.infer_shapes  # noqa: B018  present, or fall back
                    module.parser.parse_model  # noqa: B018
                except (ImportError, AttributeError):
                    break
                return module
    sys.path.append(str(package.parent))
    import onnx

    return onnx.onnx_cpp2py_export


def answer(onnx_cpp: ModuleType, operation: bytes, payload: bytes) -> bytes:
    """The result of one request; raises ValueError with ONNX's words where it refuses."""
    if operation == b"i":
        # check_type=False, strict_mode=False: report what can be known; data_prop=True costs nothing
        return bytes(onnx_cpp.shape_inference.infer_shapes(payload, False, False, True))
    if operation == b"c":
        length = 4 + int.from_bytes(payload[:4], "little")
        os.chdir(payload[4:length])
        onnx_cpp.checker.check_model(payload[length:], True)
        return b""
    if operation == b"t":
        return str(onnx_cpp.printer.model_to_text(payload)).encode()
    ok, error, model = onnx_cpp.parser.parse_model(payload.decode("utf-8"))
    if not ok:
        raise ValueError(error.decode("utf-8", "replace"))
    return bytes(model)


def limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    limit_memory()
    # the native code prints on stdout: answers go through a copy of it, prints to stderr
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    onnx_cpp = load_extension(Path(sys.argv[1]))
    while head := sys.stdin.buffer.read(HEADER.size):
        operation, length = HEADER.unpack(head)
        payload = sys.stdin.buffer.read(length)
        try:
            status, result = b"o", answer(onnx_cpp, operation, payload)
        except Exception as error:
            status, result = b"e", str(error).encode()
        out.write(HEADER.pack(status, len(result)) + result)
        out.flush()


if __name__ == "__main__":
    main()
