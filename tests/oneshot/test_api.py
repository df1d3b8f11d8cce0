from __future__ import annotations

import gc
import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import (
    NotConfigured,
    RefusedByModel,
    TakopiError,
    Unreachable,
    UnusableAnswer,
)
from takopi.oneshot.api import DEFAULT_MODEL, Api, open_api
from takopi.oneshot.backend import MAX_ANSWER_CHARS, MAX_RETRIES
from takopi.oneshot.port import answer_within
from tests.model.script import Fail, Hang, Rule, Say
from tests.model.server import serve_model
from tests.oneshot.replies import END, failure, reply, said, serve_replies, stopped, streamed

KEY = {"ANTHROPIC_API_KEY": "canary-key"}
WAIT_S = 60


@asynccontextmanager
async def api_at(
    url: str, *, environ: Mapping[str, str] = KEY, **settings: object
) -> AsyncGenerator[Api]:
    table = Settings(base_url=url, **settings)  # pyright: ignore[reportArgumentType]  # by name
    with trio.fail_after(WAIT_S):
        async with open_api(table, environ) as api:
            yield api


async def complain(url: str) -> TakopiError:
    """The error of one question."""
    async with api_at(url) as api:
        with pytest.raises(TakopiError) as caught:
            await api.complete("be brief", "hello")
    assert "canary-key" not in f"{caught.value.what} {caught.value.way_out}"
    return caught.value


async def test_the_question_goes_out_with_its_system_prompt_and_the_answer_comes_back() -> None:
    async with serve_model([Rule("^hello$", Say("eight arms"))]) as model:
        async with api_at(model.base_url) as api:
            assert await api.complete("be brief", "hello") == "eight arms"
        (request,) = model.requests
        (conversation,) = model.conversations
    assert request.headers["authorization"] == "Bearer canary-key"
    assert (conversation.model, conversation.system) == (DEFAULT_MODEL, "be brief")
    assert conversation.tools == ()


async def test_the_configured_model_is_asked() -> None:
    async with (
        serve_model([Rule("", Say("yes"))]) as model,
        api_at(model.base_url, model="claude-haiku-5-5") as api,
    ):
        await api.complete("", "hello")
    assert model.conversations[0].model == "claude-haiku-5-5"


async def test_an_empty_system_prompt_is_not_sent() -> None:
    async with serve_model([Rule("", Say("yes"))]) as model, api_at(model.base_url) as api:
        await api.complete("", "hello")
    assert b'"system"' not in model.requests[0].body


async def test_a_key_that_changes_is_used_from_the_next_question_on(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.touch(mode=0o600)
    async with (
        serve_model([Rule("", Say("yes"))]) as model,
        api_at(model.base_url, environ={}, api_key_file=file) as api,
    ):
        for key in ("first", "second"):
            file.write_text(f"{key}\n")
            await api.complete("", "hello")
    sent = [request.headers["authorization"] for request in model.requests]
    assert sent == ["Bearer first", "Bearer second"]


async def test_the_address_of_the_environment_serves_where_the_config_has_none() -> None:
    async with serve_model([Rule("", Say("yes"))]) as model:
        environ = {**KEY, "ANTHROPIC_BASE_URL": model.base_url}
        async with open_api(Settings(), environ) as api:
            with trio.fail_after(WAIT_S):
                assert await api.complete("", "hello") == "yes"


async def test_without_a_key_nothing_is_sent_and_the_way_out_is_named() -> None:
    async with serve_model([]) as model, api_at(model.base_url, environ={}) as api:
        with pytest.raises(NotConfigured) as caught:
            await api.complete("", "hello")
    assert "oneshot.api_key_file" in caught.value.way_out
    assert model.requests == []


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_not_taken_is_a_matter_of_the_config(status: int) -> None:
    async with serve_model([Rule("", Fail(status, "invalid x-api-key"))]) as model:
        error = await complain(model.base_url)
    assert isinstance(error, NotConfigured)
    assert error.what == "invalid x-api-key"
    assert "ANTHROPIC_API_KEY" in error.way_out
    assert len(model.requests) == 1


@pytest.mark.parametrize("status", [400, 404, 413])
async def test_a_question_that_the_api_does_not_take_is_refused_in_its_own_words(
    status: int,
) -> None:
    async with serve_model([Rule("", Fail(status, "model: nope\nis not known"))]) as model:
        error = await complain(model.base_url)
    assert isinstance(error, RefusedByModel)
    assert error.what == "model: nope is not known"
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("429 Too Many", "rate_limit_error"),
        ("500 Oops", "api_error"),
        ("529 Busy", "overloaded_error"),
    ],
)
async def test_what_may_pass_is_tried_again_and_then_unreachable(status: str, kind: str) -> None:
    async with serve_replies(failure(status, kind, "not now")) as wire:
        error = await complain(wire.url)
    assert isinstance(error, Unreachable)
    assert error.what == "not now"
    assert len(wire.requests) == MAX_RETRIES + 1


