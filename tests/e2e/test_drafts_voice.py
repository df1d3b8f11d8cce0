from __future__ import annotations

from pathlib import Path

import pytest

from tests.botapi.faults import Held
from tests.drafts.claude_stand_in import StandIn
from tests.e2e.drafting import card_with, draft, text, versions
from tests.e2e.rig import Rig
from tests.oneshot.replies import Wire, reply, serve_replies
from tests.voice.tone import FILE, tone

KEY = "sesame-of-the-tests"


def heard(words: str) -> bytes:
    return reply("200 OK", f'{{"text": "{words}"}}'.encode())


def hearing_by(wire: Wire, rig: Rig, master: StandIn, *, more: str = "") -> None:
    """Voice notes are written down by this server."""
    key = rig.folder / "key"
    key.touch(0o600)
    key.write_text(f"{KEY}\n")
    rig.configure(
        f'claude.command = "{master.path}"\nvoice.base_url = "{wire.url}/v1"\n'
        f'voice.api_key_file = "{key}"\n{more}'
    )


def ear(folder: Path) -> Path:
    """A program that writes a voice note down once it is let go: what its bytes say."""
    program = folder / "ear"
    wait = f"touch {folder}/asked\nwhile [ ! -e {folder}/go ]; do sleep 0.02; done"
    program.write_text(f'#!/bin/sh\n{wait}\ncat "$1"\n')
    program.chmod(0o755)
    return program


async def test_server_writes_a_real_recording_down_for_the_draft(rig: Rig, master: StandIn) -> None:
    recording = tone()
    async with serve_replies(heard("two by voice")) as wire:
        hearing_by(wire, rig, master)
        await draft(rig, "one")
        before = len(rig.chat.bot_messages)
        await rig.ada.voice(rig.chat, recording)
        await card_with(rig, text("one", "two by voice"))
    (request,) = wire.requests
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.decode().lower().splitlines()
    assert lines[0].startswith("post /v1/audio/transcriptions ")
    assert f"authorization: bearer {KEY}" in lines
    assert recording in body
    assert len(rig.chat.bot_messages) == before
    assert KEY not in rig.log


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (reply("500 Oops", b""), "answered with status 500"),
        (reply("401 Unauthorized", b""), "check voice.api_key_file"),
        (heard("  "), "nothing was heard"),
    ],
)
async def test_recording_that_the_server_does_not_write_down_is_answered_and_the_draft_goes_on(
    rig: Rig, master: StandIn, answer: bytes, told: str
) -> None:
    async with serve_replies(answer) as wire:
        hearing_by(wire, rig, master)
        card = await draft(rig, "one")
        await rig.reply(await rig.ada.voice(rig.chat, tone()), told)
        await rig.say("two")
        await rig.until(lambda _: card.text == text("one", "two"))


async def test_recording_that_is_too_long_is_answered_and_never_leaves_the_machine(
    rig: Rig, master: StandIn
) -> None:
    async with serve_replies(heard("too much")) as wire:
        hearing_by(wire, rig, master, more="voice.max_s = 10")
        await draft(rig, "one")
        note = await rig.ada.voice(rig.chat, tone(), duration_s=11)
        await rig.reply(note, "11 s long, and 10 s is the most")
    assert wire.requests == []
    assert rig.api.sent("getFile") == []
    assert versions(rig) == [text("one")]


async def test_directives_in_the_transcript_choose_the_context_of_the_draft(
    rig: Rig, master: StandIn
) -> None:
    repo = rig.project("z80")
    async with serve_replies(heard("/z80 say: heard")) as wire:
        hearing_by(wire, rig, master, more=f'[projects.z80]\npath = "{repo}"')
        await rig.start()
        await rig.reply(await rig.say("/draft on"), "put together")
        await rig.ada.voice(rig.chat, tone())
        card = await rig.sees(lambda m: m.text == "* say: heard\n\nctx: z80")
        await rig.press(card, "Run")
        await rig.ending(card)
    assert rig.rows("SELECT prompt, project FROM runs") == [("* say: heard", "z80")]


async def test_voice_note_holds_up_the_prompts_behind_it_and_nothing_else(rig: Rig) -> None:
    rig.configure(f'voice.command = ["{ear(rig.folder)}"]')
    await rig.start()
    note = await rig.ada.voice(rig.chat, b"say: by voice")
    await rig.until_so((rig.folder / "asked").exists)
    behind = await rig.say("say: behind it")
    await rig.reply(await rig.say("/draft"), "run at once")
    assert rig.rows("SELECT prompt FROM runs") == []
    (rig.folder / "go").touch()
    await rig.ending(note)
    await rig.ending(behind)
    prompts = rig.rows("SELECT prompt FROM runs ORDER BY id")
    assert prompts == [("say: by voice",), ("say: behind it",)]


