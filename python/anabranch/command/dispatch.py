"""Entry point of the `anabranch` command: native commands run in the native main, the others in a module each.

A Python command NAME is `anabranch.command.NAME.main(arguments) -> int`; `trace plot` is in the module `trace_plot`.
The module is imported on use, so that other commands do not wait for its libraries.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import cast

from anabranch import _native
from anabranch.command import streams
from anabranch.command.status import FAILED, INPUT_ERROR, INTERRUPTED
from anabranch.errors import AnabranchError, PlanError, ScenarioError, SchemeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command in `arguments` (default: those of the process) and returns its exit status.

    The status is 0 for success, 1 for a failure, 2 for a wrong command line, scenario, scheme or plan, and 130 for
    Ctrl-C. Call the function last in a process, since native commands change the handling of SIGINT.
    """
    streams.prepare()
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name in map(str.split, _native.python_commands()):
        if words == ["help", *name]:
            words = [*name, "--help"]
        if words[: len(name)] == name:
            return _guarded("_".join(name), words[len(name) :])
    return _run_native(words)


def _run_native(words: list[str]) -> int:
    # Python's handler would delay Ctrl-C until the command ends. A signal that was ignored from the start stays
    # ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command(["anabranch", *words])


def _guarded(name: str, arguments: list[str]) -> int:
    """Runs a Python command, and converts its exceptions to an exit status and a message."""
    try:
        return _run_python(name, arguments)
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr)
        return INTERRUPTED
    except (ScenarioError, SchemeError, PlanError) as error:
        print(error, file=sys.stderr)
        return INPUT_ERROR
    except AnabranchError as error:
        print(error, file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        if not _is_output_closed():
            raise
        streams.abandon_output()
        return 0
    except OSError as error:
        if streams.is_of_output(error):
            print(f"standard output: {error.strerror}; the result is not written completely", file=sys.stderr)
            streams.abandon_output()
        else:
            print(_message(error), file=sys.stderr)
        return FAILED


def _run_python(name: str, arguments: list[str]) -> int:
    command = importlib.import_module(f"anabranch.command.{name}")
    try:
        return cast(int, command.main(arguments))
    finally:
        # The streams are flushed now because an error can be reported with its cause. This is not possible while the
        # interpreter ends.
        sys.stdout.flush()
        streams.raise_output_error()


def _is_output_closed() -> bool:
    """Returns `True` if the reader of standard output has ended, such as `head`."""
    if sys.platform == "win32":  # which has no such error
        return False
    output = select.poll()
    output.register(sys.stdout, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in output.poll(0))


def _message(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{os.fsdecode(error.filename)}: {error.strerror}"
