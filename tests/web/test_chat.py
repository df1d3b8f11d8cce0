"""What is said on the page, what comes of it, and what a page that was away hears."""

from __future__ import annotations

from pathlib import Path

import trio

from takopi.core.ids import MessageRef
from takopi.core.messages import IncomingMessage, Press
from takopi.core.outgoing import Attachment, Button, Card, Outgoing, Text
from takopi.web.chat import SCOPE
from takopi.web.feed import Feed
from tests.web.rig import Rig, open_rig

PRESSABLE = Card(Text("Shall I?"), ((Button("Yes", "ak:1:yes"),),))


async def test_message_arrives_once_however_often_it_is_sent(rig: Rig) -> None:
    first = await rig.say("hello")
    again = await rig.say("hello")
    await rig.say("more", key="key-0002")
    assert first.json() == again.json()
    texts = [(await rig.next_arrival()).what for _ in range(2)]
    assert [what.text for what in texts if isinstance(what, IncomingMessage)] == ["hello", "more"]


async def test_reply_carries_what_it_replies_to(rig: Rig) -> None:
    ref = await rig.web.send(SCOPE, Outgoing(Card(Text("the answer"))))
    await rig.say("go on", reply_to=ref.message_id)
    what = (await rig.next_arrival()).what
    assert isinstance(what, IncomingMessage)
    assert (what.reply_ref, what.reply_to_text) == (ref, "the answer")
    assert what.sender_id == what.chat_id


async def test_reply_to_what_is_gone_is_refused(rig: Rig) -> None:
    assert (await rig.say("go on", reply_to=77)).status_code == 409


async def test_press_arrives_and_its_answer_goes_to_the_open_page(rig: Rig) -> None:
    ref = await rig.web.send(SCOPE, Outgoing(PRESSABLE))
    async with rig.events() as events:
        assert (await events.next())["event"] == "message"
        body = {"message": ref.message_id, "data": "ak:1:yes", "key": "press-01"}
        assert (await rig.post("/press", body)).status_code == 200
        what = (await rig.next_arrival()).what
        assert isinstance(what, Press)
        assert (what.ref, what.data) == (ref, "ak:1:yes")
        rig.web.acknowledge(what, "Done.")
        toast = await events.next()
        assert toast["data"] == {"key": "press-01", "text": "Done.", "alert": False}


async def test_button_that_is_not_on_the_message_cannot_be_pressed(rig: Rig) -> None:
    ref = await rig.web.send(SCOPE, Outgoing(PRESSABLE))
    forged = {"message": ref.message_id, "data": "ak:1:no", "key": "press-01"}
    assert (await rig.post("/press", forged)).status_code == 409
    rig.web.clear_buttons(ref)
    await rig.web.outbox.flush()
    late = {"message": ref.message_id, "data": "ak:1:yes", "key": "press-02"}
    answer = await rig.post("/press", late)
    assert (answer.status_code, answer.json()["error"]) == (409, "This was decided already.")


async def test_page_that_was_away_hears_of_everything_once(rig: Rig) -> None:
    kept = await rig.web.send(SCOPE, Outgoing(Card(Text("one"))))
    gone = await rig.web.send(SCOPE, Outgoing(Card(Text("two"))))
    async with rig.events() as events:
        seen = [await events.next() for _ in range(2)]
    rig.web.edit(kept, Card(Text("one, edited")))
    rig.web.delete(gone)
    await rig.web.outbox.flush()
    await rig.web.send(SCOPE, Outgoing(Card(Text("three"))))
    async with rig.events(last=seen[-1]["id"]) as events:
        missed = [(await events.next())["data"] for _ in range(3)]
    assert {m["text"]["text"] for m in missed if not m["deleted"]} == {"one, edited", "three"}
    assert [m["id"] for m in missed if m["deleted"]] == [gone.message_id]


async def test_page_of_another_store_is_told_to_begin_again(rig: Rig) -> None:
    async with rig.events(last="999") as events:
        assert (await events.next())["event"] == "reset"


async def test_script_in_a_message_stays_text(rig: Rig) -> None:
    script = "<script>alert(1)</script>"
    await rig.say(script)
    answer = await rig.client.get("/history")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["messages"][0]["text"]["text"] == script


async def test_file_is_a_download_whatever_is_in_it(rig: Rig) -> None:
    file = Attachment('a"\r\nb.html', b"<script>alert(1)</script>")
    ref = await rig.web.send(SCOPE, Outgoing(Card(Text("")), attachment=file))
    answer = await rig.client.get(f"/file/{ref.message_id}")
    assert answer.content == file.data
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == (
        "attachment; filename*=UTF-8''a%22%0D%0Ab.html"
    )
    rig.web.delete(ref)
    await rig.web.outbox.flush()
    assert (await rig.client.get(f"/file/{ref.message_id}")).status_code == 404


async def test_file_from_the_disk_is_a_download_until_its_message_goes(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        async with rig.spool.new() as new:
            new.write(b"content")
            file = new.finish()
            message = Outgoing(Card(Text("")), attachment=Attachment("a.bin", file))
            ref = await rig.web.send(SCOPE, message)
        address = f"/file/{ref.message_id}"
    async with open_rig(tmp_path) as rig:
        answer = await rig.client.get(address)
        assert (answer.content, answer.headers["content-length"]) == (b"content", "7")
        assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''a.bin"
        rig.spool.path(file).write_bytes(b"cut")
        assert (await rig.client.get(address)).status_code == 404
        rig.web.delete(ref)
        await rig.web.outbox.flush()
        await rig.spool.sweep()
        assert not rig.spool.path(file).exists()


async def test_history_and_what_nobody_took_survive_a_restart(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.say("hello")
    async with open_rig(tmp_path) as rig:
        assert [m["text"]["text"] for m in await rig.history()] == ["hello"]
        what = (await rig.next_arrival()).what
        assert isinstance(what, IncomingMessage)
        assert what.text == "hello"


async def test_long_history_comes_in_pages(rig: Rig) -> None:
    for number in range(101):
        await rig.web.send(SCOPE, Outgoing(Card(Text(str(number)))))
    newest = (await rig.client.get("/history")).json()
    assert newest["more"]
    assert [m["text"]["text"] for m in newest["messages"]] == [str(n) for n in range(1, 101)]
    before = newest["messages"][0]["id"]
    oldest = (await rig.client.get("/history", params={"before": before})).json()
    assert ([m["text"]["text"] for m in oldest["messages"]], oldest["more"]) == (["0"], False)


async def test_edit_of_what_is_gone_changes_nothing(rig: Rig) -> None:
    rig.web.edit(MessageRef("web", 1, 77), Card(Text("x")))
    rig.web.delete(MessageRef("web", 1, 77))
    await rig.web.outbox.flush()
    assert await rig.history() == []


async def test_page_that_does_not_read_loses_only_the_oldest_toasts() -> None:
    feed = Feed()
    with feed.listen() as listener:
        for number in range(150):
            feed.tell("toast", number)
        told = listener.take()
    assert [data for _, data in told] == list(range(50, 150))
    await trio.lowlevel.checkpoint()
