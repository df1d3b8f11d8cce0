"""How engines word what they show: one line where one is promised, short, and naming the cause.

Every function is cheap on megabytes of text, because engines quote whole files.
"""

from __future__ import annotations

import re
import signal

import msgspec

from takopi.engines.jsonl import decode_part

TITLE_CHARS = 120
DETAIL_CHARS = 400
ERROR_CHARS = 300

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Printable by Unicode's word, but nothing is seen of them: joiners, fillers, variation selectors.
_UNSEEN = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U000e0100-\U000e01ef]"
)
_NOISE = re.compile(
    r"(?i)\[?warn(?:ing)?\b|stack backtrace:|traceback \(|node\.js v\d|note: run with"
)
_NOT_LOGGED_IN = re.compile(
    r"(?i)\b401\b|unauthori[sz]ed|not (?:logged|signed) in|log ?in again|(?:please|must) log ?in"
    r"|(?:no|missing|invalid|incorrect|expired) (?:api|access|auth)[ _-]?(?:key|token)"
    r"|authentication (?:failed|error|required)|authentication_error|(?:no|missing) credentials"
)


class _Wrapped(msgspec.Struct):
    message: str | None = None
    error: _Wrapped | str | None = None


_wrapped = msgspec.json.Decoder(_Wrapped)


def shorten(text: str, limit: int = TITLE_CHARS) -> str:
    """`text` on one line of at most `limit` characters; an ellipsis stands for what is missing."""
    text = text.strip()
    start = text[: limit * 8]
    line = " ".join(_clean(start, control=" ").split())
    if len(start) == len(text) and len(line) <= limit:
        return line
    return line[: limit - 1].rstrip() + "…"


def clip(text: str, limit: int = DETAIL_CHARS) -> str:
    """The beginning of `text`, lines kept."""
    start = text[: limit * 8]
    clean = _clean(start).strip()
    if len(start) == len(text) and len(clean) <= limit:
        return clean
    return clean[: limit - 1].rstrip() + "…"


def tail(text: str, limit: int = DETAIL_CHARS) -> str:
    """The end of `text`, lines kept: the part of an output that says how it went."""
    end = text[-limit * 8 :]
    clean = _clean(end).strip()
    if len(end) == len(text) and len(clean) <= limit:
        return clean
    return "…" + clean[1 - limit :].lstrip()


def visible(text: str) -> str:
    """`text`, lines kept, with every character spelled out that could hide or reorder the rest."""
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return "".join(map(_spell, text))


def last_words(stderr: str) -> str:
    """The line of `stderr` that says why: about a missing login, else the last that tells anything.

    Colours, warnings and stack frames tell nothing; indented lines only where there are no others.
    """
    lines = _ANSI.sub("", stderr).splitlines()
    telling = [line for line in lines if re.search(r"\w", line) and not _NOISE.match(line.lstrip())]
    flush = [line for line in telling if not line[0].isspace()] or telling
    about_login = [line for line in flush if _NOT_LOGGED_IN.search(line)]
    chosen = next(reversed(about_login or flush), "")
    return shorten(re.sub(r"^\s*error:\s*", "", chosen, flags=re.IGNORECASE), ERROR_CHARS)


def describe_exit(code: int) -> str:
    """How a process ended, as the rest of a sentence; negative codes are signals."""
    if code < 0:
        return f"was ended by {_signal_name(-code)}"
    if code > 128 and (name := _signal_name(code - 128)).startswith("SIG"):
        return f"exited with code {code} ({name})"
    return f"exited with code {code}"


def explain_exit(program: str, code: int, *, stderr: str) -> str:
    """One sentence for a program that ended without saying what came of its work."""
    how = f"{program} {describe_exit(code)} without a result"
    return f"{how}: {words}" if (words := last_words(stderr)) else f"{how}."


def explain_failure(program: str, message: str) -> str:
    """One sentence for a failure that the program itself reported."""
    return f"{program} failed: {unwrap_error(message) or 'it gave no reason.'}"


def explain_lost_thread(program: str) -> str:
    """One sentence for a thread that cannot be resumed."""
    return f"{program} no longer knows this thread; start a new one."


def unwrap_error(text: str) -> str:
    """The sentence inside an error that quotes a provider's JSON, else `text`; on one line."""
    brace = text.find("{")
    if brace >= 0:
        try:
            wrapped = decode_part(text[brace:].encode(), _wrapped)
        except msgspec.MsgspecError:
            return shorten(text, ERROR_CHARS)
        while isinstance(wrapped.error, _Wrapped):
            wrapped = wrapped.error
        message = wrapped.message or wrapped.error
        if message and message.strip():
            return shorten(text[:brace] + message, ERROR_CHARS)
    return shorten(text, ERROR_CHARS)


def with_login(error: str, login: str) -> str:
    """`error`, and how to log in where that is what is missing."""
    if not _NOT_LOGGED_IN.search(error):
        return error
    return f"{error.rstrip('. ')}. Log in with `{login}`."


def _clean(text: str, *, control: str = "") -> str:
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _CONTROL.sub(control, text)


def _spell(char: str) -> str:
    if char in "\n\t" or (char.isprintable() and not _UNSEEN.match(char)):
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
