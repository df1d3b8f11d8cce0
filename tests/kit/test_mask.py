from takopi.kit.mask import mask


def test_a_secret_becomes_as_many_stars_wherever_it_stands() -> None:
    assert mask(b"1:ab and 1:ab", ("1:ab",)) == b"**** and ****"


def test_what_holds_no_secret_stays_as_it_is() -> None:
    assert mask(b"\xff 1:a", ("1:ab", "other")) == b"\xff 1:a"
