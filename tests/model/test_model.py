from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx2
import pytest
import trio

from tests.model.script import Call, Fail, Hang, Recall, Rule, Say
from tests.model.server import Model, Unscripted, serve_model

PATHS = ("/v1/messages", "/v1/responses", "/v1/chat/completions")
every_api = pytest.mark.parametrize("path", PATHS)
streamed_or_whole = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
HELLO = Rule("hello", Say("Hello to you."))


@asynccontextmanager
async def _served(*script: Rule) -> AsyncGenerator[tuple[Model, httpx2.AsyncClient]]:
    """The model and a client of it, for a minute at most."""
    with trio.fail_after(60):
        async with (
            serve_model(script) as model,
            httpx2.AsyncClient(base_url=model.base_url, timeout=None, trust_env=False) as client,
        ):
            yield model, client


async def _connect(model: Model) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", int(model.base_url.rpartition(":")[2]))


def _body(path: str, *turns: tuple[str, str], stream: bool = False, tool: str = "") -> Any:
    """A conversation of (role, text), as the API of `path` wants it."""
    if path == "/v1/responses":
        kinds = {"user": "input_text", "assistant": "output_text"}
        said: list[dict[str, Any]] = [
            {"type": "function_call_output", "call_id": "call_1", "output": text}
            if role == "tool"
            else {
                "type": "message",
                "role": role,
                "content": [{"type": kinds[role], "text": text}],
            }
            for role, text in turns
        ]
        tools = [{"type": "function", "name": tool}]
        body: dict[str, Any] = {"input": said}
    elif path == "/v1/messages":
        body = {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text}],
                }
                if role == "tool"
                else {"role": role, "content": [{"type": "text", "text": text}]}
                for role, text in turns
            ],
            "max_tokens": 100,
        }
        tools = [{"name": tool, "input_schema": {"type": "object"}}]
    else:
        body = {"messages": [{"role": role, "content": text} for role, text in turns]}
        tools = [{"type": "function", "function": {"name": tool}}]
    if tool:
        body["tools"] = tools
    return {"model": "scripted", "stream": stream, **body}


def _events(text: str) -> list[dict[str, Any]]:
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in data if line != "[DONE]"]


def _head(path: str, body: bytes) -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n".encode()


def _ask(text: str) -> bytes:
    path = "/v1/chat/completions"
    body = json.dumps(_body(path, ("user", text), stream=True)).encode()
    return _head(path, body) + b"\r\n" + body


async def _hear(stream: trio.SocketStream, wanted: bytes) -> None:
    heard = b""
    while wanted not in heard:
        some = await stream.receive_some()
        assert some, heard
        heard += some


def _text(path: str, response: httpx2.Response) -> str:
    """The words of an answer, put together as a client of that API would."""
    if response.headers["content-type"] == "text/event-stream":
        events = _events(response.text)
        if path == "/v1/messages":
            deltas = [event.get("delta", {}).get("text", "") for event in events]
        elif path == "/v1/responses":
            kind = "response.output_text.delta"
            deltas = [event["delta"] for event in events if event["type"] == kind]
        else:
            choices = [choice for event in events for choice in event["choices"]]
            deltas = [choice["delta"].get("content", "") for choice in choices]
        return "".join(deltas)
    body = response.json()
    if path == "/v1/messages":
        return body["content"][0]["text"]
    if path == "/v1/responses":
        return body["output"][0]["content"][0]["text"]
    return body["choices"][0]["message"]["content"]


def _call(path: str, response: httpx2.Response) -> tuple[str, dict[str, Any]]:
    """The tool call of an answer in one piece: its name and arguments."""
    body = response.json()
    if path == "/v1/messages":
        block = body["content"][-1]
        return block["name"], block["input"]
    if path == "/v1/responses":
        item = body["output"][-1]
        return item["name"], json.loads(item["arguments"])
    function = body["choices"][0]["message"]["tool_calls"][0]["function"]
    return function["name"], json.loads(function["arguments"])


