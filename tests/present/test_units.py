import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.present.units import is_inside_pair, length, narrow, widen

any_text = st.text(st.characters(exclude_categories=["Cs"]))
broken_text = st.text(st.characters(categories=["Cs", "Lu", "So"]))


@given(any_text)
def test_length_is_that_of_the_utf16_encoding(text: str) -> None:
    assert length(text) == len(text.encode("utf-16-le")) // 2


@given(any_text)
def test_a_wide_text_has_one_character_per_unit_and_comes_back_unchanged(text: str) -> None:
    wide = widen(text)

    assert len(wide) == length(text)
    assert narrow(wide) == text


@given(broken_text)
def test_half_a_surrogate_pair_becomes_one_sign_that_can_be_sent(text: str) -> None:
    mended = narrow(text)

    mended.encode()
    assert length(mended) == length(text)


@given(any_text, st.data())
def test_only_a_cut_inside_a_pair_breaks_a_character(text: str, data: st.DataObject) -> None:
    wide = widen(text)
    cut = data.draw(st.integers(0, len(wide)))

    assert (narrow(wide[:cut]) + narrow(wide[cut:]) == text) is not is_inside_pair(wide, cut)


@pytest.mark.parametrize(
    ("text", "units"), [("", 0), ("abc", 3), ("äöü", 3), ("😀", 2), ("a😀", 3)]
)
def test_units_of_well_known_texts(text: str, units: int) -> None:
    assert length(text) == units
