"""Which language users read, and how messages are said in it."""

import pickle
from pathlib import Path

import pytest
from attn_tui.core.errors import InputError, did_you_mean
from attn_tui.core.message import counted, in_sense, joined, message, plain
from attn_tui.tui.language.catalogue import translated
from attn_tui.tui.language.chosen import LanguageError, of_locale, of_words
from attn_tui.tui.views.glyphs import ASCII, IN_LANGUAGE, UNICODE
from cases import for_each


@for_each(
    ("words", "variable", "locale", "language"),
    [
        ("--lang zh", "en", "en_GB.UTF-8", "zh"),
        ("report --lang=en", "zh", "zh_CN.UTF-8", "en"),
        ("--lang auto", "en", "zh_CN.UTF-8", "zh"),
        ("-- --lang en", "zh", "en_GB.UTF-8", "zh"),
        ("", "zh", "en_GB.UTF-8", "zh"),
        ("", "", "zh_CN.UTF-8", "zh"),
        ("", "auto", "zh_CN.UTF-8", "zh"),
        ("", "", "de_DE.UTF-8", "en"),
    ],
)
def test_the_option_counts_before_the_variable_and_the_locale(
    words: str, variable: str, locale: str, language: str
) -> None:
    assert of_words(words.split(), {"LANG": locale, "ATTN_TUI_LANG": variable}) == language


@for_each(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "C"}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "POSIX"}, "en"),
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "zh_SG.utf8"}, "zh"),
        ({"LANG": "zh_Hans_CN.UTF-8"}, "zh"),
        ({"LANG": "zh-Hans"}, "zh"),
        ({"LANG": "zh_TW.UTF-8"}, "zh"),
        ({"LANG": "zh_HK"}, "zh"),
        ({"LANG": "zha"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "LANGUAGE": "fr:zh_CN:en"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "fr"}, "zh"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "zh"}, "en"),
    ],
)
def test_chinese_of_any_region_is_chinese(environment: dict[str, str], language: str) -> None:
    assert of_locale(environment) == language


@pytest.mark.parametrize(
    ("words", "environment", "line"),
    [
        ("--lang fr", {}, "--lang: must be one of auto, en, zh, not 'fr'"),
        ("--lang", {"ATTN_TUI_LANG": "zh"}, "--lang: must be one of auto, en, zh, not ''"),
        ("", {"ATTN_TUI_LANG": "zh_CN"}, "ATTN_TUI_LANG: must be one of auto, en, zh, not 'zh_CN'"),
    ],
)
def test_an_unknown_language_is_one_line_with_its_place_and_those_that_exist(
    words: str, environment: dict[str, str], line: str
) -> None:
    with pytest.raises(LanguageError) as refusal:
        of_words(words.split(), environment)
    assert str(refusal.value) == line


def test_what_the_program_is_written_in_is_english_and_so_is_what_is_not_translated() -> None:
    said = message("{share:.1f} % of {n} keys", share=12.345, n=128)
    assert said == "12.3 % of 128 keys"
    assert translated(said, "en") == said
    assert message("keys { }") == "keys { }"
    assert counted("{number} head", "{number} heads", 1) == "1 head"
    assert counted("{number} head", "{number} heads of {n}", 2, n=7) == "2 heads of 7"
    assert translated(message("{n} things that no screen shows", n=3), "zh") == "3 things that no screen shows"
    assert translated(counted("{number} thing", "{number} things", 2), "zh") == "2 things"
    assert IN_LANGUAGE["zh"].say("entropy") == "熵"
    assert UNICODE.say("entropy") == ASCII.say("entropy") == "entropy"
    assert IN_LANGUAGE["zh"].say("{label} ±", label=message("entropy")) == "熵 ±"