@every_api
@streamed_or_whole
async def test_a_rule_that_fits_is_answered_in_words(path: str, stream: bool) -> None:
    async with _served(HELLO) as (_, client):
        response = await client.post(path, json=_body(path, ("user", "hello"), stream=stream))
        assert _text(path, response) == "Hello to you."


@every_api
async def test_a_tool_is_called_with_its_arguments(path: str) -> None:
    script = [Rule("go", Call("bash", {"command": "ls"}, text="I will look."))]
    async with _served(*script) as (_, client):
        response = await client.post(path, json=_body(path, ("user", "go"), tool="bash"))
        assert _call(path, response) == ("bash", {"command": "ls"})


async def test_a_streamed_call_carries_the_same_arguments_as_a_whole_one() -> None:
    script = [Rule("go", Call("bash", {"command": "ls"}))]
    async with _served(*script) as (_, client):

        async def events(path: str) -> list[dict[str, Any]]:
            body = _body(path, ("user", "go"), tool="bash", stream=True)
            return _events((await client.post(path, json=body)).text)

        blocks = await events("/v1/messages")
        partial = [event["delta"] for event in blocks if event["type"] == "content_block_delta"]
        assert json.loads(partial[0]["partial_json"]) == {"command": "ls"}
        items = await events("/v1/responses")
        done = [event["item"] for event in items if event["type"] == "response.output_item.done"]
        assert json.loads(done[0]["arguments"]) == {"command": "ls"}
        chunks = await events("/v1/chat/completions")
        calls = [chunk["choices"][0]["delta"].get("tool_calls") for chunk in chunks[:-1]]
        (call,) = [call for call in calls if call]
        assert json.loads(call[0]["function"]["arguments"]) == {"command": "ls"}


async def test_a_string_of_arguments_calls_a_free_form_tool() -> None:
    script = [Rule("go", Call("apply_patch", "*** Begin Patch"))]
    async with _served(*script) as (_, client):
        body = _body("/v1/responses", ("user", "go"), tool="apply_patch")
        (item,) = (await client.post("/v1/responses", json=body)).json()["output"]
        assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin Patch")


@every_api
async def test_a_rule_for_tools_reads_the_result_and_not_the_prompt(path: str) -> None:
    script = [Rule("go", Say("The tool said go."), role="tool"), Rule("go", Say("A person."))]
    async with _served(*script) as (_, client):
        asked = _body(path, ("user", "go"))
        assert _text(path, await client.post(path, json=asked)) == "A person."
        told = _body(path, ("user", "start"), ("tool", "go"))
        assert _text(path, await client.post(path, json=told)) == "The tool said go."


@every_api
async def test_it_remembers_only_what_the_conversation_has(path: str) -> None:
    script = [Rule("which", Recall(r"word is (\w+)", "It was {}.", "Nobody told me."))]
    async with _served(*script) as (_, client):
        told = _body(path, ("user", "the word is kelp"), ("assistant", "Noted."), ("user", "which"))
        assert _text(path, await client.post(path, json=told)) == "It was kelp."
        untold = _body(path, ("user", "which"))
        assert _text(path, await client.post(path, json=untold)) == "Nobody told me."


async def test_a_memory_of_one_role_does_not_hear_the_others() -> None:
    path = "/v1/messages"
    async with _served(Rule("which", Recall(r"word is (\w+)", role="user"))) as (_, client):
        said = [("user", "the word is kelp"), ("assistant", "the word is eel"), ("user", "which")]
        assert _text(path, await client.post(path, json=_body(path, *said))) == "kelp"


async def test_a_memory_can_be_an_argument() -> None:
    script = [Rule("go", Call("write", {"path": Recall(r"into (\S+)", role="user")}))]
    path = "/v1/messages"
    async with _served(*script) as (_, client):
        body = _body(path, ("user", "into a.txt"), ("user", "go"), tool="write")
        assert _call(path, await client.post(path, json=body)) == ("write", {"path": "a.txt"})


