"""docs/glossary.zh.md is the one list of Chinese terms: the catalogue uses them."""

import io
import re
from pathlib import Path

from babel.messages.pofile import read_po
from cases import for_each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.zh.md").read_text("utf-8")
TERMS = {
    english: chinese.split("、")
    for english, chinese in re.findall(r"^\| ([A-Za-z][^|]*?) \| ([^|]+?) \|", PAGE, re.M)
}
# Terms that mean one thing wherever they stand; others have a second meaning, such as limit, share and key.
ONE_MEANING = (
    "attention", "attention sink", "attention weight", "baseline", "bias", "causal", "cosine", "dead rows",
    "dot product", "effective keys", "excess kurtosis", "gradient", "healthy", "initialisation", "Jacobian",
    "kernel", "logit", "mask", "median", "near-tie", "number format", "one-hot", "overflow", "query",
    "root mean square", "scale rule", "soft-cap", "standard deviation", "standard error", "token",
    "uniform", "unscaled", "variance", "weight",
)  # fmt: skip
CODE = re.compile(  # and names
    r"`[^`]*`|'[^']*'|\[[^\]]*\]|ln\(\w+\)|\{[^}]*\}|\|[^|]*\||\S+[=./]\S+|\S+,\S+|\w+ \(default\b|unscaled is"
)


def _pairs() -> list[tuple[str, str]]:
    """Return messages without code and their translations, each on one line: a term may go on in the next."""
    po = read_po(io.BytesIO((ROOT / "tui/language/zh/LC_MESSAGES/attn_tui.po").read_bytes()), locale="zh")
    pairs = [(message.id, message.string) for message in po]
    texts = [(id, said) for id, said in pairs if isinstance(id, str) and isinstance(said, str) and id != said]
    texts = [(id, said) for id, said in texts if not id.startswith("examples:")]  # commands
    return [(" ".join(CODE.sub("", id).split()), re.sub(r"\n *", "", said)) for id, said in texts]


PAIRS = _pairs()


@for_each("term", ONE_MEANING)
def test_a_term_is_translated_as_the_glossary_says(term: str) -> None:
    word = re.compile(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])")
    using = [(message, said) for message, said in PAIRS if word.search(message)]
    assert using
    assert [message for message, said in using if not any(each in said for each in TERMS[term])] == []


def test_logit_stays_latin_and_a_score_is_one_before_the_scale() -> None:
    assert [said for _, said in PAIRS if "注意力分数" in said or "对数几率" in said] == []


def test_no_term_stands_twice() -> None:
    english = re.findall(r"^\| ([A-Za-z][^|]*?) \|", PAGE, re.M)
    assert len(english) == len(set(english)) + 2  # the heads of three tables