def test_chinese_translates_a_message_its_values_and_errors_of_another_process() -> None:
    assert translated("entropy", "zh") == "熵"
    assert translated("  entropy ", "zh") == "  熵 "
    assert translated(plain("entropy"), "zh") == "entropy"  # from outside: a model of this name
    assert translated(message("{model}: {label}", model=plain("entropy"), label="entropy"), "zh") == "entropy：熵"
    assert translated("", "zh") == ""
    assert translated("Verdict: ", "zh") == "判定："
    assert translated(message("{label}: {value:.2f}", label=message("entropy"), value=1), "zh") == "熵：1.00"
    assert translated(message("{label:<6}|{label:>4}|", label=message("entropy")), "zh") == "熵    |  熵|"
    inner = message("{label} of {name!r}", label=message("entropy"), name="entropy")
    assert translated(message("{inner}.", inner=inner), "zh") == "熵 of 'entropy'。"
    assert translated(message("{error}.", error=InputError("{label}", label=message("entropy"))), "zh") == "熵。"
    error = pickle.loads(pickle.dumps(InputError("{label}: no", label=message("entropy"))))
    assert str(error) == "entropy: no"
    assert translated(str(error), "zh") == "熵：no"


@pytest.mark.parametrize("typed", ["entropy", "learn"])
def test_what_was_typed_is_never_translated_even_if_it_is_a_word_of_the_catalogue(typed: str) -> None:
    assert translated(message("{path}: no such file", path=typed), "zh").startswith(f"{typed}：")
    assert translated(message("{file}: {text}", file=typed, text=message("entropy")), "zh") == f"{typed}：熵"
    assert translated(did_you_mean(typed, [typed]), "zh") == f"（是不是 {typed}？）"


@pytest.mark.parametrize("typed", ["因9", "因, 9", "9因.", "数据1.npz", "模型,b (1)"])
def test_what_a_user_typed_or_named_stays_as_it_is_beside_chinese(typed: str) -> None:
    inner = message("must be {accepted}, not {value!r}", accepted="-5", value=typed)
    assert translated(message("{reason}.", reason=inner), "zh") == f"必须是 -5，而不是 {typed!r}。"
    assert translated(message("change of {label}", label=typed), "zh").replace(" 的", "的") == f"{typed}的变化"
    assert translated(message("{path}: {label:<4}|", path=Path(typed), label=inner), "zh").startswith(
        f"{typed}：必须"
    )
    assert translated(message("{path}: no such file", path=typed), "en") == f"{typed}: no such file"


def test_spaces_and_stops_between_values_are_chinese_if_a_value_is() -> None:
    assert (
        translated(message("must be {accepted}, not {value!r}", accepted="-5", value="x"), "zh")
        == "必须是 -5，而不是 'x'"
    )
    accepted = message("{number} from {low:g} to {high}{least}", number="", low=-5, high="5", least="")
    assert translated(message("must be {accepted}, not {value!r}", accepted=accepted, value="x"), "zh") == (
        "必须是 -5 到 5 的，而不是 'x'"
    )
    both = joined((message("{label} {value}", label=message("entropy"), value=0.25), message("{x:.1f}", x=2)), "; ")
    assert translated(message("{both}.", both=both), "zh") == "熵 0.25；2.0。"
    assert translated(message("{a}, {b}.", a="W_q", b=2.5), "zh") == "W_q, 2.5."
    assert translated(message("{a} ({b})", a=message("entropy"), b="H"), "zh") == "熵（H）"
    assert translated(message("{a} ({b})", a="W_q", b="H"), "zh") == "W_q (H)"
    assert translated(message("q1. {title}", title=message("entropy")), "zh") == "q1. 熵"
    assert translated(message("{label:<8}; {a:.1f}:{a:.0f}", label="entropy", a=1.25), "zh") == "熵      ；1.2:1"


@pytest.mark.parametrize(
    ("label", "said"),
    [("|logit|", "|logit| 的变化"), ("σ", "σ 的变化"), ("√(2 ln n)", "√(2 ln n) 的变化"), ("|熵|", "|熵|的变化")],
)
def test_a_formula_has_a_space_beside_chinese(label: str, said: str) -> None:
    assert translated(message("change of {label}", label=label), "zh") == said
    before = said.removeprefix(label).removesuffix("的变化")
    assert translated(message("by {column}, largest first", column=label), "zh") == f"按{before}{label}，从大到小"


def test_one_text_is_said_differently_in_another_sense() -> None:
    assert in_sense("never", "learned") == "never"
    never = translated(message("never"), "zh"), translated(in_sense("never", "learned"), "zh")
    assert len({*never, "never"}) == 3
    assert translated(message("{label}", label=in_sense("never", "learned")), "zh") == never[1]
    assert translated(in_sense("never", "learned"), "en") == "never"
    assert translated(in_sense("never", "temperature of water"), "zh") == "never"
