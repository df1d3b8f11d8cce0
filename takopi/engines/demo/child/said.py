"""What is said in a prompt, without what takopi puts around it where there are tools."""

from __future__ import annotations

_TOOLS, _RESULTS = "# Tools\n\n", "# Tool results\n\n"
_MESSAGE, _CLOSING = "\n\n# Message\n\n", "\n\n# Closing\n\n"


def what_was_said(prompt: str) -> str:
    """The message, or the results of tools; of any other prompt, all of it."""
    if prompt.startswith(_RESULTS):
        # Results may pretend to be any section: the last one of that name is the real one.
        results = prompt.rpartition(_MESSAGE)[0].removeprefix(_RESULTS)
        return results.partition("\n\n")[2]
    if prompt.startswith(_TOOLS):
        # A message may pretend too: here the first one is.
        return prompt.partition(_MESSAGE)[2].rpartition(_CLOSING)[0]
    return prompt
