"""What Typer's completion leaves to be done: an answer to the first Tab in zsh."""

from __future__ import annotations

from pathlib import Path

INSTALL = "--install-completion"
# zsh runs this file at the first Tab of a shell, and never again: that Tab wants an answer too.
_FIRST_TAB = """
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _takopi_completion "$@"
fi
"""


def answer_first_tab() -> None:
    """Let the zsh function that was just installed complete from the first time on."""
    file = Path("~/.zfunc/_takopi").expanduser()
    if file.is_file() and "loadautofunc" not in (text := file.read_text("utf-8")):
        file.write_text(f"{text.rstrip()}\n{_FIRST_TAB}", "utf-8")
