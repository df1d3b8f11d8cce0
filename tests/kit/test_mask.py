from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from takopi.kit.mask import Mask, mask

SECRET = "1:abab"
PIECES = st.lists(
    st.one_of(st.binary(max_size=8), st.sampled_from([b"1", b":", b"a", b"b", b"1:ab", b"1:abab"]))
)


@given(PIECES)
def test_secret_across_the_edges_of_pieces_is_masked_as_in_one(pieces: list[bytes]) -> None:
    masked = Mask((SECRET,))
    shown = [*map(masked.feed, pieces), masked.end()]
    assert b"".join(shown) == mask(b"".join(pieces), (SECRET,))


def test_without_a_secret_nothing_is_held_back() -> None:
    assert Mask(()).feed(b"abc") == b"abc"
