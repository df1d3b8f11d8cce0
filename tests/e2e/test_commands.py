from __future__ import annotations

from tests.botapi.chats import Message
from tests.e2e.rig import Rig
from tests.projects.repos import branches


async def ask(rig: Rig, command: str, *, to: Message | None = None) -> Message:
    """Type a command, and wait for what is said to it."""
    return await rig.reply(await rig.say(command, to=to))


def two_projects(rig: Rig) -> str:
    paths = {alias: rig.project(alias) for alias in ("z80", "other")}
    return "\n".join(f'[projects.{alias}]\npath = "{path}"' for alias, path in paths.items())


async def test_help_and_start_list_commands_engines_and_projects(rig: Rig) -> None:
    rig.configure(two_projects(rig))
    await rig.start()

    shown = await ask(rig, "/help")

    for word in ("/status", "/runs", "/cancel", "/new", "/ctx", "/topic", "/agent", "/model"):
        assert word in shown.text
    for word in ("/trigger", "/worktrees", "/claude", "/demo", "/z80", "/other"):
        assert word in shown.text
    assert (await ask(rig, f"/start@{rig.api.bot.username}")).text == shown.text


async def test_command_for_another_bot_is_not_ours(rig: Rig) -> None:
    await rig.start()

    answer = await rig.answer("/help@other_bot me")

    assert "You said: “/help@other_bot me”" in answer.text