@every_api
async def test_an_api_error_has_its_status_and_its_words(path: str) -> None:
    async with _served(Rule("no", Fail(429, "slow down"))) as (_, client):
        response = await client.post(path, json=_body(path, ("user", "no"), stream=True))
        assert response.status_code == 429
        assert response.json()["error"]["message"] == "slow down"


async def test_a_rule_applies_as_often_as_it_says() -> None:
    script = [Rule("hello", Fail(500, "once"), times=1), HELLO]
    path = "/v1/messages"
    async with _served(*script) as (_, client):
        body = _body(path, ("user", "hello"))
        statuses = [(await client.post(path, json=body)).status_code for _ in range(3)]
        assert statuses == [500, 200, 200]


async def test_the_system_prompt_chooses_between_rules() -> None:
    script = [Rule(".", Say("A title"), system="title generator"), HELLO]
    path = "/v1/chat/completions"
    async with _served(*script) as (_, client):
        body = _body(path, ("system", "You are a title generator"), ("user", "hello"))
        assert _text(path, await client.post(path, json=body)) == "A title"
        body = _body(path, ("system", "You are a cook"), ("user", "hello"))
        assert _text(path, await client.post(path, json=body)) == "Hello to you."


@pytest.mark.parametrize(
    ("path", "reminder"),
    [
        ("/v1/messages", "<system-reminder>be brief</system-reminder>"),
        ("/v1/responses", "<environment_context>a shell</environment_context>"),
        ("/v1/responses", "# AGENTS.md instructions"),
    ],
)
async def test_a_reminder_of_the_client_does_not_hide_what_the_person_said(
    path: str, reminder: str
) -> None:
    async with _served(HELLO) as (model, client):
        await client.post(path, json=_body(path, ("user", "hello"), ("user", reminder)))
        latest = model.conversations[0].latest
        assert latest is not None
        assert latest.text == "hello"


async def test_a_request_without_a_rule_is_refused_and_fails_the_test() -> None:
    path = "/v1/messages"
    with pytest.raises(Unscripted, match="no rule for POST /v1/messages: user said 'good bye'"):
        async with _served(HELLO) as (_, client):
            assert (await client.post(path, json=_body(path, ("user", "good bye")))).is_error


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/unheard-of", 404), ("GET", "/v1/messages", 404), ("DELETE", "/v1/models", 404)],
)
async def test_an_unknown_request_fails_the_test(method: str, path: str, status: int) -> None:
    with pytest.raises(Unscripted, match=f"{method} {path} is not served here"):
        async with _served(HELLO) as (_, client):
            assert (await client.request(method, path)).status_code == status


