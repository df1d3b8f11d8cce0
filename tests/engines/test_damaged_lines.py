"""Whatever a CLI prints, a line is read or refused in one way, and what is shown stays small."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.core.events import Action
from tests.engines.long_runs import ENGINES, make_dialect
from tests.engines.samples import load_sample, sample_paths

LINES = {
    engine: [line for path in sample_paths(engine) for line in load_sample(path).lines]
    for engine in ENGINES
}


def read_or_refuse(engine: str, line: bytes) -> None:
    dialect = make_dialect(engine)
    try:
        said = dialect.read(line)
    except msgspec.MsgspecError:
        said = ()
    for event in said:
        if isinstance(event, Action):
            assert len(event.title) <= 120
            assert len(event.title.splitlines()) <= 1
            assert len(event.detail) <= 400
    dialect.end(0, "")


@pytest.mark.parametrize("engine", ENGINES)
@settings(deadline=None)
@given(line=st.binary(max_size=200))
def test_garbage_is_refused_in_one_way(engine: str, line: bytes) -> None:
    read_or_refuse(engine, line)


@pytest.mark.parametrize("engine", ENGINES)
@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_line_is_read_or_refused(engine: str, data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(LINES[engine]))
    start = data.draw(st.integers(0, len(line)))
    stop = data.draw(st.integers(start, min(len(line), start + 40)))

    read_or_refuse(engine, line[:start] + data.draw(st.binary(max_size=20)) + line[stop:])
