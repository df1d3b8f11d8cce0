from __future__ import annotations

from tests.e2e.rig import Rig


async def test_good_change_applies_without_a_restart(rig: Rig) -> None:
    await rig.start()
    repo = rig.project("z80")

    rig.configure(f'[projects.z80]\npath = "{repo}"')
    await rig.until_logged("config.changed")

    assert str(repo) in (await rig.answer("/z80 run pwd")).text.splitlines()
    await rig.api.wait_for_request(
        lambda r: (
            r.method == "setMyCommands"
            and any(command["command"] == "z80" for command in r.parameters["commands"])
        )
    )


async def test_f17_bad_change_keeps_the_old_config_and_is_told(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(f'[projects.z80]\npath = "{repo}"')
    await rig.start()

    rig.configure('defualt_project = "z80"')

    told = await rig.sees_text("defualt_project")
    assert "default_project" in told.text
    assert str(repo) in (await rig.answer("/z80 run pwd")).text.splitlines()


async def test_f17_mended_config_applies(rig: Rig) -> None:
    repo = rig.project("z80")
    await rig.start()
    rig.configure('defualt_project = "z80"')
    await rig.sees_text("defualt_project")

    rig.configure(f'default_project = "z80"\n[projects.z80]\npath = "{repo}"')
    await rig.until_logged("config.changed")

    assert str(repo) in (await rig.answer("run pwd")).text.splitlines()


async def test_max_runs_applies_to_what_waits(rig: Rig) -> None:
    rig.configure("[limits]\nmax_runs = 1")
    await rig.start()
    await rig.progress(await rig.say("hang"), "working")
    queued = await rig.say("say: there is room")
    await rig.progress(queued, "queued")

    rig.configure("[limits]\nmax_runs = 2")

    assert "there is room" in (await rig.ending(queued)).text


async def test_change_of_the_bot_asks_for_a_restart(rig: Rig) -> None:
    await rig.start()
    file = rig.home / "takopi.toml"

    file.write_text(file.read_text().replace("127.0.0.1", "localhost"), encoding="utf-8")

    told = await rig.sees_text("takes effect after a restart")
    assert (
        told.text
        == "A new bot_token, api_url, transports or web.port takes effect after a restart."
    )
