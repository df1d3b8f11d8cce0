"""Finds the bot token, in a private place only, and never repeats it in a message.

TAKOPI_BOT_TOKEN comes first: what was set for this one start is meant for it. Then `bot_token`,
then the file that `bot_token_file` names.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path

from takopi.config.decode import Decoder
from takopi.config.paths import mode_problem
from takopi.config.schema import ConfigTable

VARIABLE = "TAKOPI_BOT_TOKEN"
MAX_BYTES = 4096
TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,256}")


def find_token(table: ConfigTable, environ: Mapping[str, str], decoder: Decoder) -> str:
    """The token, or an empty text if there is none that can be used."""
    if table.bot_token is not None and table.bot_token_file is not None:
        decoder.report(
            "bot_token_file",
            "bot_token is set as well",
            way_out="keep one: `takopi config unset bot_token` or `… unset bot_token_file`",
        )
        return ""
    if named := environ.get(VARIABLE, "").strip():
        return _checked(named, decoder, key=VARIABLE)
    if table.bot_token is not None:
        return _checked(table.bot_token.strip(), decoder, key="bot_token")
    if table.bot_token_file is not None:
        return _read(table.bot_token_file, decoder)
    return ""


def _checked(token: str, decoder: Decoder, *, key: str) -> str:
    if TOKEN.fullmatch(token):
        return token
    decoder.report(
        key, "is not a bot token", way_out="copy it from @BotFather: digits, a colon, then the rest"
    )
    return ""


def _read(path: Path, decoder: Decoder) -> str:
    key = "bot_token_file"
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            decoder.report(key, f"{path} is not a file")
            return ""
        with path.open("rb") as file:
            data = file.read(MAX_BYTES)
    except OSError as error:
        decoder.report(key, f"{path} cannot be read: {error.strerror}")
        return ""
    if problem := mode_problem(path, status.st_mode, key=key):
        decoder.report(key, problem.what, way_out=problem.way_out)
    return _checked(data.decode("utf-8", "replace").strip(), decoder, key=key)
