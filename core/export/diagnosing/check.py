"""Export the findings of a check: as JSON, CSV, Markdown, JUnit XML and commands of GitHub Actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from ...plain import plain
from ..formats import NONE, Say, csv_text, digits, existing, json_text, markdown_table, version
from ..listing.files import files_json

if TYPE_CHECKING:
    from ...captures.capture import Capture
    from ...diagnosis.check import Figures, Finding

_CHECK = "attn-tui/check-1"


@dataclass(frozen=True)
class Checked:
    """The result of a check of one file."""

    capture: Capture
    heads: Sequence[Figures]
    findings: Sequence[Finding]
    allowed: Sequence[Finding]
    name: str = ""  # of the file, if there are several

    def place(self, each: Finding) -> str:
        """Return where a finding is, for people."""
        return each.place if each.layer is not None or not self.name else self.name


def check_json(checked: Sequence[Checked]) -> str:
    """Return one JSON object with all figures and findings."""
    return json_text(
        {
            "schema": _CHECK,
            "version": version(),
            **files_json([each.capture for each in checked]),
            "findings": _findings(checked),
            "heads": [
                {
                    "file": each.layer.path,
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
                for file in checked
                for each in file.heads
            ],
            "summary": {
                "heads": sum(len(each.heads) for each in checked),
                "findings": sum(len(each.findings) for each in checked),
                "allowed": sum(len(each.allowed) for each in checked),
            },
        }
    )


def _findings(checked: Sequence[Checked]) -> list[dict[str, Any]]:
    return [
        _finding(file, each, allowed)
        for allowed in (False, True)
        for file in checked
        for each in (file.allowed if allowed else file.findings)
    ]


def _finding(file: Checked, each: Finding, allowed: bool) -> dict[str, Any]:
    return {
        "file": str(file.capture.path) if each.layer is None else each.layer.path,
        "layer": None if each.layer is None else str(each.layer.index),
        "layer_name": None if each.layer is None else each.layer.name,
        "head": each.head,
        "rule": each.rule,
        "message": each.message,
        "value": existing(each.value),
        "limit": existing(each.limit),
        "allowed": allowed,
    }


def check_csv(checked: Sequence[Checked]) -> str:
    """Return a line for each finding."""
    columns = ("file", "layer", "layer_name", "head", "rule", "message", "value", "limit", "allowed")
    return csv_text(columns, [[line[name] for name in columns] for line in _findings(checked)])


def check_markdown(checked: Sequence[Checked], say: Say = str) -> str:
    """Return a table with a line for each finding."""
    header = ["place", "rule", "finding", "value", "limit"]
    return markdown_table(
        header,
        [
            [
                file.place(each),
                each.rule,
                each.message,
                *(NONE if n is None else digits(n) for n in (each.value, each.limit)),
            ]
            for file in checked
            for each in file.findings
        ],
        say,
    )


def check_junit(checked: Sequence[Checked]) -> str:
    """Return JUnit XML: for each file a suite with a test case for each head, and one for the file.

    A case is failed if it has findings.
    """
    suites = [_suite(each) for each in checked]
    cases, failed = (sum(numbers) for numbers in zip(*((c, f) for _, c, f in suites), strict=True))
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites tests="{cases}" failures="{failed}" errors="0">',
            *(text for text, _, _ in suites),
            "</testsuites>",
            "",
        ]
    )


def _suite(checked: Checked) -> tuple[str, int, int]:
    """Return the suite of a file, how many test cases it has, and how many of them are failed."""
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
    name = quoteattr(f"attn-tui check {plain(str(checked.capture.path))}")
    start = f'  <testsuite name={name} tests="{len(cases)}" failures="{failed}" errors="0">'
    return "\n".join([start, *cases, "  </testsuite>"]), len(cases), failed


def _class(each: Figures | Finding) -> str:
    assert each.layer is not None
    return f"layer {each.layer.index} {each.layer.name}"


def _case(name: str, head: str, found: Sequence[Finding]) -> str:
    start = f"    <testcase classname={quoteattr(plain(name))} name={quoteattr(head)}"
    if not found:
        return f"{start}/>"
    failures = [
        f"      <failure type={quoteattr(each.rule)} message={quoteattr(plain(each.message))}>"
        f"{escape(plain(f'{each.place}: {each.message}'))}</failure>"
        for each in found
    ]
    return "\n".join([f"{start}>", *failures, "    </testcase>"])


def check_github(checked: Sequence[Checked]) -> str:
    """Return a workflow command of GitHub Actions for each finding."""
    return "".join(
        f"::error file={_property(str(file.capture.path))},title={_property(f'attn-tui {each.rule}')}::"
        f"{_data(f'{file.place(each)}: {each.message}')}\n"
        for file in checked
        for each in file.findings
    )


def _data(text: str) -> str:
    return plain(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
