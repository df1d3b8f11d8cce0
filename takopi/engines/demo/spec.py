"""How the demo engine is called: by takopi's own interpreter, with its threads in takopi's home."""

from __future__ import annotations

import sys
from pathlib import Path

from takopi.config.schema import EngineSettings
from takopi.core.ports import EngineJob
from takopi.engines.demo.translate import DEMO, DemoDialect
from takopi.engines.spec import EngineSpec

PROGRAM = Path(__file__).with_name("program.py")


def spec(threads: Path) -> EngineSpec[EngineSettings]:
    """The demo engine that keeps its threads in `threads`."""

    def build_argv(settings: EngineSettings, job: EngineJob) -> list[str]:
        argv = [f"--threads={threads}"]
        if model := job.model or settings.model:
            argv.append(f"--model={model}")
        if job.resume is not None:
            argv.append(f"--resume={job.resume.value}")
        return [*argv, *settings.extra_args]

    return EngineSpec(
        id=DEMO,
        settings_type=EngineSettings,
        argv=build_argv,
        dialect=lambda _settings, job: DemoDialect(job),
        resume_words=("demo", "--resume"),
        install="pip install --force-reinstall takopi",
        login="",
        oldest=(1, 0),
        asks=True,
        takes_system=True,
        # Isolated and without site-packages: it starts in half the time, and nothing of the
        # project that it works in can become part of it.
        program=(sys.executable, "-I", "-S", str(PROGRAM)),
    )
