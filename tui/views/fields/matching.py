"""Find rows of a list by words: names first, then letters in order, then words spelled almost alike."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from .choices import Choice

_SEPARATORS = re.compile(r"[\s_\-–−‐]+")
_ALIKE = 0.82  # similarity of words from which one may be a misspelling of the other


def matching(choices: Sequence[Choice], words: str, guess: bool = True) -> list[Choice]:
    """Return the rows that contain every word, those whose names match best first; all rows without words.

    Case, spaces, hyphens and underscores do not matter: `softcap` finds soft-cap. If no row contains every word,
    guess: return those whose names begin with the letters in this order, or contain words spelled almost alike.
    """
    wanted = [word for word in map(squeezed, words.split()) if word]
    if not wanted:
        return [*choices]
    found = ranked(choices, wanted)
    if not found and guess:
        letters = re.compile(".*?".join(map(re.escape, "".join(wanted))))
        found = [
            choice
            for choice in choices
            if any(letters.match(name.replace(" ", "")) for name in _texts(choice)[0][:3])
        ]
    if not found and guess:
        known = {word for choice in choices for word in _words(choice)}
        meant = [difflib.get_close_matches(word, known, 1, _ALIKE if len(word) > 4 else 1) for word in wanted]
        found = ranked(choices, [near for word in meant for near in word]) if all(meant) else []
    return found


def ranked(choices: Sequence[Choice], wanted: Sequence[str]) -> list[Choice]:
    """Return the rows that contain every word, those whose names match best first."""
    tests = [_contains(word) for word in wanted]
    found = [(rank, choice) for choice in choices if (rank := _rank(choice, wanted, tests)) is not None]
    return [choice for _, choice in sorted(found, key=lambda each: each[0])]


def in_both(row: Choice, say: Callable[[str], str]) -> Choice:
    """Return a row that is found by its words in English and by those in the language of `say`."""
    said = [say(text) for text in (row.name, row.formula, *row.words)]
    also = " ".join([row.also, *map(say, (row.family, row.help))])
    return replace(row, words=(*row.words, *(text for text in said if text not in row.words)), also=also)


def squeezed(text: str) -> str:
    """Return a text as it is compared: in lower case, without what separates words; `1/√d_k` is 1/sqrtdk."""
    return _spaced(text).replace(" ", "")


def _spaced(text: str) -> str:
    """Return a text in lower case, with a space where words are separated."""
    return _SEPARATORS.sub(" ", text.casefold().replace("√", "sqrt"))


@lru_cache(2048)  # each key that is typed compares the same rows
def _texts(choice: Choice) -> tuple[list[str], str]:
    """Return the names of a row, its own two first, and the rest of its text, all spaced."""
    names = [choice.name, choice.value, *(name for name in (choice.formula, *choice.words) if name)]
    return [*map(_spaced, names)], _spaced(f"{choice.family} {choice.help} {choice.source} {choice.also}")


@lru_cache(2048)
def _words(choice: Choice) -> list[str]:
    """Return the words of a row's names, and each pair of them as one word."""
    split = [re.findall(r"\w+", name) for name in _texts(choice)[0]]
    return [word for words in split for word in (*words, *map("".join, pairwise(words)))]


def _contains(word: str) -> Callable[[str], bool]:
    """Return a test whether a spaced text contains a word: within one of its words, or from the start of one on.

    `dask` is in no text that says "and ask".
    """
    across = re.compile(r"(?<!\w)" + " ?".join(map(re.escape, word)))
    return lambda text: word in text or (word in text.replace(" ", "") and across.search(text) is not None)


def _rank(choice: Choice, wanted: Sequence[str], tests: Sequence[Callable[[str], bool]]) -> int | None:
    """Return how well a row matches the words with these tests, 0 best; None if it does not."""
    texts, rest = _texts(choice)
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
