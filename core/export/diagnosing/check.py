"""Export the findings of a check: as JSON, CSV, Markdown, JUnit XML and commands of GitHub Actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from ..formats import NONE, Say, csv_text, digits, existing, json_text, markdown_table, version

if TYPE_CHECKING:
    from ...captures.capture import Capture
    from ...diagnosis.check import Figures, Finding

_CHECK = "attn-tui/check-1"


@dataclass(frozen=True)
class Checked:
    """The result of a check."""

    capture: Capture
    heads: Sequence[Figures]
    findings: Sequence[Finding]
    allowed: Sequence[Finding]


def check_json(checked: Checked) -> str:
    """Return one JSON object with all figures and findings."""
    return json_text(
        {
            "schema": _CHECK,
            "version": version(),
            "file": {"path": str(checked.capture.path), "model": checked.capture.model},
            "findings": _findings(checked),
            "heads": [
                {
                    "layer": str(each.layer.index),
                    "layer_name": each.layer.name,
                    "head": each.head,
                    "largest_logit": existing(each.largest_logit),
                    "spread": existing(each.spread),
                    "token_spread": existing(each.token_spread),
                    "entropy_fraction": existing(each.entropy_fraction),
                    "one_hot_rows": existing(each.one_hot_rows),
                    "first_key_weight": existing(each.first_key_weight),
                    "verdict": each.verdict.verdict,
                }
                for each in checked.heads
            ],
            "summary": {
                "heads": len(checked.heads),
                "findings": len(checked.findings),
                "allowed": len(checked.allowed),
            },
        }
    )


def _findings(checked: Checked) -> list[dict[str, Any]]:
    return [
        *(_finding(each, False) for each in checked.findings),
        *(_finding(each, True) for each in checked.allowed),
    ]


def _finding(each: Finding, allowed: bool) -> dict[str, Any]:
    return {
        "layer": None if each.layer is None else str(each.layer.index),
        "layer_name": None if each.layer is None else each.layer.name,
        "head": each.head,
        "rule": each.rule,
        "message": each.message,
        "value": existing(each.value),
        "limit": existing(each.limit),
        "allowed": allowed,
    }


def check_csv(checked: Checked) -> str:
    """Return a line for each finding."""
    columns = ("layer", "layer_name", "head", "rule", "message", "value", "limit", "allowed")
    return csv_text(columns, [[line[name] for name in columns] for line in _findings(checked)])


def check_markdown(checked: Checked, say: Say = str) -> str:
    """Return a table with a line for each finding."""
    header = ["place", "rule", "finding", "value", "limit"]
    return markdown_table(
        header,
        [
            [
                each.place,
                each.rule,
                each.message,
                *(NONE if n is None else digits(n) for n in (each.value, each.limit)),
            ]
            for each in checked.findings
        ],
        say,
    )


def check_junit(checked: Checked) -> str:
    """Return JUnit XML: a test case for each head, and one for the file, failed if it has findings."""
    of_head: dict[tuple[str, int], list[Finding]] = {(_class(e), e.head): [] for e in checked.heads}
    of_file: list[Finding] = []
    for each in checked.findings:
        if each.layer is None or each.head is None:
            of_file.append(each)
        else:
            of_head.setdefault((_class(each), each.head), []).append(each)
    cases = [_case(name, f"head {head}", found) for (name, head), found in of_head.items()]
    cases.append(_case("file", "all heads", of_file))
    failed = sum(bool(found) for found in (*of_head.values(), of_file))
    name = quoteattr(f"attn-tui check {_clean(str(checked.capture.path))}")
    lines = [f'<testsuites tests="{len(cases)}" failures="{failed}" errors="0">']
    lines.append(f'  <testsuite name={name} tests="{len(cases)}" failures="{failed}" errors="0">')
    return "\n".join(
        ['<?xml version="1.0" encoding="UTF-8"?>', *lines, *cases, "  </testsuite>", "</testsuites>", ""]
    )


def _class(each: Figures | Finding) -> str:
    assert each.layer is not None
    return f"layer {each.layer.index} {each.layer.name}"


def _case(name: str, head: str, found: Sequence[Finding]) -> str:
    start = f"    <testcase classname={quoteattr(_clean(name))} name={quoteattr(head)}"
    if not found:
        return f"{start}/>"
    failures = [
        f"      <failure type={quoteattr(each.rule)} message={quoteattr(_clean(each.message))}>"
        f"{escape(_clean(f'{each.place}: {each.message}'))}</failure>"
        for each in found
    ]
    return "\n".join([f"{start}>", *failures, "    </testcase>"])


def _clean(text: str) -> str:
    """Return text without characters that XML does not admit."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def check_github(checked: Checked) -> str:
    """Return a workflow command of GitHub Actions for each finding."""
    path = _property(str(checked.capture.path))
    return "".join(
        f"::error file={path},title={_property(f'attn-tui {each.rule}')}::{_data(f'{each.place}: {each.message}')}\n"
        for each in checked.findings
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
