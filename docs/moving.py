"""One picture that shows several of the app in turn: what they share is drawn once."""

from __future__ import annotations

import re
from collections.abc import Sequence

SECONDS, HELD = 9, 0.25  # a turn, and the share of it that the last picture stays
_RULE = re.compile(r"\.(terminal-\d+-r\d+) \{ (.*?) \}")
_BODY = re.compile(r'(<g class="terminal-\d+-matrix">)(.*)(</g>\s*</g>\s*</svg>)', re.DOTALL)
_ELEMENT = re.compile(r"<(?:rect|text) [^>]*?(?:/>|>[^<]*</text>)")


def moving(pictures: Sequence[str]) -> str:
    """Return pictures of one size, in SVG, as one that goes through them; without animation, it shows the last."""
    styles: dict[str, str] = {}  # classes by what they declare
    frames = [_elements(picture, styles) for picture in pictures]
    shared = [each for each in frames[-1] if all(each in frame for frame in frames)]
    groups = [f"<g>{''.join(shared)}</g>"]
    for number, frame in enumerate(frames):
        own = "".join(each for each in frame if each not in shared)
        shown = ["visible" if each == number else "hidden" for each in range(len(frames))]
        groups.append(f'<g visibility="{shown[-1]}">{own}{_animation(shown)}</g>')
    around = re.sub(r"<defs>.*?</defs>", "", _RULE.sub("", pictures[-1]), flags=re.DOTALL)
    rules = "".join(f".{name} {{ {declared} }}" for declared, name in styles.items())
    around = around.replace("</style>", f"{rules}</style>", 1)
    return _BODY.sub(lambda body: f"{body[1]}\n" + "\n".join(groups) + body[3], around)


def _elements(picture: str, styles: dict[str, str]) -> list[str]:
    """Return the elements of a picture, with classes that all pictures share."""
    names = {name: styles.setdefault(declared, f"s{len(styles)}") for name, declared in _RULE.findall(picture)}
    body = _BODY.search(picture)
    assert body is not None
    plain = re.sub(r' clip-path="[^"]*"', "", body[2])
    plain = re.sub(r'class="(terminal-\d+-r\d+)"', lambda each: f'class="{names[each[1]]}"', plain)
    return _ELEMENT.findall(plain)


def _animation(shown: Sequence[str]) -> str:
    """Return an animation of visibility, in which the last value stays for a while."""
    times = [number * (1 - HELD) / max(len(shown) - 1, 1) for number in range(len(shown))]
    return (
        f'<animate attributeName="visibility" calcMode="discrete" dur="{SECONDS}s" repeatCount="indefinite" '
        f'keyTimes="{";".join(f"{time:.3g}" for time in times)}" values="{";".join(shown)}"/>'
    )
