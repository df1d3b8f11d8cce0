"""What a chat has split and what has to be fetched survives a kill at any moment, once."""

from __future__ import annotations

import random

from tests.botapi.chats import Message
from tests.botapi.person import Attached
from tests.faults.promises import LONG
from tests.faults.rig import PATIENT, FaultRig, endings

STRIDES = (1,) if LONG else (3, 4, 5)
FEWEST_DEATHS = 8 if LONG else 2
CHATS = 6
FILLER = "x" * 4000
WANTED = "wanted.bin"
INTERRUPTED = "takopi was stopped while it handled a message"
CONTENT = bytes(range(256)) * 4096


async def send_split(rig: FaultRig, chat: int, name: str) -> Message:
    """A paste that is cut into two messages; the first of them."""
    person = rig.api.person(chat)
    first = await person.send(person.chat, f"append starts.txt: {name} {FILLER}")
    await person.send(person.chat, f"then the end of {name}")
    return first


async def send_album(rig: FaultRig, chat: int, name: str) -> Message:
    person = rig.api.person(chat)
    caption = f"append starts.txt: {name}"
    files = [Attached(f"{name}a.txt", b"a", caption=caption), Attached(f"{name}b.txt", b"b")]
    first, _ = await person.album(person.chat, files)
    return first


async def ask_for_file(rig: FaultRig, chat: int) -> Message:
    person = rig.api.person(chat)
    return await person.send(person.chat, f"/file get {WANTED}")


def documents(message: Message) -> list[str]:
    """The files that came in answer."""
    answers = [m for m in message.chat.everything if m.by_bot and m.reply_to is message]
    return [m.fields["document"]["file_id"] for m in answers if "document" in m.fields]


async def test_kill_after_any_commit_loses_no_part_and_starts_nothing_twice(
    rig: FaultRig,
) -> None:
    chats = rig.open_chats(CHATS)
    config = rig.home / "takopi.toml"
    more = f"{PATIENT}limits.gather_s = 0.2\nfiles.enabled = true\n"
    config.write_text(config.read_text().replace(PATIENT, more))
    for folder in (rig.cwd, *(rig.folder / f"p{chat.id}" for chat in chats[1:])):
        (folder / WANTED).write_bytes(CONTENT)
    sent: dict[str, Message] = {}
    asked: list[Message] = []
    commits = deaths = 0
    while True:
        commits += random.choice(STRIDES)
        chat = chats[commits % CHATS].id
        sent[f"p{commits}"] = await send_split(rig, chat, f"p{commits}")
        sent[f"f{commits}"] = await send_album(rig, chat, f"f{commits}")
        asked.append(await ask_for_file(rig, chat))
        rig.launch("--die-at-commit", str(commits))
        if not await rig.until_dead():
            break
        deaths += 1
    await rig.kill()
    await rig.start()
    await rig.until_over()
    assert deaths >= FEWEST_DEATHS

    prompts = [row[0] for row in rig.rows("SELECT prompt FROM runs")]
    assert len(prompts) == len(sent)
    for name, message in sent.items():
        (prompt,) = [
            prompt for prompt in prompts if f": {name} " in f"{prompt} ".replace("\n", " ")
        ]
        if name.startswith("p"):
            assert prompt == f"append starts.txt: {name} {FILLER}\nthen the end of {name}"
        else:
            assert prompt.endswith(f"\n- .uploads/{name}a.txt\n- .uploads/{name}b.txt")
        assert endings(message.chat, message), name
    started = [line.split()[0] for line in rig.starts.elements()]
    assert len(started) == len(set(started))
    saved = [file.name for file in rig.folder.glob("*/.uploads/[!.]*")]
    assert sorted(saved) == sorted(
        f"{name}{x}.txt" for name in sent for x in "ab" if name[0] == "f"
    )

    for message in asked:
        found = documents(message)
        assert found or any(INTERRUPTED in m.text for m in message.chat.everything)
        assert all(rig.api.world.files[file].data == CONTENT for file in found)
    assert any(map(documents, asked))
    await rig.until_so(lambda: not any((rig.home / "spool").iterdir()))
