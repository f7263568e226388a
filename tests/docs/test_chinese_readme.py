"""README and guide say in Chinese what they say in English: same commands, pictures, links and keys."""

import re
from pathlib import Path

from cases import for_each

ROOT = Path(__file__).parents[2]
ENGLISH, CHINESE = (
    "\n".join((ROOT / name).read_text("utf-8") for name in (f"README{zh}.md", f"docs/guide{zh}.md"))
    for zh in ("", ".zh")
)


@for_each(
    "pattern",
    [
        r"```console\n\$ ([^\n]*)\n",
        r"!\[[^]]*\]\(([^)]*)\)",
        r"\]\(((?!README|guide)[^)]*\.md)\)",
        r"^\| (`.*?) \|",
        r"^(#+) ",
        r"`(attn-tui [^`#]*|--[^`]*|make [^`]*)`",
        r"^(attn-tui [^#\n]*|make [^#\n]*)#",
    ],
)
def test_both_have_the_same(pattern: str) -> None:
    english, chinese = (_found(pattern, page) for page in (ENGLISH, re.sub(r"\.zh(?=\.(svg|md))", "", CHINESE)))
    if "`(" in pattern:  # sentences may name them in another order
        english, chinese = sorted(english), sorted(chinese)
    assert english
    assert chinese == english


def _found(pattern: str, page: str) -> list[str]:
    """Return what matches, each on one line."""
    return [" ".join(each.split()) if "`(" in pattern else each for each in re.findall(pattern, page, re.M | re.S)]


def test_the_pictures_are_there_and_those_of_the_chinese_page_are_chinese() -> None:
    for page, language in ((ENGLISH, ""), (CHINESE, ".zh")):
        names = re.findall(r"!\[[^]]*\]\((?:docs/)?([^)]*)\.svg\)", page)
        assert len(names) > 5
        for name in names:
            svg = (ROOT / "docs" / f"{name}.svg").read_text("utf-8")
            assert name.endswith(language)
            assert bool(re.search("[\u4e00-\u9fff]", svg)) == bool(language)


def test_each_links_to_the_other() -> None:
    assert "[简体中文](README.zh.md)" in ENGLISH.splitlines()[2]
    assert "[English](README.md)" in CHINESE.splitlines()[2]


def test_chinese_paragraphs_end_with_full_width_punctuation() -> None:
    prose = re.sub(r"```.*?```|^[|#!].*?$", "", CHINESE, flags=re.M | re.S)
    paragraphs = [each.strip() for each in prose.split("\n\n") if re.search("[\u4e00-\u9fff]{6}", each)]
    assert len(paragraphs) > 20
    assert [each for each in paragraphs if each[-1] not in "。：*"] == []
