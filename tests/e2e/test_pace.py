from __future__ import annotations

import trio

from tests.botapi.refusal import Refused
from tests.e2e.rig import ADA, WITHIN_S, Rig

GROUP = -1001234567890
LEFT_ALONE_S = 40
OTHER_S = 2.0


async def test_f6_a_chat_that_must_wait_holds_up_no_other(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(f'allowed_user_ids = [{ADA}]\n[projects.z80]\npath = "{repo}"\nchat_id = {GROUP}')
    group = rig.api.supergroup(GROUP)
    await rig.start()
    wait = Refused(
        429,
        f"Too Many Requests: retry after {LEFT_ALONE_S}",
        parameters={"retry_after": LEFT_ALONE_S},
    )
    fault = rig.api.fail(wait, chat=group)
    await rig.say("/z80 say: for the group", chat=group)
    await fault.struck(within_s=WITHIN_S)

    delays_s: list[float] = []
    for _ in range(3):
        began = trio.current_time()
        progress = await rig.progress(await rig.say("steps 1 then hang"), "step 1 of 1")
        delays_s.append(progress.versions[0].at_s - began)
        pressed = await rig.ada.press(progress, "Cancel")
        answered = await pressed.answered(within_s=WITHIN_S)
        delays_s.append(answered.at_s - pressed.at_s)

    # A busy machine may be late once; a chat that waits for another is late each time.
    assert min(delays_s[::2]) < OTHER_S
    assert min(delays_s[1::2]) < OTHER_S
    assert len([r for r in rig.api.requests if r.chat_id == GROUP]) == 1
