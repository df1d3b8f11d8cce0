"""The one place where an error becomes what a person reads: one sentence and a way out."""

from __future__ import annotations

import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from typing import TextIO, cast

from takopi.core.errors import ConfigInvalid, TakopiError

DONE = 0
USER = 1
ENVIRONMENT = 2
ABORTED = 4

GREEN, YELLOW, RED = 32, 33, 31

_COMMAND = re.compile(r"`[^`]*`")
_GLUE = "\0"
"""Stands for a blank where a line must not be broken."""


def ending(command: Callable[[], object], *, debug: bool) -> int:
    """Run a command to its end and say with which code the process ends."""
    try:
        try:
            code = command()
        except BaseExceptionGroup as group:
            raise plain(group) from None
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has had enough; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return USER
    except KeyboardInterrupt:
        _say("stopped")
        return ABORTED
    # The last door: a person gets a sentence, not a stack.
    except Exception as error:  # ruff: ignore[blind-except]
        if debug:
            traceback.print_exc()
        return report(error)
    # Typer hands an `Exit` over as its code, and a command's own value is None.
    return code if isinstance(code, int) else DONE


def plain(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What tasks came to, for one person: the Ctrl-C, if there was one, or else the first error.

    A group that holds something unforeseen among others stays as it is.
    """
    errors = list(_each(group))
    stopped = next((error for error in errors if isinstance(error, KeyboardInterrupt)), None)
    if stopped is not None:
        return stopped
    foreseen = all(isinstance(error, TakopiError) for error in errors)
    return errors[0] if foreseen or len(errors) == 1 else group


def _each(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _each(cast("BaseExceptionGroup[BaseException]", error))
        else:
            yield error


def report(error: Exception) -> int:
    """Tell a person what went wrong and return the exit code."""
    match error:
        case ConfigInvalid(problems=(problem,)):
            tell_error(_joined(problem.key, problem.what), problem.way_out)
        case ConfigInvalid():
            tell_error(f"the config has {len(error.problems)} problems")
            for problem in error.problems:
                way_out = f" ({problem.way_out})" if problem.way_out else ""
                _say(f"  {_joined(problem.key, problem.what)}{way_out}")
        case TakopiError():
            tell_error(error.what, error.way_out)
        case OSError():
            named = f"{error.filename}: " if error.filename else ""
            tell_error(f"{named}{error.strerror or error}")
            return ENVIRONMENT
        case _:
            tell_error(
                f"takopi has a bug: {type(error).__name__}: {error}",
                "run the same with --debug and report what it prints",
            )
            return USER
    return error.exit_code


def tell_error(what: str, way_out: str = "") -> None:
    """One sentence on stderr, and under it the way out."""
    _say(f"{coloured('error:', RED, stream=sys.stderr)} {what}")
    if way_out:
        _say(f"  {way_out}")


def hint(text: str) -> None:
    """Something worth knowing that is no error."""
    _say(f"hint: {text}")


def _say(line: str) -> None:
    sys.stderr.write(f"{_folded(line)}\n")


def _folded(line: str) -> str:
    """The line as it fits on a terminal, broken between words but not in a `command`.

    What would not fit by itself stays whole, so that it can be copied.
    """
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):  # no terminal
        return line
    if not 0 < columns < len(line):
        return line
    room = " " * (len(line) - len(line.lstrip()))
    glued = _COMMAND.sub(lambda found: found[0].replace(" ", _GLUE), line)
    folded = textwrap.fill(
        glued,
        columns,
        subsequent_indent=room or "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return folded.replace(_GLUE, " ")


def _joined(key: str, what: str) -> str:
    return f"{key}: {what}" if key else what


def coloured(text: str, colour: int, *, stream: TextIO) -> str:
    """The text in a colour of the terminal, if there is one and colour is wanted."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not stream.isatty() else f"\x1b[{colour}m{text}\x1b[0m"


def printable(text: str) -> str:
    """The text without what a terminal would obey; tabs may stay."""
    return "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in text)
