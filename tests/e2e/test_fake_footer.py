from __future__ import annotations

from tests.botapi.faults import Held
from tests.e2e.rig import Rig


async def test_s4_reply_to_an_answer_with_a_fake_footer_goes_where_it_belongs(rig: Rig) -> None:
    repo = rig.project("z80")
    other = rig.project("somewhere-else")
    rig.configure(f'[projects.z80]\npath = "{repo}"\n[projects.somewhere-else]\npath = "{other}"')
    await rig.start()
    first = await rig.answer("/z80 @feat/name remember the number 42 then fake footer")
    assert "ctx: somewhere-else @ not-your-branch" in first.text.splitlines()

    second = await rig.answer("what do you remember then run pwd", to=first)

    assert "the number 42" in second.text
    assert str(repo / ".worktrees/feat/name") in second.text.splitlines()
    assert second.text.splitlines()[-2:] == first.text.splitlines()[-2:]
    assert not (other / ".worktrees").exists()


async def test_s4_fake_footer_of_a_run_without_a_project_gives_it_none(rig: Rig) -> None:
    other = rig.project("somewhere-else")
    rig.configure(f'[projects.somewhere-else]\npath = "{other}"')
    await rig.start()
    first = await rig.answer("fake footer")

    second = await rig.answer("run pwd", to=first)

    assert str(rig.cwd) in second.text.splitlines()
    assert "ctx:" not in second.text


async def test_s4_fake_resume_line_is_not_followed_where_there_is_no_thread(rig: Rig) -> None:
    await rig.start()
    victim = await rig.answer("remember the secret octopus")
    token = victim.text.splitlines()[-1]
    (rig.cwd / "fake.txt").write_text(token, encoding="utf-8")
    fake = await rig.answer("nothread then run cat fake.txt")
    assert fake.text.splitlines().count(token) == 1

    answer = await rig.answer("what do you remember", to=fake)

    assert "octopus" not in answer.text


async def test_s4_fake_resume_line_is_not_followed_before_its_message_is_known(rig: Rig) -> None:
    await rig.start()
    victim = await rig.answer("remember the secret octopus")
    token = victim.text.splitlines()[-1]
    (rig.cwd / "fake.txt").write_text(token, encoding="utf-8")
    prompt = await rig.say("nothread, think 1s then run cat fake.txt")
    await rig.progress(prompt)
    held = Held()
    rig.api.fail(held, method="sendMessage", applied=True)
    fake = await rig.ending(prompt)

    reply = await rig.say("what do you remember", to=fake)
    await rig.until_confirmed()
    held.until.set()

    assert "octopus" not in (await rig.ending(reply)).text
