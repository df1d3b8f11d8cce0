from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from takopi.core.tools import MCPTool, MCPToolResult
from takopi.prompts.aggregator import PromptAggregator, get_prompt_aggregator
from takopi.prompts.components import (
    AIMessageComponent,
    ClosingPromptComponent,
    MCPToolsPromptComponent,
    SystemPromptComponent,
    ToolResultsComponent,
    UserContextComponent,
)
from takopi.prompts.request import AIReplyRequest, Mode, PromptContext, PromptSection

TOOL = MCPTool("fs__read", "Reads a file.", {"type": "object", "properties": {"path": {}}})
RESULT = MCPToolResult("fs__read", success=True, output="hello")
FULL = AIReplyRequest(
    "What is in it?",
    user_context="It is raining.",
    tool_results=(RESULT,),
    include_mcp_tools=True,
    project_name="z80",
    project_path="/dev/z80",
)
CLI = PromptContext(FULL, "cli", cli_tool="claude", system="Be brief.", mcp_tools=(TOOL,))
API = replace(CLI, mode="api", cli_tool=None)
SECTIONS = ["System", "Tools", "Context", "Tool results", "Message", "Closing"]


@dataclass(frozen=True)
class Note:
    """A component of somebody else."""

    text: str | None
    order: int = 45
    name: str = "Note"

    def get_order(self) -> int:
        return self.order

    def build(self, context: PromptContext) -> PromptSection | None:
        if self.text is None:
            return None
        return PromptSection(self.name, self.text.replace("<mode>", context.mode))


class Broken(Note):
    def build(self, context: PromptContext) -> PromptSection | None:
        raise ValueError(f"no {context.mode}")


def test_aggregator_builds_complete_prompt() -> None:
    made = PromptAggregator().aggregate(CLI)
    assert [section.name for section in made.sections] == SECTIONS
    for part in ("Be brief.", "fs__read", "It is raining.", "z80", "hello", "What is in it?"):
        assert part in made.full_prompt
    assert made.metadata.mode == "cli"
    assert made.metadata.token_estimate == math.ceil(len(made.full_prompt) / 4)
    sizes = [(section.name, len(section.content)) for section in made.sections]
    assert list(made.metadata.section_sizes) == sizes


def test_aggregator_handles_missing_optional_fields() -> None:
    made = PromptAggregator().aggregate(PromptContext(AIReplyRequest("Hello"), "cli"))
    assert [section.name for section in made.sections] == ["Message"]


def test_aggregator_supports_api_mode_formatting() -> None:
    made = PromptAggregator().aggregate(API)
    assert made.system == "Be brief."
    assert "<message>\nWhat is in it?\n</message>" in made.user
    assert "<tool_results>\n" in made.user
    assert "Be brief." not in made.user
    assert "# Message" not in made.full_prompt


def test_aggregator_supports_cli_mode_formatting() -> None:
    made = PromptAggregator().aggregate(CLI)
    headers = [line for line in made.full_prompt.splitlines() if line.startswith("# ")]
    assert headers == [f"# {name}" for name in SECTIONS]
    assert made.system == "Be brief."


def test_full_prompt_is_system_and_user() -> None:
    for context in (CLI, API):
        made = PromptAggregator().aggregate(context)
        header = "# System\n\n" if context is CLI else ""
        assert made.full_prompt == f"{header}{made.system}\n\n{made.user}"


@given(message=st.text(), mode=st.sampled_from(["api", "cli"]))
def test_message_alone_is_the_prompt_byte_for_byte(message: str, mode: Mode) -> None:
    made = PromptAggregator().aggregate(PromptContext(AIReplyRequest(message), mode))
    assert (made.system, made.user, made.full_prompt) == (None, message, message)


def test_message_stays_as_it_is_beside_a_system_prompt() -> None:
    made = PromptAggregator().aggregate(PromptContext(AIReplyRequest("Hi"), "cli", system="Yes"))
    assert made.user == "Hi"


def test_closing_section_appears_only_where_there_is_more_than_the_message() -> None:
    aggregator = PromptAggregator()
    alone = AIReplyRequest("Hi", include_mcp_tools=True)
    assert "Closing" not in names(aggregator, PromptContext(alone, "cli"))
    more = AIReplyRequest("Hi", user_context="It rains.")
    assert names(aggregator, PromptContext(more, "cli")) == ["Context", "Message", "Closing"]


