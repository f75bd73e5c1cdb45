from __future__ import annotations

from tprof_app.text import command, plain, with_code


def test_plain_escapes_all_of_markdown() -> None:
    assert plain("a_b *c* `d` <e> [f](g) $h$ :i:") == r"a\_b \*c\* \`d\` \<e\> \[f\]\(g\) \$h\$ \:i\:"


def test_only_code_of_our_own_text_is_markdown() -> None:
    assert with_code("as *x* of `a_b *c*` and d_e") == r"as \*x\* of `a_b *c*` and d\_e"


def test_plain_leaves_no_address_and_no_control_character() -> None:
    shown = plain("http://x.invalid www.x.invalid a@x.invalid \x1b[31m\u202e")
    assert "http\\://" not in shown.replace("\\/", "/")
    assert "www\\." not in shown
    assert "a\\@" not in shown
    assert not {"\x1b", "\u202e"} & set(shown)


def test_command_quotes_for_a_shell() -> None:
    assert command("idle", ["a b.json", "c"]) == "tprof idle 'a b.json' c"
