from __future__ import annotations

import re
from itertools import combinations

from tprof.events import COLD_PHASES, PHASES, PURPOSES
from tprof.present import colours, words


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_word_has_one_colour_a_meaning_and_a_letter() -> None:
    assert set(colours.PHASE) == set(PHASES)
    assert set(colours.PURPOSE) == set(PURPOSES)
    for word in (*PHASES, *PURPOSES):
        assert words.meaning(word)
        assert words.letter(word) != "?"
    every = [*colours.PHASE.values(), *colours.PURPOSE.values()]
    assert all(re.fullmatch(r"#[0-9a-f]{6}", c) for c in every)


def test_letters_tell_the_phases_apart() -> None:
    for one, other in combinations(PHASES, 2):
        assert words.letter(one) != words.letter(other)
    assert all(words.letter(p).isupper() for p in COLD_PHASES)


def test_visible_on_light_and_on_dark() -> None:
    for colour in (*colours.PHASE.values(), *colours.PURPOSE.values()):
        assert _contrast(colour, "#ffffff") > 1.9
        assert _contrast(colour, "#14171c") > 2.5


def test_cold_is_warm_in_colour_and_the_rest_is_not() -> None:
    def red_over_blue(word: str) -> int:
        colour = colours.PHASE[word]
        return int(colour[1:3], 16) - int(colour[5:7], 16)

    assert all(red_over_blue(p) > 40 for p in COLD_PHASES)
    assert all(red_over_blue(p) <= 0 for p in PHASES if p not in COLD_PHASES)


def test_a_part_takes_the_colour_of_its_word() -> None:
    assert colours.of_part("idle.compile") == colours.of_part("lead.compile") == colours.PHASE["compile"]
    assert colours.of_part("busy.tuning") == colours.PURPOSE["tuning"]
    assert colours.of_part("busy.capture") == colours.PURPOSE["capture"]
    assert colours.of_part("something else") == colours.OTHER
    assert colours.is_cold("idle.autotune")
    assert not colours.is_cold("busy.tuning")