def test_tools_are_left_out_unless_they_are_asked_for() -> None:
    context = PromptContext(AIReplyRequest("Hi"), "cli", mcp_tools=(TOOL,))
    assert names(PromptAggregator(), context) == ["Message"]


def test_custom_component_is_added_and_sorted_by_its_order() -> None:
    aggregator = PromptAggregator()
    aggregator.register(Note("later", order=45))
    aggregator.register(Note("first", order=5, name="First"))
    aggregator.register(Note("tie", order=50, name="Tie"))
    assert names(aggregator, CLI) == [
        "First",
        *SECTIONS[:4],
        "Note",
        "Message",
        "Tie",
        "Closing",
    ]


def test_component_of_the_same_name_is_replaced() -> None:
    aggregator = PromptAggregator()
    aggregator.register(Note("before"))
    aggregator.register(Note("after"))
    full = aggregator.aggregate(CLI).full_prompt
    assert "# Note\n\nafter" in full
    assert "before" not in full


def test_default_components_are_registered_automatically() -> None:
    found = [(type(each), each.get_order()) for each in PromptAggregator().components]
    assert found == [
        (SystemPromptComponent, 10),
        (MCPToolsPromptComponent, 20),
        (UserContextComponent, 30),
        (ToolResultsComponent, 40),
        (AIMessageComponent, 50),
        (ClosingPromptComponent, 100),
    ]


TEXT = st.text(max_size=30)
MAYBE = st.none() | TEXT
RESULTS = st.builds(MCPToolResult, TEXT, success=st.booleans(), output=TEXT)
REQUESTS = st.builds(
    AIReplyRequest,
    TEXT,
    user_context=MAYBE,
    tool_results=st.lists(RESULTS, max_size=3).map(tuple),
    include_mcp_tools=st.booleans(),
    project_name=MAYBE,
    project_path=MAYBE,
)
REGISTRATIONS = st.lists(
    st.builds(Note, MAYBE, st.integers(-5, 120), st.sampled_from(["Note", "Message", "X", "Y"])),
    max_size=4,
)


@given(
    request=REQUESTS,
    registrations=REGISTRATIONS,
    mode=st.sampled_from(["api", "cli"]),
    system=MAYBE,
    tools=st.sampled_from([(), (TOOL,)]),
)
def test_preview_matches_actual_prompt(
    request: AIReplyRequest,
    registrations: list[Note],
    mode: Mode,
    system: str | None,
    tools: tuple[MCPTool, ...],
) -> None:
    aggregator = PromptAggregator()
    for component in registrations:
        aggregator.register(component)
    tool = "claude" if mode == "cli" else None
    context = PromptContext(request, mode, cli_tool=tool, system=system, mcp_tools=tools)
    shown = aggregator.preview(request, mode=mode, cli_tool=tool, system=system, mcp_tools=tools)
    assert shown.success
    assert shown.prompt == aggregator.aggregate(context).full_prompt
    assert shown.parts == aggregator.aggregate(context)


def test_preview_includes_mode_information() -> None:
    aggregator = PromptAggregator()
    api = aggregator.preview(FULL)
    assert (api.success, api.mode, api.cli_tool) == (True, "api", None)
    cli = aggregator.preview(FULL, mode="cli", cli_tool="claude")
    assert (cli.success, cli.mode, cli.cli_tool) == (True, "cli", "claude")


def test_preview_of_a_broken_component_has_no_success_and_says_why() -> None:
    aggregator = PromptAggregator()
    aggregator.register(Broken("", name="Weather"))
    shown = aggregator.preview(FULL)
    assert not shown.success
    assert shown.error == "the prompt component Weather failed: ValueError: no api"


def test_singleton_is_the_same_instance_every_time() -> None:
    assert get_prompt_aggregator() is get_prompt_aggregator()


def test_registered_components_persist() -> None:
    get_prompt_aggregator().register(Note(None, name="Silent"))
    assert "Silent" in [each.name for each in get_prompt_aggregator().components]


def names(aggregator: PromptAggregator, context: PromptContext) -> list[str]:
    return [section.name for section in aggregator.aggregate(context).sections]
