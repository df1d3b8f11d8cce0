from __future__ import annotations

import re

from takopi.engines.demo.child.texts import long_text
from tests.botapi.chats import Chat, Message
from tests.botapi.text import units
from tests.e2e.rig import WITHIN_S, Rig

CHARS = 12_000


async def answers(rig: Rig, prompt: Message, count: int) -> list[Message]:
    """The parts of an answer, in the order in which they arrived."""

    def parts(chat: Chat) -> list[Message]:
        return [m for m in chat.bot_messages if m.reply_to is prompt and not m.silent]

    await rig.chat.wait_until(lambda chat: len(parts(chat)) >= count, within_s=WITHIN_S)
    return parts(rig.chat)


def words(text: str) -> list[str]:
    """The words of a text, whatever stands between and around them."""
    return re.findall(r"\w+|🐙|👩‍👩‍👧‍👦|🇪🇺", text)


async def test_long_answer_arrives_complete_in_order_and_with_a_footer_on_every_part(
    rig: Rig,
) -> None:
    repo = rig.project("z80")
    rig.configure(f'default_project = "z80"\n[projects.z80]\npath = "{repo}"')
    await rig.start()

    prompt = await rig.say(f"long answer {CHARS}")
    await rig.sees_text("That was all.")
    parts = await answers(rig, prompt, 3)

    footers = [message.text.splitlines()[-2:] for message in parts]
    assert all(footer == footers[0] for footer in footers)
    assert footers[0][0] == "ctx: z80"
    assert footers[0][1].startswith("demo --resume ")
    for number, message in enumerate(parts, 1):
        assert units(message.text) <= 4096
        assert f"({number}/{len(parts)})" in message.text
        assert {"code", "pre"} <= {entity["type"] for entity in message.entities}
    said = words("\n".join(strip(message, len(parts)) for message in parts))
    assert said == words(plain_markdown(long_text(CHARS)))


async def test_answer_of_too_many_parts_comes_as_a_file_too(rig: Rig) -> None:
    rig.configure("[limits]\nmax_parts = 2")
    await rig.start()

    prompt = await rig.say(f"long answer {CHARS}")
    document = await rig.sees(lambda m: "document" in m.fields)
    parts = await answers(rig, prompt, 3)

    assert [("document" in m.fields) for m in parts] == [False, False, True]
    assert document.fields["document"]["file_name"] == "answer-1.md"
    file = rig.api.world.files[document.fields["document"]["file_id"]]
    assert file.data.decode() == long_text(CHARS)


def strip(message: Message, parts: int) -> str:
    """What of a part is the answer itself."""
    text = re.sub(r"^done · demo · \S+\n\n", "", message.text)
    body = text.splitlines()[:-2]
    return re.sub(rf"\(\d/{parts}\)|demo-model.*|.* in · .* out.*", "", "\n".join(body))


def plain_markdown(text: str) -> str:
    """The text without the signs of markdown, and without the lines that only carry them."""
    kept = [line for line in text.splitlines() if not line.startswith(("```", "|--"))]
    return "\n".join(kept)
