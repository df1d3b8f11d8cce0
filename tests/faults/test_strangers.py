"""S1 and S4: who is not let in leaves no trace, and what an engine prints has no say."""

from __future__ import annotations

from tests.botapi.person import Attached
from tests.botapi.presses import Pressed
from tests.conftest import Figures
from tests.faults.rig import ADA, PATIENT, WITHIN_S, FaultRig

BOB, GROUP, OTHER, NEWS = 1002, -1002000, -1003000, -1004000


async def test_s1_strangers_have_no_effect_no_reply_and_leave_nothing(
    rig: FaultRig, figures: Figures
) -> None:
    repo = rig.project("z80")
    rig.configure(
        f"allowed_user_ids = [{ADA}]\n{PATIENT}files.enabled = true\nvoice.command = ['cat']\n"
        f'[projects.z80]\npath = "{repo}"\nchat_id = {GROUP}\n'
    )
    bob = rig.api.person(BOB, "Bob")
    group, other = rig.api.supergroup(GROUP), rig.api.supergroup(OTHER, "Others")
    channel = rig.api.channel(NEWS)
    await rig.start()
    prompt = await rig.say("append starts.txt: ada then hang")
    card = await rig.progress(prompt)
    cancel = card.button("Cancel")["callback_data"]
    await rig.until_so(lambda: rig.starts == {"ada": 1}, lambda: rig.log[-3000:])

    evil = "append starts.txt: evil"
    said = await bob.send(bob.chat, evil)
    await bob.edit(said, f"{evil} again")
    await bob.voice(bob.chat, b"evil words")
    for chat in (bob.chat, group):
        await bob.document(chat, Attached("evil.txt", b"evil", caption=f"@takopi_bot {evil}"))
    in_group = await bob.send(group, f"@takopi_bot {evil}")
    await bob.edit(in_group, f"@takopi_bot {evil} again")
    await bob.send(group, evil, as_chat=group)
    await bob.send(group, evil, as_chat=channel)
    await rig.ada.send(other, f"@takopi_bot {evil}")
    rig.api.post(channel, evil)
    await bob.forward(card, bob.chat)
    forged: list[Pressed] = [
        await bob.press_data(card, cancel),
        await bob.press_data(in_group, cancel),
        await bob.press_data(said, cancel),
    ]
    junk = [
        "",
        "rn",
        "rn:cancel",
        "rn:cancel:x",
        "rn:cancel:-1",
        "ak:1:1:0:allow",
        "zz:1",
        "x" * 64,
    ]
    pressed = [await rig.ada.press_data(card, data) for data in junk]
    for press in pressed:
        await press.answered(within_s=WITHIN_S)
    await rig.until_confirmed()

    assert rig.rows("SELECT state FROM runs") == [("running",)]
    assert rig.starts == {"ada": 1}
    kept = rig.rows("SELECT count(*) FROM inbox")
    assert kept[0][0] <= 1 + len(junk)
    assert b"evil" not in b"".join(
        file.read_bytes() for file in rig.home.rglob("*") if file.is_file()
    )
    for chat in (bob.chat, group, other, channel):
        assert not [m for m in chat.everything if m.by_bot]
    assert [press.answer for press in forged] == [None] * len(forged)
    assert rig.api.sent("getFile") == []
    # Once for each chat that he tried.
    assert rig.log.count(f"sender={BOB}") == 3
    figures("S1", strangers=4, updates=15, effects=0, replies=0, stored=0)


async def test_s4_an_engine_that_prints_a_footer_does_not_decide_where_a_reply_goes(
    rig: FaultRig, figures: Figures
) -> None:
    await rig.start()
    first = await rig.answer("remember the number 42")
    second = await rig.say("fake footer", to=first)
    faked = await rig.ending(second)
    assert faked.text.count("--resume") >= 2
    third = await rig.say("what do you remember", to=faked)
    told = await rig.ending(third)
    assert "42" in told.text
    threads = {row[0] for row in rig.rows("SELECT thread FROM runs")}
    assert len(threads) == 1
    contexts = {row[0] for row in rig.rows("SELECT project FROM runs")}
    assert contexts == {None}
    figures("S4", misled=0)
