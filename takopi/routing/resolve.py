"""Decides, from facts alone, what a message asks for: which thread, context, engine and prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from takopi.config.loaded import Config, Project
from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.ids import EngineId, ResumeToken, RunId
from takopi.routing.ctx import parse_ctx
from takopi.routing.directives import Directives, parse_directives, skip_directives
from takopi.routing.facts import Facts, reply_ref, reply_text
from takopi.routing.resume import Resumable, find_resume, resumed_prompt
from takopi.store.ledger import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a message asks for.

    `cwd_hint` is where the thread was last held: it goes on there, if that is still there.
    `waits_for` is a run that has no thread yet: its thread is continued once it has one, and where
    none comes, a new one of the same engine starts in the same context. `session_cwd` is set where
    nobody named the thread and it is the scope's last one: such a thread goes on in that folder
    and in no other. `notes` are for the person to read.
    """

    prompt: str
    engine: EngineId
    model: str | None = None
    context: Context | None = None
    thread: ResumeToken | None = None
    cwd_hint: Path | None = None
    waits_for: RunId | None = None
    session_cwd: Path | None = None
    notes: tuple[str, ...] = ()


def resolve(
    facts: Facts,
    config: Config,
    *,
    engines: Sequence[Resumable],
    bot_name: str | None,
    fallback_engine: EngineId | None,
) -> Resolved:
    """What the message asks for, or `Refused` with the reason why it cannot be had.

    `engines` are all there are; `fallback_engine` is the one where none was ever chosen.
    """
    return _Resolution(facts, config, engines, bot_name, fallback_engine).resolve()


@dataclass(frozen=True, slots=True)
class _Place:
    context: Context | None
    cwd_hint: Path | None = None