async def test_voice_note_that_fails_lets_the_prompts_behind_it_go(rig: Rig) -> None:
    rig.configure(f'voice.command = ["{ear(rig.folder)}"]')
    await rig.start()
    note = await rig.ada.voice(rig.chat, b" ")
    await rig.until_so((rig.folder / "asked").exists)
    behind = await rig.say("say: behind it")
    (rig.folder / "go").touch()
    await rig.reply(note, "nothing was heard")
    await rig.ending(behind)


def hearing(rig: Rig, master: StandIn, *, more: str = "") -> None:
    """Voice notes say what their bytes are."""
    ear = rig.folder / "ear"
    ear.write_text('#!/bin/sh\nexec cat "$1"\n')
    ear.chmod(0o755)
    rig.configure(f'claude.command = "{master.path}"\nvoice.command = ["{ear}"]\n{more}')


async def test_voice_note_is_taken_in_like_text_and_no_transcript_is_sent(
    rig: Rig, master: StandIn
) -> None:
    hearing(rig, master)
    await draft(rig, "one")
    before = len(rig.chat.bot_messages)
    await rig.ada.voice(rig.chat, b"two by voice")
    await rig.say("three")
    await card_with(rig, text("one", "two by voice", "three"))
    assert len(rig.chat.bot_messages) == before


async def test_program_writes_a_real_recording_down_for_the_draft(
    rig: Rig, master: StandIn
) -> None:
    program = rig.folder / "ear"
    program.write_text(f'#!/bin/sh\ncmp "$1" "{FILE}" && echo two by voice\n')
    program.chmod(0o755)
    rig.configure(f'claude.command = "{master.path}"\nvoice.command = ["{program}", "{{file}}"]')
    await draft(rig, "one")
    before = len(rig.chat.bot_messages)
    await rig.ada.voice(rig.chat, tone())
    await card_with(rig, text("one", "two by voice"))
    assert len(rig.chat.bot_messages) == before


async def test_program_that_fails_is_told_and_the_draft_goes_on(rig: Rig, master: StandIn) -> None:
    rig.configure(f'claude.command = "{master.path}"\nvoice.command = ["false"]')
    card = await draft(rig, "one")
    await rig.reply(await rig.ada.voice(rig.chat, tone()), "false ended with code 1")
    await rig.say("two")
    await rig.until(lambda _: card.text == text("one", "two"))


async def test_voice_note_outside_of_drafts_is_a_run_and_its_directives_count(
    rig: Rig, master: StandIn
) -> None:
    repo = rig.project("z80")
    hearing(rig, master, more=f'[projects.z80]\npath = "{repo}"')
    await rig.start()
    note = await rig.ada.voice(rig.chat, b"/z80 say: heard")
    await rig.ending(note)
    assert rig.rows("SELECT prompt, project FROM runs") == [("say: heard", "z80")]


async def test_voice_note_that_cannot_be_written_down_is_answered(
    rig: Rig, master: StandIn
) -> None:
    hearing(rig, master, more="voice.max_s = 10")
    card = await draft(rig, "one")
    await rig.reply(await rig.ada.voice(rig.chat, b"long", duration_s=11), "10 s is the most")
    await rig.reply(await rig.ada.voice(rig.chat, b"  "), "nothing was heard")
    await rig.say("two")
    await rig.until(lambda _: card.text == text("one", "two"))


async def test_card_of_a_voice_note_that_fails_goes_even_if_it_arrives_later(
    rig: Rig, master: StandIn
) -> None:
    rig.configure(f'claude.command = "{master.path}"\nvoice.command = ["{ear(rig.folder)}"]')
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    held = Held()
    rig.api.fail(held, method="sendMessage", applied=True, times=1)
    note = await rig.ada.voice(rig.chat, b" ")
    card = await rig.sees_text("Taking in 1 message")
    (rig.folder / "go").touch()
    await rig.until_so(lambda: not rig.rows("SELECT id FROM drafts"))
    held.until.set()
    await rig.reply(note, "nothing was heard")
    await rig.until(lambda chat: card not in chat.messages)


async def test_voice_note_without_a_transcriber_says_what_to_set(rig: Rig, master: StandIn) -> None:
    await rig.start()
    await rig.reply(await rig.ada.voice(rig.chat), "voice.base_url")
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]
