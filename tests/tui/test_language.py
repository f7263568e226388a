"""Which language users read, and what its catalogue says."""

import pytest
from attn_tui.tui.language.catalogue import Catalogue, catalogue
from attn_tui.tui.language.chosen import LANGUAGES, LanguageError, chosen, of_locale


@pytest.mark.parametrize(
    ("option", "variable", "setting", "locale", "language"),
    [
        ("zh", "en", "en", "en_GB.UTF-8", "zh"),
        ("en", "zh", "zh", "zh_CN.UTF-8", "en"),
        (None, "zh", "en", "en_GB.UTF-8", "zh"),
        (None, "", "zh", "en_GB.UTF-8", "zh"),
        (None, "", "en", "zh_CN.UTF-8", "en"),
        (None, "", None, "zh_CN.UTF-8", "zh"),
        (None, "", None, "de_DE.UTF-8", "en"),
    ],
)
def test_the_option_counts_before_the_variable_the_setting_and_the_locale(
    option: str | None, variable: str, setting: str | None, locale: str, language: str
) -> None:
    assert chosen({"LANG": locale, "ATTN_TUI_LANG": variable}, option, setting) == language


@pytest.mark.parametrize(
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
    ("option", "environment", "setting", "line"),
    [
        ("fr", {}, None, "--lang: must be en or zh, not 'fr'"),
        ("", {"ATTN_TUI_LANG": "zh"}, None, "--lang: must be en or zh, not ''"),
        (None, {"ATTN_TUI_LANG": "zh_CN"}, "zh", "ATTN_TUI_LANG: must be en or zh, not 'zh_CN'"),
        (None, {}, "chinese", "language: must be en or zh, not 'chinese'"),
    ],
)
def test_an_unknown_language_is_one_line_with_its_place_and_those_that_exist(
    option: str | None, environment: dict[str, str], setting: str | None, line: str
) -> None:
    with pytest.raises(LanguageError) as refusal:
        chosen(environment, option, setting)
    assert str(refusal.value) == line


def test_english_says_messages_as_they_are_written() -> None:
    english = catalogue("en")
    assert english.text("entropy") == "entropy"
    assert english.text("") == ""
    assert english.text("{share:.1f} % of {n} keys", share=12.345, n=128) == "12.3 % of 128 keys"
    assert english.text("keys { }") == "keys { }"
    assert english.count("{number} head", "{number} heads", 1) == "1 head"
    assert english.count("{number} head", "{number} heads of {n}", 2, n=7) == "2 heads of 7"


def test_chinese_translates_and_fills_in_the_values() -> None:
    chinese = catalogue("zh")
    assert chinese.text("entropy") == "熵"
    assert chinese.text("") == ""
    assert chinese.text("variance, σ {std}: d_k·σ⁴", std=2) == "方差，σ 2：d_k·σ⁴"


def test_what_is_not_translated_is_said_in_english() -> None:
    assert catalogue("zh").text("{n} things that no screen shows", n=3) == "3 things that no screen shows"
    assert catalogue("zh").count("{number} thing", "{number} things", 2) == "2 things"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_one_catalogue(language: str) -> None:
    found = chosen({}, language)
    assert catalogue(found) is catalogue(found)
    assert isinstance(catalogue(found), Catalogue)
    assert catalogue(found).language == language
