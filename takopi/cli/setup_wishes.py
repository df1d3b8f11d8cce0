"""What the options of a set-up say, and whether they can be done as they stand."""

from __future__ import annotations

from dataclasses import dataclass

from takopi.cli.terminal import on_terminal
from takopi.config.loaded import Config, Names
from takopi.core.errors import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the options say; None or empty where they say nothing."""

    token_file: str | None = None
    token_env: str | None = None
    chat_id: int | None = None
    allow: tuple[int, ...] = ()
    pair: bool = False
    engine: str | None = None
    api_url: str | None = None
    service: bool | None = None

    @property
    def are_any(self) -> bool:
        """Whether anything of a set-up was asked for by an option."""
        return self != Wishes()

    @property
    def has_token(self) -> bool:
        """Whether an option says where the token is."""
        return self.token_file is not None or self.token_env is not None

    @property
    def is_of_telegram(self) -> bool:
        """Whether an option speaks of a bot or its chat."""
        return self.has_token or self.chat_id is not None or bool(self.allow) or self.pair


def check_wishes(wishes: Wishes, config: Config, names: Names, *, lacks_project: bool) -> None:
    """Refuse what contradicts itself, and what is missing where nobody can be asked for it."""
    if wishes.token_file is not None and wishes.token_env is not None:
        raise Refused("there is one token", way_out="give --token-file or --token-env")
    if wishes.engine is not None and wishes.engine not in names.engines:
        known = ", ".join(names.engines)
        raise Refused(f"there is no engine {wishes.engine}", way_out=f"use one of {known}")
    if wishes.is_of_telegram and "telegram" not in config.transports:
        raise Refused(
            "Telegram is not among the transports of the config",
            way_out="""takopi config set transports '["telegram", "web"]'""",
        )
    if wishes.pair and wishes.chat_id is not None:
        raise Refused("there is one chat", way_out="give --pair or --chat-id")
    if wishes.pair and config.chat_id is not None:
        raise Refused(
            f"takopi is paired with chat {config.chat_id} already",
            way_out="`takopi config unset chat_id` ends that",
        )
    allowed = {*config.allowed_user_ids, *wishes.allow}
    if wishes.chat_id is not None and wishes.chat_id < 0 and not allowed:
        raise Refused(
            "in a group everybody can write, so takopi has to know who may",
            way_out="add --allow USER_ID for each of them",
        )
    if not on_terminal() and (missing := _missing(wishes, config, lacks_project=lacks_project)):
        raise Refused(
            f"{' and '.join(missing)} cannot be asked for without a terminal",
            way_out=f"add {'; '.join(missing.values())}",
        )


def _missing(wishes: Wishes, config: Config, *, lacks_project: bool) -> dict[str, str]:
    missing: dict[str, str] = {}
    if "telegram" in config.transports:
        if not config.bot_token and not wishes.has_token:
            missing["the token"] = "--token-file FILE (- is stdin) or --token-env NAME"
        if config.chat_id is None and wishes.chat_id is None and not wishes.pair:
            missing["the chat"] = "--chat-id ID or --pair"
    if lacks_project:
        missing["the project"] = "its ALIAS or --no-project"
    return missing
