from __future__ import annotations

from takopi.telegram.menu import MenuItem, build_menu


def test_commands_come_first_then_engines_then_projects() -> None:
    menu = build_menu({"help": "What I can do"}, engines=["claude"], aliases=["z80"])

    assert menu == (
        MenuItem("help", "What I can do"),
        MenuItem("claude", "Ask claude"),
        MenuItem("z80", "Work in z80"),
    )


def test_a_name_that_telegram_would_refuse_is_left_out() -> None:
    menu = build_menu({}, engines=[], aliases=["my-site", "über", "", "a b", "x" * 33, "ok_1"])

    assert [item.name for item in menu] == ["ok_1"]


def test_an_alias_in_capitals_is_shown_in_lower_case_and_once() -> None:
    menu = build_menu({"z80": "First"}, engines=[], aliases=["Z80", "Site"])

    assert menu == (MenuItem("z80", "First"), MenuItem("site", "Work in Site"))


def test_the_menu_ends_where_telegram_ends_it() -> None:
    menu = build_menu({"a": "  ", "b": "x" * 300}, engines=[], aliases=map(str, range(200)))

    assert len(menu) == 100
    assert menu[0] == MenuItem("a", "a")
    assert len(menu[1].description) == 256
