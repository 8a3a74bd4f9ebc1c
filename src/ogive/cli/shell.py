"""The command `ogive`: its list of commands, and what becomes of errors.

Exit codes: 0; 2 for a user's error, with one line on standard error; 1 for a fault of ours; 130 after Ctrl-C and 141
after a closed pipe, as shells expect.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, TextIO

import typer

from .. import __version__
from ..errors import NumericalError, OgiveError
from .answers import predict, prob, sample
from .bench import app as bench
from .demo import demo
from .fitting import fit
from .inspection import info, score
from .pictures import plot

__all__ = ["main"]

app = typer.Typer(
    name="ogive",
    help="Predict whole distributions: fit a table, then ask for quantiles, draws, probabilities and pictures.",
    epilog="Start with: ogive demo",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (fit, predict, sample, prob, score, info, plot, demo):
    app.command()(command)
app.add_typer(bench)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = (sys.argv[1:] if arguments is None else list(arguments)) or ["--help"]
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            code = _run(arguments)
            sys.stdout.flush()
        except BrokenPipeError:
            # Nobody reads any more: what is still buffered must not raise again when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        except KeyboardInterrupt:
            return _fail("stopped.", 130)
        except Exception as error:
            return _explain(error)
    return code


def _run(arguments: Sequence[str]) -> int:
    """Run typer's command without typer's own way to print errors."""
    try:
        command = typer.main.get_command(app)
        with command.make_context("ogive", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return 0


def _explain(error: Exception) -> int:
    """One line about an error, and the exit code that says whose it is."""
    if os.environ.get("OGIVE_DEBUG"):
        traceback.print_exception(error)
    if message := getattr(error, "format_message", None):  # typer's own errors
        path = getattr(getattr(error, "ctx", None), "command_path", "ogive")
        return _fail(f"{message().strip().rstrip('.')}. Try: {path} --help", 2)
    if isinstance(error, OgiveError) and not isinstance(error, NumericalError):
        return _fail(str(error), 2)
    if isinstance(error, OSError):
        what = "a file" if error.filename is None else f"'{error.filename}'"
        return _fail(f"{what} cannot be used: {error.strerror or error}. Check the path, its rights and space.", 2)
    if isinstance(error, ImportError) and error.name == "matplotlib":
        return _fail(str(error), 2)
    fault = f"a fault of ogive itself, not of yours: {type(error).__name__}: {error}"
    return _fail(f"{fault}. Please report it, with what OGIVE_DEBUG=1 shows.", 1)


def _fail(message: str, code: int) -> int:
    """Say what went wrong, in one line."""
    print("ogive:", " ".join(message.split()), file=sys.stderr)
    return code


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print("ogive: warning:", " ".join(str(message).split()), file=sys.stderr)


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"ogive {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    """Options of the command itself; its help is above."""
