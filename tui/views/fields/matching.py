"""Find rows of a list by words: names first, then letters in order, then words spelled almost alike."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from ...language.cells import WIDE
from ..glyphs import IN_LANGUAGE
from .choices import Choice
from .synonyms import TERMS

_SEPARATORS = re.compile(r"[\s_\-–−‐]+")
_ALIKE = 0.82  # similarity of words from which one may be a misspelling of the other
_CHINESE = re.compile(f"[{WIDE}]")
_BETWEEN = 3  # characters that may stand between two of a Chinese word: 点积的方差


def matching(choices: Sequence[Choice], words: str, guess: bool = True) -> list[Choice]:
    """Return the rows that contain every word, those whose names match best first; all rows without words.

    Case, spaces, hyphens and underscores do not matter: `softcap` finds soft-cap. Chinese words are looked for in
    the Chinese texts, too; their characters may have a few others between them. Rows that contain the words of the
    texts for those of TERMS come last. If no row contains every word, guess: return those whose names begin with
    the letters in this order, or contain words spelled almost alike.
    """
    wanted = [word for word in map(squeezed, words.split()) if word]
    if not wanted:
        return [*choices]
    found = ranked(choices, wanted)
    if (meant := in_texts(words)) != words:
        found += [row for row in ranked(choices, [*map(squeezed, meant.split())]) if row not in found]
    if not found and guess:
        letters = re.compile(".*?".join(map(re.escape, "".join(wanted))))
        found = [
            choice
            for choice in choices
            if any(letters.match(name.replace(" ", "")) for name in _texts(choice)[0][:3])
        ]
    if not found and guess:
        known = {word for choice in choices for word in _words(choice)}
        meanings = [difflib.get_close_matches(word, known, 1, _ALIKE if len(word) > 4 else 1) for word in wanted]
        found = ranked(choices, [near for word in meanings for near in word]) if all(meanings) else []
    return found


def ranked(choices: Sequence[Choice], wanted: Sequence[str]) -> list[Choice]:
    """Return the rows that contain every word, those whose names match best first."""
    tests, chinese = [_contains(word) for word in wanted], any(map(_CHINESE.search, wanted))
    found = [(rank, choice) for choice in choices if (rank := _rank(choice, wanted, tests, chinese)) is not None]
    return [choice for _, choice in sorted(found, key=lambda pair: pair[0])]


def squeezed(text: str) -> str:
    """Return a text as it is compared: in lower case, without what separates words; `1/√d_k` is 1/sqrtdk."""
    return _spaced(text).replace(" ", "")


def _spaced(text: str) -> str:
    """Return a text in lower case, with a space where words are separated."""
    return _SEPARATORS.sub(" ", text.casefold().replace("√", "sqrt").replace("根号", "sqrt"))


@lru_cache(4096)  # each key that is typed compares the same rows
def _texts(choice: Choice, chinese: bool = False) -> tuple[list[str], str]:
    """Return the names of a row, its own two first, and the rest of its text, spaced; if asked, in Chinese, too."""
    say = IN_LANGUAGE["zh" if chinese else "en"].say
    names = [choice.name, choice.value, *(name for name in (choice.formula, *choice.words) if name)]
    rest = [choice.family, choice.help, choice.source, *choice.also]
    if chinese:
        own = [say(name) for name in names[:2]]
        names = [*own, *names, *map(say, names[2:])]
        rest = [*rest, *map(say, rest)]
    return [*map(_spaced, names)], _spaced(" ".join(rest))


@lru_cache(2048)
def _words(choice: Choice) -> list[str]:
    """Return the words of a row's names, and each pair of them as one word."""
    split = [re.findall(r"\w+", name) for name in _texts(choice)[0]]
    return [word for words in split for word in (*words, *map("".join, pairwise(words)))]


def _contains(word: str) -> Callable[[str], bool]:
    """Return a test whether a spaced text contains a word: within one of its words, or from the start of one on.

    `dask` is in no text that says "and ask".
    """
    if _CHINESE.search(word):
        return lambda text: _in_order(word, text.replace(" ", ""))
    across = re.compile(r"(?<!\w)" + " ?".join(map(re.escape, word)))
    return lambda text: word in text or (word in text.replace(" ", "") and across.search(text) is not None)


def _in_order(word: str, text: str) -> bool:
    """Return whether a text has the characters of a word in order, each at most _BETWEEN after the one before."""
    first = text.find(word[0])
    while first >= 0:
        at = first
        for character in word[1:]:
            at = text.find(character, at + 1, at + 2 + _BETWEEN)
            if at < 0:
                break
        else:
            return True
        first = text.find(word[0], first + 1)
    return False


def _rank(choice: Choice, wanted: Sequence[str], tests: Sequence[Callable[[str], bool]], chinese: bool) -> int | None:
    """Return how well a row matches the words with these tests, 0 best; None if it does not."""
    texts, rest = _texts(choice, chinese)
    if not all(any(map(test, texts)) or test(rest) for test in tests):
        return None
    names, whole = [text.replace(" ", "") for text in texts], "".join(wanted)
    within = re.compile(rf"(?<!\w){re.escape(' '.join(wanted))}(?!\w)")  # `theme` is less of "the mechanism"
    ways: list[tuple[Callable[[str], bool], list[str]]] = [
        (whole.__eq__, names), (lambda name: name.startswith(whole), names),
        (lambda text: within.search(text) is not None, texts), (_contains(whole), texts),
    ]  # fmt: skip
    for rank, (test, some) in enumerate((test, part) for test, all_ in ways for part in (all_[:2], all_[2:])):
        if any(map(test, some)):
            return rank
    return 2 * len(ways) + (not all(any(map(test, texts)) for test in tests))


@lru_cache(1)
def _pattern() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """Return a pattern of all other words, the longest first, and the word of the texts for each."""
    word_of = {other: word for word, others in TERMS.items() for other in others}
    longest = sorted(word_of, key=len, reverse=True)
    whole = (rf"(?<!\w){re.escape(other)}(?!\w)" if other.isascii() else re.escape(other) for other in longest)
    return re.compile("|".join(whole)), word_of


def in_texts(words: str) -> str:
    """Return what is searched for, with the words of the texts for others: `梯度消失` is `vanish`."""
    pattern, word_of = _pattern()
    return pattern.sub(lambda match: f" {word_of[match[0]]} ", words.casefold()).strip()