async def test_status_tells_of_runs_and_engines(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1")
    await rig.start()
    await rig.progress(await rig.say("hang"), "working")
    await rig.progress(await rig.say("say: second"), "queued")

    shown = await ask(rig, "/status")

    assert "runs: 1 of 1 working, 1 queued" in shown.text
    assert "✓ demo: asks you before it acts" in shown.text
    assert "last poll: " in shown.text


async def test_runs_lists_them_and_shows_an_answer_again(rig: Rig) -> None:
    await rig.start()
    await rig.answer("say: the answer is 42")
    await rig.ending(await rig.say("fail: the sea is too rough"), "error")

    shown = await ask(rig, "/runs")
    assert "1 · done · demo" in shown.text
    assert "2 · error · demo" in shown.text
    await rig.press(shown, "Show 1")

    again = await rig.sees(lambda m: m.reply_to is shown)
    assert "the answer is 42" in again.text
    assert again.text.splitlines()[-1].startswith("demo --resume ")


async def test_reply_to_an_answer_that_was_shown_again_goes_on_in_its_thread(rig: Rig) -> None:
    await rig.start()
    await rig.answer("remember the number 42")
    shown = await ask(rig, "/runs")
    await rig.press(shown, "Show 1")
    again = await rig.sees(lambda m: m.reply_to is shown)

    assert "the number 42" in (await rig.answer("what do you remember", to=again)).text


async def test_cancel_with_nothing_running_says_so(rig: Rig) -> None:
    await rig.start()

    assert (await ask(rig, "/cancel")).text == "Nothing is running here."


async def test_cancel_alone_stops_the_only_run(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("hang")
    await rig.progress(prompt, "demo --resume")

    await rig.say("/cancel")

    await rig.ending(prompt, "cancelled")


async def test_cancel_as_a_reply_stops_that_run(rig: Rig) -> None:
    await rig.start()
    prompts = [await rig.say("steps 1 then hang") for _ in range(2)]
    for prompt in prompts:
        await rig.progress(prompt, "step 1 of 1")

    await rig.say("/cancel", to=prompts[1])

    await rig.ending(prompts[1], "cancelled")
    assert rig.rows("SELECT state FROM runs ORDER BY id") == [("running",), ("cancelled",)]


async def test_cancel_asks_which_of_several_runs(rig: Rig) -> None:
    await rig.start()
    prompts = [await rig.say(f"hang in place {n}") for n in range(2)]
    for prompt in prompts:
        await rig.progress(prompt, "demo --resume")

    picker = await ask(rig, "/cancel")
    assert picker.text == "Which run?"
    label = next(label for label in picker.labels if "hang in place 1" in label)
    await rig.press(picker, label)

    await rig.ending(prompts[1], "cancelled")
    await rig.until(lambda _: not picker.labels)
    assert rig.rows("SELECT state FROM runs ORDER BY id") == [("running",), ("cancelled",)]


async def test_new_ends_the_conversation_of_a_chat(rig: Rig) -> None:
    rig.configure('session_mode = "chat"')
    await rig.start()
    await rig.answer("remember the number 42")

    await ask(rig, "/new")

    answer = await rig.answer("what do you remember")
    assert "You have not asked me to remember anything." in answer.text


async def test_ctx_binds_a_chat_until_it_is_cleared(rig: Rig) -> None:
    rig.configure(two_projects(rig))
    await rig.start()

    assert "z80 @ feat/x" in (await ask(rig, "/ctx set z80 @feat/x")).text
    bound = await rig.answer("run pwd")
    assert str(rig.folder / "z80/.worktrees/feat/x") in bound.text.splitlines()
    assert "ctx: z80 @ feat/x" in bound.text.splitlines()
    await ask(rig, "/ctx clear")

    assert str(rig.cwd) in (await rig.answer("run pwd")).text.splitlines()


async def test_ctx_is_chosen_by_a_button_once(rig: Rig) -> None:
    rig.configure(two_projects(rig))
    await rig.start()
    picker = await ask(rig, "/ctx")
    data = {label: picker.button(label)["callback_data"] for label in picker.labels}

    for label in ("other", "z80"):
        await (await rig.ada.press_data(picker, data[label])).answered()

    await rig.until(lambda _: not picker.labels)
    assert str(rig.folder / "other") in (await rig.answer("run pwd")).text.splitlines()


async def test_ctx_of_an_unknown_project_is_refused(rig: Rig) -> None:
    rig.configure(two_projects(rig))
    await rig.start()

    refused = await ask(rig, "/ctx set nowhere")

    assert "nowhere" in refused.text
    assert rig.rows("SELECT project FROM scopes WHERE project IS NOT NULL") == []


async def test_agent_chooses_the_engine_of_a_chat(rig: Rig) -> None:
    file = rig.home / "takopi.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('default_engine = "demo"', 'default_engine = "codex"'))
    await rig.start()

    picker = await ask(rig, "/agent")
    assert picker.labels == ("demo",)
    await rig.press(picker, "demo")
    await rig.until(lambda _: "demo answers in this chat from now on." in picker.text)

    assert (await rig.answer("hello")).text.startswith("done · demo")


async def test_agent_that_is_not_installed_is_refused_with_how_to_install_it(rig: Rig) -> None:
    await rig.start()

    refused = await ask(rig, "/agent codex")

    assert refused.text.splitlines()[0] == "codex is not installed"
    assert "npm install" in refused.text


async def test_model_is_handed_to_the_engine_and_shown_in_the_answer(rig: Rig) -> None:
    await rig.start()

    await ask(rig, "/model octopus-8")

    assert "octopus-8 · " in (await rig.answer("hello")).text


async def test_worktrees_are_listed_with_their_diff(rig: Rig) -> None:
    rig.configure(two_projects(rig))
    await rig.start()
    await rig.answer("/z80 @feat/name write a.txt: hello")

    shown = await ask(rig, "/worktrees z80")
    assert "feat/name · changed · " in shown.text
    await rig.press(shown, "Diff feat/name")

    diff = await rig.sees(lambda m: m.reply_to is shown)
    assert "+hello" in diff.text


async def test_dirty_worktree_is_archived_only_after_a_second_word(rig: Rig) -> None:
    rig.configure(two_projects(rig))
    await rig.start()
    await rig.answer("/z80 @feat/name write a.txt: hello")
    folder = rig.folder / "z80/.worktrees/feat/name"
    shown = await ask(rig, "/worktrees z80")

    await rig.press(shown, "Archive feat/name")
    await rig.until(lambda _: "Archive it anyway" in shown.labels)
    assert folder.exists()
    await rig.press(shown, "Archive it anyway")

    await rig.until(lambda _: "is archived; the branch is still there." in shown.text)
    assert not folder.exists()
    assert branches(rig.folder / "z80") == ["feat/name", "main"]


async def test_diff_of_a_run_that_changed_files(rig: Rig) -> None:
    rig.configure(two_projects(rig))
    await rig.start()

    answer = await rig.answer("/z80 @feat/name write a.txt: hello")
    assert answer.labels == ("Diff",)
    await rig.press(answer, "Diff")

    assert "+hello" in (await rig.sees(lambda m: m.reply_to is answer)).text


async def test_unknown_command_goes_to_the_engine(rig: Rig) -> None:
    await rig.start()

    assert "You said: “/nosuch thing”" in (await rig.answer("/nosuch thing")).text