async def test_a_client_that_wants_out_through_it_fails_the_test() -> None:
    async def connect() -> bytes:
        async with _served(HELLO) as (model, _), await _connect(model) as stream:
            await stream.send_all(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n")
            return await stream.receive_some()

    with pytest.raises(Unscripted, match=r"CONNECT example\.org:443"):
        await connect()


@pytest.mark.parametrize(
    ("path", "content", "problem"),
    [
        ("/v1/messages", b"{", "Expecting property name"),
        ("/v1/messages", b"[]", "body: an object is required"),
        ("/v1/messages", b'{"model": "m"}', "messages: a list is required"),
        ("/v1/messages", b'{"messages": [{"role": "cook"}]}', "'cook' is not a role"),
        ("/v1/responses", b'{"model": "m"}', "input: a list is required"),
        ("/v1/responses", b'{"input": "hello"}', "model: a string is required"),
        ("/v1/chat/completions", b'{"messages": [{"role": "cook"}]}', "'cook' is not a role"),
    ],
)
async def test_a_malformed_request_fails_the_test(path: str, content: bytes, problem: str) -> None:
    with pytest.raises(Unscripted, match=problem):
        async with _served(HELLO) as (_, client):
            assert (await client.post(path, content=content)).status_code == 400


async def test_a_call_of_a_tool_that_was_not_offered_fails_the_test() -> None:
    path = "/v1/messages"
    with pytest.raises(Unscripted, match="the script calls bash, and on offer are: write"):
        async with _served(Rule("go", Call("bash", {}))) as (_, client):
            await client.post(path, json=_body(path, ("user", "go"), tool="write"))


async def test_a_call_of_a_tool_that_is_kept_back_is_made() -> None:
    path = "/v1/messages"
    script = [Rule("go", Call("plan", {}, kept_back=True))]
    async with _served(*script) as (_, client):
        response = await client.post(path, json=_body(path, ("user", "go"), tool="write"))
        assert _call(path, response) == ("plan", {})


@every_api
@pytest.mark.parametrize("text", ["", "Let me think"], ids=["silent", "begun"])
async def test_a_hanging_answer_lasts_until_the_client_leaves(path: str, text: str) -> None:
    rule = Rule("wait", Hang(text))
    async with _served(rule) as (model, client):
        async with trio.open_nursery() as nursery:
            body = _body(path, ("user", "wait"), stream=True)
            nursery.start_soon(partial(client.post, path, json=body))
            request = await model.arrived(rule)
            assert not request.left.is_set()
            nursery.cancel_scope.cancel()
        await request.left.wait()


async def test_a_hanging_answer_does_not_hold_up_the_end_of_the_test() -> None:
    rule = Rule("wait", Hang())
    async with _served(rule) as (model, _):
        stream = await _connect(model)
        await stream.send_all(_ask("wait"))
        request = await model.arrived(rule)
    assert request.left.is_set()
    await stream.aclose()


async def test_a_hanging_answer_says_its_words_first() -> None:
    rule = Rule("wait", Hang("Let me think"))
    async with _served(rule) as (model, _), await _connect(model) as stream:
        await stream.send_all(_ask("wait"))
        await _hear(stream, b'"content": "think"')


async def test_a_slow_answer_keeps_its_pause_between_words() -> None:
    rule = Rule("slow", Say("one two", pause_s=3600))
    async with _served(rule) as (model, _), await _connect(model) as stream:
        await stream.send_all(_ask("slow"))
        await _hear(stream, b'"content": "one "')
        # However slow the machine, the second word cannot come in time.
        with trio.move_on_after(0.2) as patience:
            await _hear(stream, b'"content": "two"')
        assert patience.cancelled_caught


async def test_one_connection_serves_many_requests_and_all_are_kept() -> None:
    async with _served(HELLO) as (model, client):
        for path in PATHS:
            await client.post(path, json=_body(path, ("user", "hello")), headers={"x-n": path})
        count = await client.post("/v1/messages/count_tokens?beta=true", json={})
        models = await client.get("/v1/models")
        assert count.json() == {"input_tokens": 100}
        assert models.json()["data"][0]["id"] == "scripted"
        assert [request.target for request in model.requests] == [
            *PATHS,
            "/v1/messages/count_tokens?beta=true",
            "/v1/models",
        ]
        assert [request.rule for request in model.requests[:3]] == [HELLO] * 3
        assert model.requests[0].headers["x-n"] == "/v1/messages"


async def test_a_client_that_waits_for_leave_to_send_gets_it() -> None:
    body = json.dumps(_body("/v1/messages", ("user", "hello"))).encode()
    async with _served(HELLO) as (model, _), await _connect(model) as stream:
        await stream.send_all(_head("/v1/messages", body) + b"expect: 100-continue\r\n\r\n")
        assert b" 100 " in await stream.receive_some()
        await stream.send_all(body)
        assert b" 200 " in await stream.receive_some()


@pytest.mark.parametrize("sent", [b"\x16\x03\x01 not http\r\n\r\n", _head("/v1/messages", b"{}")])
async def test_a_client_that_speaks_nonsense_or_leaves_early_harms_nobody(sent: bytes) -> None:
    path = "/v1/messages"
    async with _served(HELLO) as (model, client):
        async with await _connect(model) as stream:
            await stream.send_all(sent)
        response = await client.post(path, json=_body(path, ("user", "hello")))
        assert response.status_code == 200


async def test_what_fails_in_the_test_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with serve_model([HELLO]):
            raise KeyError("the test's own")
