"""The page in a real browser, in front of a real daemon with the demo engine."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
SLOW_MS = 30_000

if CHROMIUM is None and os.environ.get("TAKOPI_NEEDS_CHROMIUM"):
    pytest.fail("Chromium is required here: apt-get install chromium", pytrace=False)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed (on Debian: apt-get install chromium)"
)


class Takopi:
    """A daemon with the page alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.process: subprocess.Popen[str] | None = None
        (folder / "home").mkdir(mode=0o700)
        self.configure(0)

    def configure(self, port: int) -> None:
        file = self.folder / "home/takopi.toml"
        file.touch(0o600)
        file.write_text(
            f'transports = ["web"]\ndefault_engine = "demo"\n[web]\nport = {port}\n'
            # A run that waits for a press holds no test up at its end.
            "[limits]\ndrain_s = 0\n",
            encoding="utf-8",
        )

    def start(self) -> None:
        self.process = subprocess.Popen(
            [Path(sys.executable).parent / "takopi"],
            cwd=self.folder,
            env=os.environ | {"TAKOPI_HOME": str(self.folder / "home")},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.communicate(timeout=60)
            self.process = None


@pytest.fixture
def takopi(tmp_path: Path) -> Generator[Takopi, None, None]:
    takopi = Takopi(tmp_path)
    takopi.start()
    yield takopi
    takopi.stop()


@pytest.fixture(scope="module")
def chromium() -> Generator[Browser, None, None]:
    # Where trio-asyncio was loaded, new loops are its own; Playwright wants a plain one. Nothing
    # but the policy, deprecated as it is, takes them back.
    plain = asyncio.DefaultEventLoopPolicy()
    asyncio.set_event_loop_policy(plain)  # pyright: ignore[reportDeprecated]  see above
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def browser(chromium: Browser) -> Generator[Browser, None, None]:
    yield chromium
    for context in chromium.contexts:
        context.close()


@pytest.fixture
def page(browser: Browser, takopi: Takopi) -> Page:
    return opened(browser, takopi)


def opened(browser: Browser, takopi: Takopi, *, width: int = 390, dark: bool = False) -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": 844}, color_scheme="dark" if dark else "light"
    )
    page.set_default_timeout(SLOW_MS)
    expect.set_options(timeout=SLOW_MS)
    page.goto(takopi.url)
    expect(page.locator("#state")).to_have_text("ready")
    return page


def say(page: Page, text: str) -> None:
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def test_message_is_answered_and_stays_after_a_reload(page: Page) -> None:
    assert "token" not in page.url
    say(page, "hello there")
    answer = page.locator(".takopi", has_text="You said")
    expect(answer).to_be_visible()
    page.reload()
    expect(answer).to_be_visible()
    expect(page.locator(".person")).to_contain_text("hello there")


def test_progress_changes_and_cancel_ends_the_run(page: Page) -> None:
    say(page, "steps 200 every 200ms")
    progress = page.locator(".silent")
    expect(progress).to_contain_text("step", ignore_case=True)
    expect(page.locator("#state")).to_have_text("working…")
    before = progress.inner_text()
    expect(progress).not_to_have_text(re.compile(re.escape(before)))
    progress.get_by_role("button", name="Cancel").click()
    expect(page.locator(".takopi", has_text="cancelled")).to_be_visible()
    expect(page.locator("#state")).to_have_text("ready")


def test_reply_continues_the_conversation(page: Page) -> None:
    say(page, "remember the sea")
    answer = page.locator(".takopi:not(.silent)").first
    expect(answer).to_contain_text("done")
    answer.hover()
    answer.get_by_role("button", name="Reply", exact=True).click()
    expect(page.locator("#replying")).to_be_visible()
    say(page, "what do you remember")
    expect(page.locator(".takopi", has_text="the sea").nth(1)).to_be_visible()
    expect(page.locator(".person .quoted")).to_be_visible()


