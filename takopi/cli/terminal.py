"""Asks a person, if there is one."""

from __future__ import annotations

import sys
from getpass import getpass

import typer

from takopi.cli.errors import hint
from takopi.core.errors import Refused

MAX_CHARS = 4096


def on_terminal() -> bool:
    """Whether somebody can be asked: questions go to stderr, answers come on stdin."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def ask(question: str, *, default: str) -> str:
    """A line that the person types."""
    answer: object = typer.prompt(question, default=default or None, err=True)
    return str(answer).strip()


def confirm(question: str) -> bool:
    """Yes or no; no, if the person only presses Enter."""
    while True:
        answer: object = typer.prompt(f"{question} [y/N]", default="", show_default=False, err=True)
        match str(answer).strip().lower():
            case "y" | "yes":
                return True
            case "" | "n" | "no":
                return False
            case _:
                hint("type y or n")


def ask_hidden(question: str) -> str:
    """A line that is not shown while the person types it."""
    # Typer would ask before it turns the echo off: fast fingers would be seen.
    return getpass(f"{question}: ").strip()


def read_secret(name: str) -> str:
    """A secret from stdin, or typed without being shown. Never from argv, which `ps` shows."""
    if on_terminal():
        try:
            secret = ask_hidden(f"{name} (not shown)")
        except EOFError:
            secret = ""
    else:
        secret = sys.stdin.read(MAX_CHARS).strip() if sys.stdin else ""
    if not secret:
        raise Refused(f"no {name} came in", way_out=f"takopi config set {name} < FILE")
    return secret
