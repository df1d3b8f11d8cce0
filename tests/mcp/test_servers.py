from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from takopi.config.schema import Mcp, McpServer
from takopi.core.errors import Refused, Unreachable
from takopi.mcp.servers import Offer
from tests.kit.processes import alive, new_mark
from tests.mcp.rig import WAYS, WITHIN_S, Way, http_server, open_servers, stdio

REPOSITORY = Path(__file__).parents[2]
TOOLS = [
    "add",
    "echo",
    "fail",
    "hang",
    "much",
    "picture",
    "die",
    "count",
    "read_note",
    "write_note",
]


async def test_tools_of_a_stdio_server_are_offered_by_their_whole_names(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"t": stdio()}) as servers:
        offer = await servers.offer(None)
        assert [tool.name for tool in offer.tools] == [f"t__{name}" for name in TOOLS]
        assert offer.tools[0].description == "Adds two numbers."
        assert offer.tools[0].schema["required"] == ["a", "b"]
        assert offer.problems == ()


async def test_tool_of_a_stdio_server_is_called(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"t": stdio()}) as servers:
        servers.find(None)
        assert await servers.call("t__add", {"a": 2, "b": 3}) == "5"


async def test_tool_of_an_http_server_is_called(tmp_path: Path) -> None:
    with http_server() as url:
        async with open_servers(tmp_path, {"h": McpServer(url=url)}) as servers:
            assert "h__add" in [tool.name for tool in (await servers.offer(None)).tools]
            assert await servers.call("h__add", {"a": 2, "b": 3}) == "5"


async def test_nothing_is_started_before_it_is_needed(tmp_path: Path) -> None:
    mark = new_mark()
    server = McpServer(command=sys.executable, args=stdio().args, env={"TAKOPI_TEST_MARK": mark})
    async with open_servers(tmp_path, {"t": server}) as servers:
        assert servers.describe() == ["t (not started)"]
        assert not alive(mark)


def test_sdk_is_not_imported_until_a_server_is_used() -> None:
    code = (
        "import sys, takopi.app.daemon, takopi.cli.app;"
        "sys.exit(any(m in sys.modules for m in ('mcp', 'mcp_types', 'jsonschema', 'anyio')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_server_of_another_project_is_not_offered(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"t": stdio(projects=("z80",))}) as servers:
        assert servers.find(None) == ()
        assert servers.find("other") == ()
        assert [server.name for server in servers.find("Z80")] == ["t"]


async def test_tool_is_allowed_by_its_whole_name_and_pattern(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"fs": stdio(allow=("fs__read_*",))}) as servers:
        servers.find(None)
        assert servers.is_allowed("fs__read_file")
        assert not servers.is_allowed("fs__write_file")
        assert not servers.is_allowed("other__read_file")


async def test_tool_that_raises_is_refused_with_its_words(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"t": stdio()}) as servers:
        servers.find(None)
        with pytest.raises(Refused, match="Error executing tool fail"):
            await servers.call("t__fail", {})


async def test_long_output_is_cut_and_says_so(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"t": stdio()}, max_output_bytes=2048) as servers:
        servers.find(None)
        said = await servers.call("t__much", {"size": 4_000_000})
        assert said.startswith("x" * 2048 + "\n[cut after 2048 bytes")
        assert len(said) < 2200


@pytest.mark.parametrize("way", WAYS)
def test_reply_of_50_mb_does_not_fill_the_memory(tmp_path: Path, way: Way) -> None:
    weighing = [sys.executable, "-m", "tests.mcp.weigh", way, "50000000", tmp_path]
    output = subprocess.run(
        weighing, check=True, capture_output=True, text=True, cwd=REPOSITORY, timeout=WITHIN_S
    ).stdout
    assert int(output.splitlines()[-1]) < 64 * 1024


# The SDK leaves its inner generators to Trio's finaliser when a stream is given up.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_server_that_does_not_let_go_of_a_session_is_connected_again(tmp_path: Path) -> None:
    with http_server("stuck") as url:
        async with open_servers(tmp_path, {"t": McpServer(url=url)}) as servers:
            servers.find(None)
            with pytest.raises(Unreachable, match="exceeded the 8388608 byte limit"):
                await servers.call("t__much", {"size": 50_000_000})
            assert await servers.call("t__add", {"a": 1, "b": 1}) == "2"