def test_approval_is_given_by_keyboard_alone(page: Page, takopi: Takopi) -> None:
    say(page, "ask approval then write hello.txt: hi")
    allow = page.get_by_role("button", name="Allow once")
    expect(allow).to_be_visible()
    for _ in range(30):
        page.keyboard.press("Shift+Tab")
        if allow.evaluate("node => node === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.locator(".takopi", has_text="done ·")).to_be_visible()
    assert (takopi.folder / "hello.txt").read_text(encoding="utf-8").startswith("hi")


def test_page_comes_back_after_a_restart_of_takopi(page: Page, takopi: Takopi) -> None:
    port = int(page.url.rstrip("/").rpartition(":")[2])
    takopi.stop()
    expect(page.locator("#banner")).to_be_visible()
    takopi.configure(port)
    takopi.start()
    expect(page.locator("#banner")).to_be_hidden()
    page.locator("#text").focus()
    say(page, "are you back")
    expect(page.locator(".takopi", has_text="You said")).to_be_visible()


def test_commands_are_completed(page: Page) -> None:
    page.keyboard.type("/hel")
    expect(page.get_by_role("option")).to_contain_text("/help")
    page.keyboard.press("Tab")
    expect(page.locator("#text")).to_have_value("/help ")


def test_script_in_a_message_and_in_an_answer_is_text(page: Page) -> None:
    say(page, "say: <img src=x onerror=document.title='owned'><script>1</script>")
    expect(page.locator(".takopi", has_text="onerror")).to_be_visible()
    assert page.locator("#chat img, #chat script").count() == 0
    assert page.title() == "takopi"


CONTRAST = """() => {
  const light = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).map((v) => { v /= 255;
      return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const back = (node) => { for (; node; node = node.parentElement) {
    const c = getComputedStyle(node).backgroundColor;
    if (c !== 'rgba(0, 0, 0, 0)') return c; } return 'rgb(255, 255, 255)'; };
  const bad = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !node.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(node).color), light(back(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(node.outerHTML);
  }
  return bad;
}"""

UNNAMED = """() => [...document.querySelectorAll(
    'button, a, textarea, img, [role=listbox], [role=log]')]
  .filter((n) => !(n.textContent.trim() || n.getAttribute('aria-label') || n.hasAttribute('alt')))
  .map((n) => n.outerHTML)"""


TOO_SMALL = """() => {
  const reaches = (node, x, y) => node.contains(document.elementFromPoint(x, y));
  return [...document.querySelectorAll("button")].filter((node) => {
    if (!node.offsetParent) return false;
    node.scrollIntoView({ block: "center" });
    const { left, top, width, height } = node.getBoundingClientRect();
    const [x, y] = [left + width / 2, top + height / 2];
    const below = height < 44 && reaches(node, x, top + 43);
    return !(reaches(node, x, y) && width >= 44 && (height >= 44 || below));
  }).map((node) => node.className || node.textContent);
}"""


def test_finger_finds_every_button_and_enter_begins_a_line(
    browser: Browser, takopi: Takopi
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.set_default_timeout(SLOW_MS)
    page.goto(takopi.url)
    expect(page.locator("#state")).to_have_text("ready")
    send = page.get_by_role("button", name="Send")
    say(page, "ask approval to run ls")
    page.keyboard.type("then say: two lines")
    send.tap()
    expect(page.locator(".person .words")).to_have_text(
        "ask approval to run ls\nthen say: two lines"
    )
    expect(page.get_by_role("button", name="Deny with a reason")).to_be_visible()
    page.locator(".reply").last.tap()
    expect(page.locator("#replying")).to_contain_text("demo wants to use run ls")
    assert page.evaluate(TOO_SMALL) == []


def test_end_stays_in_sight_when_a_reply_takes_room(page: Page) -> None:
    say(page, "/help ")
    expect(page.locator(".takopi")).to_contain_text("Commands")
    foot = page.locator(".foot").last
    expect(foot).to_be_in_viewport(ratio=1)
    page.locator(".reply").last.press("Enter")
    expect(page.locator("#replying")).to_be_visible()
    expect(foot).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_page_is_readable_and_named_and_does_not_scroll_sideways(
    browser: Browser, takopi: Takopi, width: int, dark: bool
) -> None:
    page = opened(browser, takopi, width=width, dark=dark)
    say(page, "markdown")
    expect(page.locator(".takopi pre").first).to_be_visible()
    if folder := os.environ.get("TAKOPI_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/page-{width}-{'dark' if dark else 'light'}.png")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