@dataclass(frozen=True, slots=True)
class _Session:
    """What the scope goes on with by itself."""

    thread: ResumeToken | None = None
    cwd: Path | None = None
    awaited: Run | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Resolution:
    facts: Facts
    config: Config
    engines: Sequence[Resumable]
    bot_name: str | None
    fallback_engine: EngineId | None

    def resolve(self) -> Resolved:
        thread = self._named_thread()
        place = self._place_of_reply(thread)
        bound = thread is not None or place is not None
        asked = self._directives(bound=bound)
        context = place.context if place else self._chosen_context(None if bound else asked)
        awaited = self._threadless_run() if thread is None else None
        session = _Session()
        if thread is None and self._replied_run() is None:
            session = self._session(None if bound else asked.engine, context)
            thread, awaited = session.thread, session.awaited
        if thread is not None:
            engine = self._engine_of_thread(thread.engine)
        elif awaited is not None:
            engine = self._engine_of_thread(awaited.engine)
        else:
            engine = self._chosen_engine(None if bound else asked, context, of_reply=bool(place))
        notes = (session.note, _ignored(asked, engine, context) if bound else "")
        return Resolved(
            prompt=self._prompt(asked.prompt, resumed=bool(thread or awaited)),
            engine=engine,
            model=self._model(engine),
            context=context,
            thread=thread,
            cwd_hint=place.cwd_hint if place else None,
            waits_for=awaited.id if awaited else None,
            session_cwd=session.cwd,
            notes=tuple(filter(None, notes)),
        )

    def _replied_run(self) -> Run | None:
        return None if reply_ref(self.facts.message) is None else self.facts.replied_run

    def _replied_thread(self) -> ResumeToken | None:
        return None if reply_ref(self.facts.message) is None else self.facts.replied_thread

    def _reply_is_known(self) -> bool:
        return self._replied_run() is not None or self._replied_thread() is not None

    def _named_thread(self) -> ResumeToken | None:
        if own := find_resume(self.engines, self.facts.message.text):
            return own
        # The text of a message has no say where the store knows whose it is: engines write it.
        if self._reply_is_known():
            return self._replied_thread()
        return find_resume(self.engines, reply_text(self.facts.message))

    def _threadless_run(self) -> Run | None:
        run = self._replied_run()
        return run if run and _may_get_thread(run) else None

    def _place_of_reply(self, thread: ResumeToken | None) -> _Place | None:
        """Where the thread or the replied-to message is held; None if the person may choose."""
        if thread and (known := self.facts.threads.get(thread)):
            return _Place(self._reply_context(known.context), known.cwd)
        if thread is None and (run := self._threadless_run()):
            return _Place(self._reply_context(run.context))
        if self._reply_is_known():
            run = self._replied_run()
            context = run.context if run else None
        else:
            context = parse_ctx(reply_text(self.facts.message))
        return None if context is None else _Place(self._reply_context(context))

    def _reply_context(self, context: Context | None) -> Context | None:
        if context is None:
            return None
        if project := self.config.project(context.project):
            return Context(project.alias, context.branch)
        raise Refused(
            f"what you reply to belongs to the project {context.project}, which is not configured",
            way_out=f"run `takopi init {context.project}` in its folder, or send a new message",
        )

    def _directives(self, *, bound: bool) -> Directives:
        read = skip_directives if bound else parse_directives
        return read(
            self.facts.message.text,
            engines=[engine.id for engine in self.engines],
            projects=self.config.projects,
            bot_name=self.bot_name,
        )

    def _bindings(self) -> tuple[Context, ...]:
        """What the topic and its chat are bound to, the nearer one first."""
        in_topic = self.facts.message.thread_id is not None
        choices = (self.facts.scope, self.facts.chat) if in_topic else (self.facts.scope,)
        return tuple(choice.context for choice in choices if choice.context)

    def _chosen_context(self, asked: Directives | None) -> Context | None:
        bindings = self._bindings()
        branch = asked.branch if asked else None
        project = self._chosen_project(asked.project if asked else None, bindings)
        if project is None and branch is not None:
            example = next(iter(self.config.projects), None)
            naming = f"name one, as in `/{example} @{branch}`, or " if example else ""
            raise Refused(
                f"@{branch} names a branch, but no project",
                way_out=f"{naming}add one: run `takopi init` in its folder",
            )
        if project is None:
            return None
        if branch is None:
            own = (bound for bound in bindings if _same_name(bound.project, project.alias))
            branch = next((bound.branch for bound in own), None)
        return Context(project.alias, branch)

    def _chosen_project(self, asked: str | None, bindings: tuple[Context, ...]) -> Project | None:
        if asked is not None:
            return self.config.project(asked)
        project = self._own_project(bindings)
        if bindings and project is None:
            alias = bindings[0].project
            raise Refused(
                f"this chat is bound to the project {alias}, which is not configured",
                way_out=f"`/ctx clear` unbinds it; `takopi init {alias}` in its folder adds it",
            )
        return project

    def _own_project(self, bindings: tuple[Context, ...]) -> Project | None:
        """The scope's project, where the message names none."""
        config = self.config
        if bindings:
            return config.project(bindings[0].project)
        if project := config.project_of_chat(self.facts.message.chat_id):
            return project
        return config.project(config.default_project) if config.default_project else None

    def _chosen_engine(
        self, asked: Directives | None, context: Context | None, *, of_reply: bool
    ) -> EngineId:
        if asked and asked.engine is not None:
            return EngineId(asked.engine)
        chosen = self.facts.scope.engine
        if chosen is None or of_reply:
            return self._default_engine(context)
        if self._has(chosen):
            return chosen
        raise Refused(
            f"this chat has chosen the engine {chosen}, which is not here",
            way_out="choose another with `/agent`",
        )

    def _default_engine(self, context: Context | None) -> EngineId:
        project = self.config.project(context.project) if context else None
        engine = self._default_name(project)
        if engine is None:
            raise Refused("no engine is installed", way_out="install claude, codex, opencode or pi")
        if not self._has(engine):
            raise Refused(
                f"the default engine {engine} is not here",
                way_out="name another in front of the message, or mend default_engine",
            )
        return engine

    def _default_name(self, project: Project | None) -> EngineId | None:
        named = (project and project.default_engine) or self.config.default_engine
        return EngineId(named) if named else self.fallback_engine

    def _engine_of_thread(self, engine: EngineId) -> EngineId:
        if self._has(engine):
            return engine
        raise Refused(
            f"this thread belongs to the engine {engine}, which is not here",
            way_out="install the plugin that brings it, or send a new message",
        )

    def _has(self, engine: EngineId) -> bool:
        return any(known.id == engine for known in self.engines)

    def _model(self, engine: EngineId) -> str | None:
        """The scope's model: it was chosen for the scope's engine and means nothing to others."""
        scope = self.facts.scope
        own = scope.engine or self._default_name(self._own_project(self._bindings()))
        return scope.model if engine == own else None

    def _session(self, asked_engine: str | None, context: Context | None) -> _Session:
        if self.config.session_mode != "chat":
            return _Session()
        run = self.facts.session_run
        if run and _may_get_thread(run) and asked_engine in {None, run.engine}:
            same = _same_context(run.context, context)
            return _Session(awaited=run) if same else _Session()
        thread = self.facts.scope.thread
        known = self.facts.threads.get(thread) if thread else None
        if thread is None or known is None or known.cwd is None or not self._has(thread.engine):
            return _Session()
        if not _same_context(known.context, context):
            was = _name(known.context) if known.context else "no project"
            return _Session(note=f"a new conversation, as the last one here was in {was}")
        if asked_engine not in {None, thread.engine}:
            return _Session()
        return _Session(thread=thread, cwd=known.cwd)

    def _prompt(self, prompt: str, *, resumed: bool) -> str:
        if resumed:
            prompt = resumed_prompt(self.engines, prompt)
        quote = self.facts.message.quote
        if not quote:
            return prompt
        lines = "\n".join(f"> {line}".rstrip() for line in quote.splitlines())
        return f"{lines}\n\n{prompt}" if prompt else lines


def _may_get_thread(run: Run) -> bool:
    return run.thread is None and run.state in {"queued", "running"}


def _same_name(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _name(context: Context) -> str:
    return context.project + (f" @ {context.branch}" if context.branch else "")


def _same_context(one: Context | None, other: Context | None) -> bool:
    if one is None or other is None:
        return one is other
    return _same_name(one.project, other.project) and one.branch == other.branch


def _ignored(asked: Directives, engine: EngineId, context: Context | None) -> str:
    """A note about directives that would have led elsewhere; empty if there are none."""
    project, branch = (context.project, context.branch) if context else (None, None)
    had = ((asked.engine, engine), (asked.project, project), (asked.branch, branch))
    if all(wanted in {None, got} for wanted, got in had):
        return ""
    return f"{' '.join(asked.words)} was ignored, as a reply stays where it belongs"
