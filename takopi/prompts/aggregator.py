"""Builds prompts from components: the same context gives the same text, and so does its preview."""

from __future__ import annotations

import math
import re
from functools import cache

from takopi.core.errors import TakopiError, Unfit
from takopi.core.tools import MCPTool
from takopi.prompts.components import MESSAGE, SYSTEM, PromptComponent, default_components
from takopi.prompts.request import (
    AggregatedPrompt,
    AIReplyRequest,
    Mode,
    PromptContext,
    PromptMetadata,
    PromptPreview,
    PromptSection,
)

CHARS_PER_TOKEN = 4


class PromptAggregator:
    """The pipeline of components, in their order; those of one order as they were registered."""

    def __init__(self) -> None:
        self._components: dict[str, PromptComponent] = {}
        for component in default_components():
            self.register(component)

    @property
    def components(self) -> tuple[PromptComponent, ...]:
        """The components in the order of their sections."""
        return tuple(self._components.values())

    def register(self, component: PromptComponent) -> None:
        """Add a component; one of the same name is replaced."""
        known = self._components | {component.name: component}
        ordered = sorted(known.items(), key=lambda item: item[1].get_order())
        self._components = dict(ordered)

    def aggregate(self, context: PromptContext) -> AggregatedPrompt:
        """The prompt of a context; `Unfit` names a component that failed."""
        sections = tuple(
            section
            for component in self._components.values()
            if (section := _build(component, context)) is not None
        )
        above = [section for section in sections if section.name == SYSTEM]
        below = [section for section in sections if section.name != SYSTEM]
        system = "\n\n".join(section.content for section in above) or None
        if [section.name for section in below] == [MESSAGE]:
            user = below[0].content
        else:
            user = "\n\n".join(_wrap(section, context.mode) for section in below)
        labelled = [_wrap(section, context.mode) for section in above]
        full_prompt = "\n\n".join(part for part in (*labelled, user) if part)
        return AggregatedPrompt(
            system=system,
            user=user,
            full_prompt=full_prompt,
            sections=sections,
            metadata=PromptMetadata(
                mode=context.mode,
                token_estimate=math.ceil(len(full_prompt) / CHARS_PER_TOKEN),
                section_sizes=tuple((each.name, len(each.content)) for each in sections),
            ),
        )

    def preview(
        self,
        request: AIReplyRequest,
        *,
        mode: Mode = "api",
        cli_tool: str | None = None,
        system: str | None = None,
        mcp_tools: tuple[MCPTool, ...] = (),
    ) -> PromptPreview:
        """What would be sent for a request, by the way on which it is sent."""
        tool = cli_tool if mode == "cli" else None
        context = PromptContext(request, mode, cli_tool=tool, system=system, mcp_tools=mcp_tools)
        try:
            parts = self.aggregate(context)
        except TakopiError as error:
            return PromptPreview(
                success=False, prompt="", mode=mode, cli_tool=tool, error=error.what
            )
        return PromptPreview(
            success=True, prompt=parts.full_prompt, mode=mode, cli_tool=tool, parts=parts
        )


@cache
def get_prompt_aggregator() -> PromptAggregator:
    """The aggregator of this process."""
    return PromptAggregator()


def question_prompt(system: str, message: str) -> AggregatedPrompt:
    """What a model is asked once, without a conversation: for a batch of questions, for a plan."""
    context = PromptContext(AIReplyRequest(message), "api", system=system)
    return get_prompt_aggregator().aggregate(context)


def _build(component: PromptComponent, context: PromptContext) -> PromptSection | None:
    try:
        return component.build(context)
    except Exception as error:  # a plugin's component must not look like a bug of takopi
        raise Unfit(
            f"the prompt component {component.name} failed: {type(error).__name__}: {error}",
            way_out="mend or remove the plugin that registered it",
        ) from error


def _wrap(section: PromptSection, mode: Mode) -> str:
    if mode == "cli":
        return f"# {section.name}\n\n{section.content}"
    if section.name == SYSTEM:
        return section.content
    label = re.sub(r"\W+", "_", section.name.lower())
    return f"<{label}>\n{section.content}\n</{label}>"
