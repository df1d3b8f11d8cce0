"""Files that people send become files of the project, and files of the project come to the chat."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.botapi.faults import Cut, Held, Html
from tests.botapi.person import Attached
from tests.botapi.refusal import Refused
from tests.e2e.rig import Rig

ON = "files.enabled = true\n"
NOTES = Attached("notes.txt", b"forty-two\n", caption="run cat .uploads/notes.txt")
LIST = "Files that came with this message:"


def prompts(rig: Rig) -> list[str]:
    return [row[0] for row in rig.rows("SELECT prompt FROM runs ORDER BY id")]


def with_project(rig: Rig, more: str = ON) -> Path:
    repo = rig.project("z80")
    rig.configure(f'{more}\n[projects.z80]\npath = "{repo}"')
    return repo


def git_status(folder: Path) -> str:
    done = subprocess.run(
        ["git", "-C", folder, "status", "--porcelain"], check=True, capture_output=True, text=True
    )
    return done.stdout


async def test_document_is_saved_and_its_path_goes_to_the_engine(rig: Rig) -> None:
    rig.configure(ON)
    await rig.start()
    answer = await rig.ending(await rig.ada.document(rig.chat, NOTES))
    assert "forty-two" in answer.text
    assert (rig.cwd / ".uploads/notes.txt").read_bytes() == b"forty-two\n"
    assert prompts(rig) == [f"{NOTES.caption}\n\n{LIST}\n- .uploads/notes.txt"]


async def test_largest_size_of_a_photo_is_saved(rig: Rig) -> None:
    rig.configure(ON)
    await rig.start()
    picture = bytes(1000)
    await rig.ending(await rig.ada.photo(rig.chat, Attached("x.jpg", picture, caption="say: hm")))
    assert (rig.cwd / ".uploads/photo.jpg").read_bytes() == picture


async def test_file_without_a_caption_is_a_prompt_of_its_own(rig: Rig) -> None:
    rig.configure(ON)
    await rig.start()
    await rig.ending(await rig.ada.document(rig.chat, Attached("a.txt", b"a")))
    assert prompts(rig) == [f"{LIST}\n- .uploads/a.txt"]


async def test_directives_of_the_caption_choose_the_worktree_and_git_does_not_see_the_file(
    rig: Rig,
) -> None:
    repo = with_project(rig)
    await rig.start()
    sent = Attached("a.txt", b"a", caption="/z80 @fix run cat .uploads/a.txt")
    await rig.ending(await rig.ada.document(rig.chat, sent))
    tree = repo / ".worktrees/fix"
    assert (tree / ".uploads/a.txt").read_bytes() == b"a"
    assert not (repo / ".uploads").exists()
    assert not git_status(tree)
    ((cwd,),) = rig.rows("SELECT cwd FROM runs")
    assert Path(os.fsdecode(cwd)) == tree


async def test_name_that_is_taken_gets_a_number_and_force_replaces_it(rig: Rig) -> None:
    rig.configure(ON)
    await rig.start()
    uploads = rig.cwd / ".uploads"
    for number, (data, caption) in enumerate([
        (b"1", "say: 1"),
        (b"2", "say: 2"),
        (b"1", "say: 3"),
        (b"4", "--force say: 4"),
    ]):
        await rig.ending(await rig.ada.document(rig.chat, Attached("a.txt", data, caption=caption)))
        assert len(prompts(rig)) == number + 1
    assert {file.name: file.read_bytes() for file in uploads.iterdir()} == {
        "a.txt": b"4",
        "a-2.txt": b"2",
    }
    assert [prompt.rpartition("/")[2] for prompt in prompts(rig)] == [
        "a.txt",
        "a-2.txt",
        "a.txt",
        "a.txt",
    ]
    assert prompts(rig)[3].startswith("say: 4\n")


async def test_with_files_off_the_caption_runs_and_the_file_is_never_fetched(rig: Rig) -> None:
    await rig.start()
    sent = await rig.ada.document(rig.chat, Attached("a.txt", b"a", caption="say: hello"))
    await rig.reply(sent, "a.txt was not taken: files are off here", "files.enabled = true")
    assert "hello" in (await rig.ending(sent)).text
    alone = await rig.ada.document(rig.chat, Attached("b.txt", b"b"))
    await rig.reply(alone, "b.txt was not taken")
    assert prompts(rig) == ["say: hello"]
    assert rig.api.sent("getFile") == []
    assert not (rig.cwd / ".uploads").exists()


@pytest.mark.parametrize("caption", ["/status", "/draft show"])
async def test_file_with_words_that_are_not_run_is_told_of(rig: Rig, caption: str) -> None:
    rig.configure(ON)
    await rig.start()
    sent = await rig.ada.document(rig.chat, Attached("a.txt", b"a", caption=caption))
    await rig.reply(sent, "a.txt was not taken")
    assert rig.api.sent("getFile") == []


async def test_uploads_folder_that_is_a_link_is_refused_and_nothing_is_written_there(
    rig: Rig,
) -> None:
    rig.configure(ON)
    outside = rig.folder / "outside"
    outside.mkdir()
    (rig.cwd / ".uploads").symlink_to(outside)
    await rig.start()
    sent = await rig.ada.document(rig.chat, NOTES)
    await rig.reply(sent, ".uploads is a link")
    assert list(outside.iterdir()) == []
    assert prompts(rig) == []


async def test_file_that_is_too_big_is_refused_before_it_is_asked_for(rig: Rig) -> None:
    rig.configure(ON)
    await rig.start()
    big = Attached("big.bin", b"x", size_bytes=21 * 1024 * 1024, caption="say: big")
    await rig.reply(await rig.ada.document(rig.chat, big), "big.bin is over 20 MB", "smaller one")
    assert rig.api.sent("getFile") == []
    assert prompts(rig) == []


async def test_file_that_telegram_no_longer_has_is_told_of(rig: Rig) -> None:
    rig.configure(ON)
    rig.api.fail(Refused(404, "Not Found"), method="download")
    await rig.start()
    sent = await rig.ada.document(rig.chat, NOTES)
    await rig.reply(sent, "Telegram no longer has this file", "send it again")
    assert prompts(rig) == []


async def test_download_that_is_cut_or_meets_a_gateway_is_tried_again(rig: Rig) -> None:
    rig.configure(ON)
    rig.api.fail(Cut(), method="download")
    rig.api.fail(Html(), method="getFile")
    await rig.start()
    answer = await rig.ending(await rig.ada.document(rig.chat, NOTES))
    assert "forty-two" in answer.text


async def test_only_prompts_behind_it_in_its_scope_wait_for_a_download(rig: Rig) -> None:
    held = Held()
    rig.configure(f'{ON}[projects.other]\npath = "{rig.project("other")}"\nchat_id = 1002')
    bob = rig.api.person(1002, "Bob")
    rig.api.fail(held, method="download")
    await rig.start()
    sent = await rig.ada.document(rig.chat, NOTES)
    await rig.api.wait_for_request(lambda request: request.method == "download")
    behind = await rig.say("say: behind it")
    await rig.reply(await rig.say("/status"), "takopi")
    elsewhere = await bob.send(bob.chat, "say: elsewhere")
    await rig.sees(lambda m: m.reply_to is elsewhere and "done" in m.text, chat=bob.chat)
    assert [prompt for prompt in prompts(rig) if "elsewhere" not in prompt] == []
    held.until.set()
    await rig.ending(sent)
    await rig.ending(behind)
    own = [prompt for prompt in prompts(rig) if "elsewhere" not in prompt]
    assert [prompt.split("\n")[0] for prompt in own] == [NOTES.caption, "say: behind it"]


async def test_kill_during_a_download_loses_and_doubles_nothing(rig: Rig) -> None:
    rig.configure(ON)
    held = Held()
    rig.api.fail(held, method="download")
    await rig.start()
    sent = await rig.ada.document(rig.chat, NOTES)
    await rig.api.wait_for_request(lambda request: request.method == "download")
    await rig.stop(signal.SIGKILL)
    held.until.set()
    await rig.start()
    await rig.ending(sent)
    assert len(prompts(rig)) == 1
    assert [file.name for file in (rig.cwd / ".uploads").iterdir()] == ["notes.txt"]


async def test_stale_message_brings_its_file_when_it_is_run(rig: Rig) -> None:
    sent = await rig.ada.document(rig.chat, NOTES)
    rig.configure(f"{ON}limits.stale_s = 0")
    await rig.start()
    await rig.press(await rig.reply(sent, "Shall it run now?"), "Run")
    assert "forty-two" in (await rig.ending(sent)).text


async def test_edited_caption_of_a_queued_message_keeps_its_file(rig: Rig) -> None:
    rig.configure(f"{ON}limits.max_runs = 1")
    await rig.start()
    busy = await rig.say("hang")
    await rig.progress(busy, "working")
    sent = await rig.ada.document(rig.chat, NOTES)
    await rig.until_so(lambda: len(prompts(rig)) == 2)
    assert rig.rows("SELECT cwd FROM runs")[1] == (os.fsencode(rig.cwd),)
    await rig.ada.edit(sent, "say: other words")
    wanted = f"say: other words\n\n{LIST}\n- .uploads/notes.txt"
    await rig.until_so(lambda: prompts(rig)[1] == wanted)


async def test_file_get_sends_a_file_of_the_context(rig: Rig) -> None:
    repo = with_project(rig)
    (repo / "out").mkdir()
    (repo / "out/report.bin").write_bytes(bytes(range(256)))
    await rig.start()
    asked = await rig.say("/file get /z80 out/report.bin")
    sent = await rig.reply(asked, "out/report.bin")
    document = sent.fields["document"]
    assert document["file_name"] == "report.bin"
    assert rig.api.world.files[document["file_id"]].data == bytes(range(256))


async def test_file_get_as_a_reply_looks_where_that_run_worked(rig: Rig) -> None:
    with_project(rig)
    await rig.start()
    answer = await rig.answer("/z80 @fix write made.txt: here")
    sent = await rig.reply(await rig.say("/file get made.txt", to=answer), "made.txt")
    assert rig.api.world.files[sent.fields["document"]["file_id"]].data.strip() == b"here"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("get nothing.txt", "there is no file nothing.txt"),
        ("get ../home/takopi.toml", "outside of the folder"),
        ("get /etc/hostname", "outside of the folder"),
        ("get .env", "files.deny"),
        ("get link", "files.deny"),
        ("get out", "outside of the folder"),
        ("get folder", "folder is a folder"),
        ("get empty", "empty is empty"),
        ("get", "which file"),
        ("put x", "/file cannot do that"),
        ("", "which file"),
    ],
)
async def test_file_get_says_why_a_file_cannot_be_had(rig: Rig, words: str, told: str) -> None:
    rig.configure(ON)
    (rig.cwd / ".env").write_text("SECRET=1")
    (rig.cwd / "link").symlink_to(".env")
    (rig.cwd / "out").symlink_to("/etc/hostname")
    (rig.cwd / "folder").mkdir()
    (rig.cwd / "empty").touch()
    await rig.start()
    asked = await rig.say(f"/file {words}".strip())
    await rig.reply(asked, told)
    assert rig.api.sent("sendDocument") == []


async def test_file_get_is_refused_while_files_are_off(rig: Rig) -> None:
    (rig.cwd / "a.txt").write_text("a")
    await rig.start()
    await rig.reply(await rig.say("/file get a.txt"), "files are off here")


def branches(repo: Path) -> list[str]:
    done = subprocess.run(
        ["git", "-C", repo, "branch", "--format=%(refname:short)"],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split()


async def test_file_get_of_a_branch_without_a_worktree_makes_none(rig: Rig) -> None:
    repo = with_project(rig)
    await rig.start()
    asked = await rig.say("/file get /z80 @typo README.md")
    await rig.reply(asked, "there is no worktree for @typo")
    assert branches(repo) == ["main"]


@pytest.mark.parametrize(
    ("name", "told"), [("server.pem", "files.deny"), ("gone.txt", "no longer has this file")]
)
async def test_file_that_cannot_be_taken_makes_no_worktree(rig: Rig, name: str, told: str) -> None:
    repo = with_project(rig)
    rig.api.fail(Refused(404, "Not Found"), method="download")
    await rig.start()
    sent = Attached(name, b"x", caption="/z80 @fix say: hi")
    await rig.reply(await rig.ada.document(rig.chat, sent), told)
    assert branches(repo) == ["main"]


async def test_album_with_force_keeps_each_of_its_photos(rig: Rig) -> None:
    rig.configure(ON)
    uploads = rig.cwd / ".uploads"
    uploads.mkdir()
    (uploads / "photo.jpg").write_bytes(b"old")
    await rig.start()
    photos = [Attached("x.jpg", b"1", caption="--force say: x"), Attached("x.jpg", b"2")]
    first, _ = await rig.ada.album(rig.chat, photos, as_photos=True)
    await rig.ending(first)
    assert {file.name: file.read_bytes() for file in uploads.iterdir()} == {
        "photo.jpg": b"1",
        "photo-2.jpg": b"2",
    }


async def test_folder_that_is_gone_is_told_of(rig: Rig) -> None:
    rig.configure(ON)
    await rig.start()
    rig.cwd.rmdir()
    await rig.reply(await rig.say("/file get a.txt"), "the folder that is worked in")
    sent = await rig.ada.document(rig.chat, NOTES)
    await rig.reply(sent, "the folder that is worked in")


def with_everything(rig: Rig) -> None:
    """A project that takopi's home lies in, and a file with its token, too."""
    token_file = rig.folder / "token"
    token_file.touch(0o600)
    token_file.write_text(rig.api.token, encoding="utf-8")
    more = f'bot_token_file = "{token_file}"\nvoice.api_key_file = "{rig.folder}/voice-key"'
    rig.configure(f'{ON}{more}\n[projects.all]\npath = "{rig.folder}"')


@pytest.mark.parametrize(
    "path", ["home/state.db", "home/takopi.toml", "start/link/takopi.toml", "token", "voice-key"]
)
async def test_file_get_sends_nothing_of_takopis_own(rig: Rig, path: str) -> None:
    with_everything(rig)
    (rig.folder / "voice-key").write_text("secret", encoding="utf-8")
    (rig.cwd / "link").symlink_to(rig.home)
    await rig.start()
    await rig.reply(await rig.say(f"/file get /all {path}"), "takopi's own")
    assert rig.api.sent("sendDocument") == []


async def test_token_in_a_file_is_masked_before_it_is_kept_or_sent(rig: Rig) -> None:
    with_everything(rig)
    (rig.folder / "notes").write_text(f"<{rig.api.token}>", encoding="utf-8")
    await rig.start()
    sent = await rig.reply(await rig.say("/file get /all notes"), "notes")
    data = rig.api.world.files[sent.fields["document"]["file_id"]].data
    assert data == b"<" + b"*" * len(rig.api.token) + b">"
    await rig.stop()
    kept = b"".join(file.read_bytes() for file in rig.home.glob("state.db*"))
    assert rig.api.token.encode() not in kept