async def test_server_that_says_too_much_of_its_tools_is_not_used(tmp_path: Path) -> None:
    code = (
        "from mcp.server.mcpserver import MCPServer; server = MCPServer('x');"
        "server.tool(description='x' * 2_000_000)(print); server.run()"
    )
    talker = McpServer(command=sys.executable, args=("-c", code))
    async with open_servers(tmp_path, {"t": talker, "u": stdio()}) as servers:
        offer = await servers.offer(None)
        assert offer.problems == ("MCP server t: its tools have more than 1048576 bytes",)
        assert "u__add" in [tool.name for tool in offer.tools]


async def test_image_is_named_and_not_shown(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"t": stdio()}) as servers:
        servers.find(None)
        assert await servers.call("t__picture", {}) == "[image: image/png, 102 bytes, not shown]"


async def test_server_that_dies_in_a_call_fails_it_and_is_started_again(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"t": stdio()}) as servers:
        servers.find(None)
        with pytest.raises(Unreachable, match="the server is gone"):
            await servers.call("t__die", {})
        assert await servers.call("t__add", {"a": 1, "b": 1}) == "2"


async def test_call_that_hangs_ends_with_its_deadline_and_the_server_goes_on(
    tmp_path: Path,
) -> None:
    async with open_servers(tmp_path, {"t": stdio()}) as servers:
        await servers.offer(None)
        with trio.move_on_after(1) as deadline:
            await servers.call("t__hang", {})
        assert deadline.cancelled_caught
        assert servers.find(None)[0].is_connected


async def test_http_server_that_dies_in_a_call_fails_it(
    tmp_path: Path,
) -> None:
    with http_server() as url:
        async with open_servers(tmp_path, {"h": McpServer(url=url)}) as servers:
            servers.find(None)
            assert await servers.call("h__echo", {"text": "x"}) == "x"
            with pytest.raises(Unreachable):
                await servers.call("h__die", {})


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (McpServer(command="/no/such/program"), "cannot start /no/such/program"),
        (McpServer(command="true"), "t: "),
        (McpServer(url="http://127.0.0.1:9/mcp"), "t: "),
    ],
)
async def test_server_that_cannot_start_is_a_problem_of_the_offer(
    tmp_path: Path, server: McpServer, why: str
) -> None:
    async with open_servers(tmp_path, {"t": server, "u": stdio()}) as servers:
        offer = await servers.offer(None)
        assert len(offer.problems) == 1
        assert why in offer.problems[0]
        assert "u__add" in [tool.name for tool in offer.tools]
        assert not servers.describe()[0].startswith("t (not started")


async def test_server_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    server = McpServer(command="sleep", args=("3600",))
    async with open_servers(tmp_path, {"t": server}, start_s=0.5) as servers:
        offer = await servers.offer(None)
        assert offer.problems == ("MCP server t: it did not start within 0.5 s",)


async def test_offer_ends_when_the_table_of_a_server_changes_while_it_starts(
    tmp_path: Path,
) -> None:
    offers: list[Offer] = []
    server = McpServer(command="sleep", args=("3600",))
    async with open_servers(tmp_path, {"t": server}) as servers:

        async def offer() -> None:
            offers.append(await servers.offer(None))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(offer)
            await trio.testing.wait_all_tasks_blocked()
            servers.config = lambda: Mcp(servers={"t": stdio()})
            servers.find(None)
        assert offers == [Offer(problems=("MCP server t: its settings have changed",))]
        assert "t__add" in [tool.name for tool in (await servers.offer(None)).tools]


async def test_failures_are_followed_by_growing_pauses(tmp_path: Path) -> None:
    async with open_servers(tmp_path, {"t": McpServer(command="/no/such")}) as servers:
        said = ""
        while "tried again in" not in said:
            said = (await servers.offer(None)).problems[0]
        assert "cannot start /no/such" in said


async def test_nothing_of_a_server_is_left_when_it_is_over(tmp_path: Path) -> None:
    mark = new_mark()
    server = McpServer(command=sys.executable, args=stdio().args, env={"TAKOPI_TEST_MARK": mark})
    async with open_servers(tmp_path, {"t": server}) as servers:
        await servers.offer(None)
        assert alive(mark)
    assert not alive(mark)
