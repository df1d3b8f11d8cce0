"""Files on the page, in a real browser: added in every way there is, sent, and fetched again."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web import test_page
from tests.web.test_page import CONTRAST, UNNAMED, Takopi, opened, say

pytestmark = test_page.pytestmark
chromium = test_page.chromium
browser = test_page.browser

DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: "text/plain" }));
  const send = (kind) => document.body.dispatchEvent(
    new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
  send("dragenter");
  const shown = !document.getElementById("drop").hidden;
  send("dragover");
  send("drop");
  return shown && document.getElementById("drop").hidden;
}"""
PASTE = """() => {
  const data = new DataTransfer();
  data.items.add(new File(["pixels"], "image.png", { type: "image/png" }));
  document.getElementById("text").dispatchEvent(
    new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def takopi(tmp_path: Path) -> Generator[Takopi, None, None]:
    takopi = Takopi(tmp_path)
    with (tmp_path / "home/takopi.toml").open("a", encoding="utf-8") as config:
        config.write("[files]\nenabled = true\n")
    takopi.start()
    yield takopi
    takopi.stop()


@pytest.fixture
def page(browser: Browser, takopi: Takopi) -> Page:
    return opened(browser, takopi)


def choose(page: Page, name: str, data: bytes) -> None:
    """What a person picks in the dialog that the button opens."""
    with page.expect_file_chooser() as dialog:
        page.get_by_role("button", name="Add files").press("Enter")
    dialog.value.set_files({"name": name, "mimeType": "text/plain", "buffer": data})


def test_chosen_dropped_and_pasted_files_go_with_the_message(page: Page, takopi: Takopi) -> None:
    choose(page, "chosen.txt", b"one")
    assert page.evaluate(DROP, ["dropped.txt", "two"])
    page.evaluate(PASTE)
    expect(page.get_by_role("list", name="Files to send").get_by_role("listitem")).to_have_count(3)
    page.get_by_role("button", name="Do not send dropped.txt").press("Enter")
    page.get_by_role("textbox", name="Message").focus()
    say(page, "run cat .uploads/chosen.txt")
    expect(page.locator(".takopi", has_text="done ·")).to_contain_text("one")
    expect(page.locator("#files")).to_be_hidden()
    own = page.locator(".person")
    expect(own).to_contain_text("chosen.txt")
    with page.expect_download() as fetched:
        own.get_by_role("link", name="image.png").click()
    assert fetched.value.path().read_bytes() == b"pixels"
    names = {file.name for file in (takopi.folder / ".uploads").iterdir()}
    assert names == {"chosen.txt", "image.png"}


def test_file_goes_without_words(page: Page, takopi: Takopi) -> None:
    choose(page, "alone.txt", b"one")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".takopi", has_text="done ·")).to_contain_text("alone.txt")


def test_file_that_is_too_big_is_not_added(page: Page, tmp_path: Path) -> None:
    big = tmp_path / "big.bin"
    big.touch()
    os.truncate(big, 20 * 1024 * 1024 + 1)
    with page.expect_file_chooser() as dialog:
        page.get_by_role("button", name="Add files").press("Enter")
    dialog.value.set_files(big)
    expect(page.locator("#toast")).to_contain_text("big.bin is over 20 MB")
    expect(page.locator("#files")).to_be_hidden()


def test_files_and_words_stay_when_they_cannot_be_sent(page: Page, takopi: Takopi) -> None:
    choose(page, "kept.txt", b"one")
    takopi.stop()
    page.locator("#text").focus()
    say(page, "say: later")
    expect(page.locator("#toast")).to_contain_text("cannot be reached")
    expect(page.locator("#text")).to_have_value("say: later")
    expect(page.locator("#files")).to_contain_text("kept.txt")


def test_file_of_the_project_comes_as_a_download(page: Page, takopi: Takopi) -> None:
    (takopi.folder / "made.txt").write_text("here")
    say(page, "/file get made.txt")
    with page.expect_download() as fetched:
        page.locator(".takopi a.file").click()
    assert fetched.value.path().read_bytes() == b"here"


def test_page_without_files_has_no_button_and_says_why_on_a_drop(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    takopi = Takopi(tmp_path_factory.mktemp("off"))
    takopi.start()
    try:
        page = opened(browser, takopi)
        expect(page.get_by_role("button", name="Add files")).to_be_hidden()
        page.evaluate(DROP, ["dropped.txt", "two"])
        expect(page.locator("#toast")).to_contain_text("files.enabled = true")
    finally:
        takopi.stop()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_files_are_readable_and_named_and_do_not_scroll_sideways(
    browser: Browser, takopi: Takopi, width: int, dark: bool
) -> None:
    page = opened(browser, takopi, width=width, dark=dark)
    choose(page, "first.txt", b"one")
    say(page, "say: look at this")
    expect(page.locator(".takopi", has_text="done ·")).to_be_visible()
    choose(page, "a-very-long-name-" * 8 + ".txt", bytes(3_000_000))
    choose(page, "notes.md", b"two")
    if folder := os.environ.get("TAKOPI_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/files-{width}-{'dark' if dark else 'light'}.png")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
