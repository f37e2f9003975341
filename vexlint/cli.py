"""The command line: `vexlint.commands` put together.

stdout carries the result and nothing else; progress and messages go to stderr. Exit codes: 0 clean, 1 findings at or
above --fail-on, 2 could not judge (a file, an option, a configuration).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Annotated, Any, NoReturn

import typer

from vexlint import __version__
from vexlint.commands import baseline
from vexlint.commands.check import check
from vexlint.commands.common import NOT_JUDGED
from vexlint.commands.fix import fix
from vexlint.commands.nms import nms
from vexlint.commands.pages import contract, explain, rules
from vexlint.commands.probe import probe
from vexlint.commands.show import show
from vexlint.commands.targets import targets
from vexlint.commands.verify import verify
from vexlint.values import VexlintError

INTERRUPTED = 130  # what typer makes of Ctrl-C, where it does not raise Abort

app = typer.Typer(
    name="vexlint",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (check, fix, nms, verify, probe, contract, show, explain, rules, targets):
    app.command()(command)
app.add_typer(baseline.app, name="baseline")


def main() -> None:
    """The `vexlint` program. A user's mistake is a sentence on stderr and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _stopped)
    gc.disable()  # a run is short and its objects live to its end: collecting would cost a third of a large check
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()  # here, where a failure can still be said
    except VexlintError as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted")
    except BrokenPipeError:  # the reader of stdout went away: vexlint check … | head
        sys.stderr.close()
        sys.exit(NOT_JUDGED)
    except OSError as error:
        if error.filename is not None:  # no stream of ours
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left over goes nowhere at exit
        _fail(f"the output cannot be written: {error.strerror}")
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _complain(error)
    gc.freeze()  # what goes with the process need not be taken apart first
    if code == INTERRUPTED:
        _fail("interrupted")
    sys.exit(code)


def _stopped(number: int, _: object) -> NoReturn:
    """What a cancelled job sends: an exit like any other, so that children and temporary files go."""
    sys.exit(128 + number)


def _complain(error: Any) -> NoReturn:
    """typer's own complaints; without any word on the command line it is the help, and no mistake."""
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stdout.write(error.format_message() + "\n")
        sys.exit(NOT_JUDGED)
    program = error.ctx.command_path if getattr(error, "ctx", None) else "vexlint"
    _fail(f"{error.format_message().rstrip('.')}; see {program} --help")


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"vexlint: {message}\n")
    sys.exit(NOT_JUDGED)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"vexlint {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Finds what a runtime will refuse or silently compute differently in an exported ONNX vision model."""
