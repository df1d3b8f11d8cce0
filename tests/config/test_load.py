from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.config.edit import to_toml
from takopi.config.limits import Limits
from takopi.config.load import find_problems
from takopi.config.schema import ConfigTable, EngineSettings, Oneshot
from takopi.core.errors import Problem
from tests.config.names import NAMES, PluginSettings, parsed, problems


def test_empty_file_gives_every_default() -> None:
    config = parsed("")
    assert config.projects == {}
    assert config.default_engine is None
    assert config.default_project is None
    assert config.session_mode == "reply"
    assert config.transports == ("telegram",)
    assert config.api_url == "https://api.telegram.org"
    assert config.limits == Limits()
    assert config.oneshot == Oneshot()
    assert config.engines == {
        "claude": EngineSettings(),
        "codex": EngineSettings(),
        "plugin": PluginSettings(),
    }


def test_limits_are_the_promised_ones() -> None:
    limits = Limits()
    assert (limits.max_runs, limits.max_queued, limits.user_per_min) == (4, 20, 30)
    assert (limits.grace_s, limits.drain_s, limits.stale_s, limits.ask_s) == (2, 20, 600, 3600)
    assert (limits.keep_days, limits.idle_s, limits.run_s) == (90, 900, 0)
    assert limits.line_bytes == 10 * 1024 * 1024


def test_every_key_of_the_file_arrives_in_the_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    config = parsed(
        """
        default_engine = "codex"
        default_project = "z80"
        bot_token = "123:abc"
        chat_id = 123
        allowed_user_ids = [1, 2]
        admin_user_ids = [1]
        session_mode = "chat"
        api_url = "http://127.0.0.1:8081/"
        transports = ["telegram", "web", "web"]

        [projects.z80]
        path = "~/dev/z80"
        default_engine = "codex"
        worktree_base = "main"
        chat_id = -100

        [oneshot]
        backend = "api"
        api_key_file = "~/key"

        [limits]
        max_runs = 2
        run_s = 60

        [plugin]
        speed = "fast"
        tools = ["a"]
        env = { A = "b" }
        """
    )
    assert config.default_engine == "codex"
    assert config.default_project == "z80"
    assert config.bot_token == "123:abc"
    assert config.chat_id == 123
    assert config.allowed_user_ids == {1, 2}
    assert config.admin_user_ids == {1}
    assert config.session_mode == "chat"
    assert config.api_url == "http://127.0.0.1:8081"
    assert config.transports == ("telegram", "web")
    project = config.projects["z80"]
    assert project.path == Path("/home/ada/dev/z80")
    assert project.worktree_base == "main"
    assert config.project_of_chat(-100) == project
    assert config.project_of_chat(-101) is None
    assert config.oneshot == Oneshot(backend="api", api_key_file=Path("/home/ada/key"))
    assert config.limits == Limits(max_runs=2, run_s=60)
    assert config.engines["plugin"] == PluginSettings(speed="fast", tools=("a",), env={"A": "b"})


def test_five_mistakes_are_five_problems_with_their_keys() -> None:
    found = problems(
        """
        default_engine = "codx"
        session_mode = "chats"
        chat_id = "123"

        [limits]
        max_runs = 0

        [projects.z80]
        worktrees_dir = ".w"
        """
    )
    assert {problem.key for problem in found} == {
        "default_engine",
        "session_mode",
        "chat_id",
        "limits.max_runs",
        "projects.z80.path",
    }
    assert len(found) == 5


def test_unknown_keys_are_problems_with_the_nearest_known_key() -> None:
    found = problems("limts = 1\n[limits]\nmax_run = 1\n[plugin]\nsped = 1\nxyzzy = 1\n")
    assert found == [
        Problem("limts", "takopi knows no such key", "did you mean `limits`?"),
        Problem("limits.max_run", "takopi knows no such key", "did you mean `max_runs`?"),
        Problem("plugin.sped", "takopi knows no such key", "did you mean `speed`?"),
        Problem(
            "plugin.xyzzy", "takopi knows no such key", "take it out, or comment it out with #"
        ),
    ]


