"""Renew the tables of json.md, capture-format.md and diagnose.md that are made from declarations: `make docs`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from attn_tui.core.captures.features import EVIDENCE, FEATURE, FEATURES, MASKS
from attn_tui.core.captures.naming import TOKENS_FIRST, WORDS, Words
from attn_tui.core.diagnosis.scale_keys import LEARNED, SCALE_KEYS
from attn_tui.core.parameters import FIELDS
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.status import MEANINGS

PAGE = Path(__file__).with_name("json.md")
CAPTURE_PAGE = Path(__file__).with_name("capture-format.md")
DIAGNOSE_PAGE = Path(__file__).with_name("diagnose.md")
TYPES = {"integer": "integer", "real": "number", "choice": "string", "setting": "string"}


def renewed(page: str) -> str:
    """Return the page with its tables of statuses, statistics and parameters made again."""
    statistics = [(f"`{s.name}`", s.unit, "yes" if s.optional else "no", s.definition) for s in STATISTICS]
    accepted = {field.name: field.accepted for field in FIELDS} | {"scale": "name of a scale rule, or a formula"}
    fields = [(f"`{field.name}`", TYPES[field.kind], accepted[field.name], field.help) for field in FIELDS]
    page = _with_table(page, "status | when", [(f"`{word}`", meaning) for word, meaning in MEANINGS.items()])
    page = _with_table(page, "name | unit | optional | meaning", statistics)
    return _with_table(page, "name | type | accepted | meaning", fields)


def renewed_captures(page: str) -> str:
    """Return the page on captures with its tables of names, metadata keys and tensors made again."""
    keys = [(f"`{each.key}`", each.accepted, each.meaning) for each in FEATURES if "file" in each.places]
    tensors = [
        (_code(each.tensors), each.shape, each.tensor_means)
        for each in FEATURES
        if each.tensors and each.name not in (*MASKS, *EVIDENCE)
    ]
    evidence = [(FEATURE[name].tensor_means, _code(FEATURE[name].tensors), FEATURE[name].shape) for name in EVIDENCE]
    masks = [(_code(FEATURE[name].tensors), FEATURE[name].shape, FEATURE[name].tensor_means) for name in MASKS]
    names = [(*(" with ".join(map("`{}`".format, half)) for half in _halves(words)), _axes(words)) for words in WORDS]
    page = _with_table(page, "queries | keys | axes, if nothing else tells them", names)
    page = _with_table(page, "key | accepted values | meaning", keys)
    page = _with_table(page, "masks | shape | meaning", masks)
    page = _with_table(page, "names | shape | meaning", tensors)
    return _with_table(page, "evidence | names | shape", evidence)


def renewed_diagnosis(page: str) -> str:
    """Return the page on diagnoses with its table of the keys of configurations made again."""
    keys = [(_code(each.keys), each.models, each.effect, "yes" if each.applied else "no") for each in SCALE_KEYS]
    learned = ("none, models learn it", _code(LEARNED), "a factor of each head or component", "no")
    return _with_table(page, "keys | models | effect on the scores | applied", [*keys, learned])


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _halves(words: Words) -> tuple[tuple[str, ...], tuple[str, ...]]:
    of_q, of_k = words.rotary or ("", "")
    return (words.q, of_q) if of_q else (words.q,), (words.k, of_k) if of_k else (words.k,)


def _axes(words: Words) -> str:
    if words.axes == TOKENS_FIRST:
        return f"[batch, token, head, d_k] ({words.maker})"
    return (
        "after a prefix, with three axes: heads side by side, needs `heads`; else guessed"
        if words.projection
        else "guessed"
    )


def _with_table(page: str, header: str, lines: Iterable[tuple[str, ...]]) -> str:
    """Return the page with the rows under this header replaced."""
    rows = "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
    head = re.search(rf"^\| {re.escape(header)} \|\n\|[-|]+\|\n((?:\|.*\n)*)", page, re.M)
    if head is None:
        raise ValueError(f"no table with the columns {header}")
    return page[: head.start(1)] + rows + page[head.end(1) :]


if __name__ == "__main__":
    for path, renew in ((PAGE, renewed), (CAPTURE_PAGE, renewed_captures), (DIAGNOSE_PAGE, renewed_diagnosis)):
        path.write_text(renew(path.read_text("utf-8")), "utf-8")