async def test_an_api_that_is_busy_once_is_asked_again() -> None:
    busy = failure("529 Busy", "overloaded_error", "not now")
    async with serve_replies(busy, streamed(said("yes"), END)) as wire, api_at(wire.url) as api:
        assert await api.complete("", "hello") == "yes"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply("200 OK", b"<html>sign in</html>", kind="text/html"), id="html"),
        pytest.param(streamed(said("eight")), id="no end"),
        pytest.param(streamed(), id="nothing"),
        pytest.param(streamed(said("eight"), END)[:-30], id="cut"),
        pytest.param(
            reply("200 OK", b"event: message_stop\ndata: {oops\n\n", kind="text/event-stream"),
            id="not json",
        ),
        pytest.param(
            reply("200 OK", b"event: message_start\ndata: [1]\n\n", kind="text/event-stream"),
            id="not an object",
        ),
        pytest.param(reply("502 Bad", b"<html>gateway</html>", kind="text/html"), id="gateway"),
        pytest.param(
            reply("302 Found", b"").replace(b"\r\n\r\n", b"\r\nLocation: /x\r\n\r\n"), id="redirect"
        ),
        pytest.param(b"not HTTP at all\r\n\r\n", id="not http"),
    ],
)
async def test_a_reply_that_is_no_whole_answer_is_unreachable(answer: bytes) -> None:
    async with serve_replies(answer) as wire:
        error = await complain(wire.url)
    assert isinstance(error, Unreachable)
    assert error.maybe_applied


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_delta"},
        {"type": "message_delta", "delta": 5},
        {"type": "message_delta", "delta": {"stop_reason": ["refusal"], "stop_details": 5}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_details": "x"}},
        {"type": "content_block_delta"},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 5}},
        {"type": "something_new", "delta": []},
    ],
)
async def test_an_event_of_another_shape_is_passed_over(event: dict[str, Any]) -> None:
    async with serve_replies(streamed(said("eight"), event, END)) as wire, api_at(wire.url) as api:
        assert await api.complete("", "hello") == "eight"


@pytest.mark.parametrize("error", [5, [], {"type": [], "message": {"a": 1}}, None])
@pytest.mark.parametrize("halfway", [True, False])
async def test_an_error_of_another_shape_is_an_error(error: object, halfway: bool) -> None:
    body = {"type": "error", "error": error}
    answer = streamed(body) if halfway else reply("500 Oops", json.dumps(body).encode())
    async with serve_replies(answer) as wire:
        assert isinstance(await complain(wire.url), Unreachable)


async def test_nobody_at_the_address_is_unreachable() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        error = await complain(f"http://127.0.0.1:{held.getsockname()[1]}")
    assert isinstance(error, Unreachable)
    assert "ConnectError" in error.what


async def test_the_key_does_not_follow_a_redirect() -> None:
    async with serve_replies(streamed(said("yes"), END)) as elsewhere:
        head = f"HTTP/1.1 307 Go\r\nLocation: {elsewhere.url}/v1/messages\r\n"
        async with serve_replies(head.encode() + b"Content-Length: 0\r\n\r\n") as wire:
            error = await complain(wire.url)
    assert isinstance(error, Unreachable)
    assert elsewhere.requests == []


async def test_a_model_that_declines_has_refused() -> None:
    details = {"type": "refusal", "category": None, "explanation": "not this"}
    async with serve_replies(streamed(stopped("refusal", stop_details=details), END)) as wire:
        error = await complain(wire.url)
    assert isinstance(error, RefusedByModel)
    assert error.what == "the model declined to answer: not this"


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
async def test_an_answer_that_ran_out_of_room_is_not_taken_for_a_whole_one(reason: str) -> None:
    async with serve_replies(streamed(said("eight"), stopped(reason), END)) as wire:
        assert isinstance(await complain(wire.url), UnusableAnswer)


# The SDK leaves its inner generators to Trio's finaliser when a reply is given up half-way.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_an_answer_without_end_is_given_up() -> None:
    piece = json.dumps(said("x" * (MAX_ANSWER_CHARS // 4)))
    event = f"event: content_block_delta\ndata: {piece}\n\n".encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    async with serve_replies(head + event, endless=True) as wire:
        assert isinstance(await complain(wire.url), UnusableAnswer)
    gc.collect()


async def test_a_long_story_of_the_api_is_cut_short() -> None:
    async with serve_model([Rule("", Fail(400, "no " * 10_000))]) as model:
        error = await complain(model.base_url)
    assert len(error.what) == 300
    assert error.what.endswith("no…")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", Unreachable),
        ("invalid_request_error", RefusedByModel),
        ("authentication_error", NotConfigured),
    ],
)
async def test_an_error_in_mid_answer_counts_like_one_at_the_start(
    kind: str, expected: type[TakopiError]
) -> None:
    event = {"type": "error", "error": {"type": kind, "message": "halfway"}}
    async with serve_replies(streamed(said("eight"), event)) as wire:
        error = await complain(wire.url)
    assert type(error) is expected
    assert error.what == "halfway"


@pytest.mark.parametrize("words", ["", "eight arms and"], ids=["before", "during"])
async def test_a_cancel_ends_the_call_and_closes_its_connection(words: str) -> None:
    rule = Rule("", Hang(words))
    async with serve_model([rule]) as model, api_at(model.base_url) as api:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(api.complete, "", "hello")
            request = await model.arrived(rule)
            nursery.cancel_scope.cancel()
        await request.left.wait()


async def test_being_late_is_unreachable() -> None:
    async with serve_model([Rule("", Hang())]) as model, api_at(model.base_url) as api:
        with (
            pytest.raises(Unreachable, match=r"did not answer within 0\.2 s"),
            answer_within(0.2),
        ):
            await api.complete("", "hello")