def test_nearest_key_may_be_the_table_of_an_engine() -> None:
    assert problems("[clade]")[0].way_out == "did you mean `claude`?"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("chat_id = 'x'", "must be the number of a chat, not text"),
        ("chat_id = 4503599627370497", "must be the number of a chat, not 4503599627370497"),
        ("limits.max_runs = true", "must be a whole number from 1 to 64, not true or false"),
        ("limits.max_runs = 2.5", "must be a whole number from 1 to 64, not 2.5"),
        ("limits.idle_s = 0", "must be a number above 0 to 86400, not 0"),
        ("limits.run_s = nan", "must be a number from 0 to 604800, not nan"),
        ("limits = 3", "must be a table, not a number"),
        ("claude = 'x'", "must be a table, not text"),
        ("claude.env.A = 1", "must be text, not a number"),
        ("claude.env = []", "must be a table, not a list"),
        ("claude.model = 2020-01-01", "must be text, not a date"),
        ("claude.extra_args = '-x'", "must be a list, not text"),
        ("claude.extra_args = ['a', 2]", "item 2 must be text, not a number"),
        ("allowed_user_ids = [0]", "item 1 must be the number of a person, not 0"),
        ("plugin.speed = 'fastt'", 'must be one of "slow", "fast", not "fastt"'),
        ("plugin.speed = 1", 'must be one of "slow", "fast", not a number'),
        ("transports = []", "must not be empty"),
        ("oneshot.model = ''", "must not be empty"),
        ("projects = []", "must be a table, not a list"),
        ("projects.a = 1", "must be a table, not a number"),
        ("bot_token = ['5']", "must be text, not a list"),
        ("oneshot.api_key_file = 'key'", "must be an absolute path"),
        ("chat_id = 0", "must not be 0"),
        ("api_url = 'api.telegram.org'", "must be an address"),
        ("api_url = 'http://[::1'", "must be an address"),
    ],
)
def test_a_value_of_the_wrong_kind_is_described(text: str, what: str) -> None:
    assert what in [problem.what for problem in problems(text)]


def test_a_value_that_may_be_a_secret_is_not_repeated() -> None:
    for text in (
        "bot_token = 'hunter2 '",
        "claude.env.KEY = ['hunter2']",
        "bot_token = ['hunter2']",
    ):
        assert "hunter2" not in repr(problems(text))


def test_repr_of_a_config_has_no_secret() -> None:
    config = parsed("bot_token = '123:hunter2'\nclaude.env.KEY = 'hunter3'")
    assert "hunter" not in repr(config)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"a = \n", "takopi.toml, line 1, column 5: not TOML: invalid value"),
        (b"a = 1\na = 2", "takopi.toml, line 2, column 6: not TOML: cannot overwrite a value"),
        (b"a = 1\nb = '''", "takopi.toml, line 2, column 8: not TOML: expected \"'''\""),
        (
            b"[x\n",
            "takopi.toml, line 1, column 3: not TOML: expected ']' at the end",
        ),
        ("a = 'ä' ü".encode(), "takopi.toml, line 1, column 9: not TOML"),
        (b"a = 1\nb = '\xff'", "takopi.toml, line 2, column 6: not UTF-8"),
    ],
)
def test_text_that_is_no_toml_is_reported_with_line_and_column(data: bytes, place: str) -> None:
    (problem,) = find_problems(data, NAMES, environ={})
    assert problem.what.startswith(place)


@pytest.mark.parametrize("data", [b"a = " + b"[" * 100_000, b"a = " + b"9" * 5000])
def test_toml_that_python_cannot_hold_is_a_problem_and_no_crash(data: bytes) -> None:
    assert len(find_problems(data, NAMES, environ={})) == 1


@given(st.binary(max_size=200))
def test_any_bytes_are_a_config_or_a_list_of_problems(data: bytes) -> None:
    assert isinstance(find_problems(data, NAMES, environ={}, to_run=True), tuple)


_values = st.recursive(
    st.none().map(lambda _: "x")
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.text(max_size=5)
    | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
_known_keys = st.sampled_from(
    [field.name for field in msgspec.structs.fields(ConfigTable)] + list(NAMES.engines)
)


@given(st.dictionaries(_known_keys, _values, max_size=6))
def test_any_toml_values_are_a_config_or_a_list_of_problems(values: dict[str, object]) -> None:
    text = "\n".join(f"{key} = {to_toml(value)}" for key, value in values.items())
    found = find_problems(text.encode("utf-8", "replace"), NAMES, environ={}, to_run=True)
    assert isinstance(found, tuple)
