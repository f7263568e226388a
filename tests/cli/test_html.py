"""Pages of HTML: well-formed, with the verdicts of JSON, escaped, and as a browser shows them."""

import base64
import json
import re
import shutil
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
from attn_tui.core.captures.capture import example_path, sample_path
from attn_tui.tui.cli.main import main
from cli_runner import SAMPLE, SMALL, WRONG, Captured

VOID = {"img", "meta"}  # elements without an end
HOSTILE = "layers.{}.<script>alert('1')</script>\"'&\x1b[2J"
FILES = {"right": str(example_path("right")), "twice": str(example_path("scale-twice"))}
COMMANDS = (
    ("inspect", SAMPLE, "--worst", "3"),
    ("inspect", SAMPLE, "--layer", "0", "--head", "2", "--scale", "0.5"),
    ("inspect", WRONG, "--rules", "all"),
    ("diagnose", WRONG),
    ("compare", FILES["right"], FILES["twice"]),
    ("check", FILES["right"], FILES["twice"], "--baseline", FILES["right"]),
    ("report", *SMALL),
    ("rules", "--d-k", "64"),
    ("cost",),
)


class Page(HTMLParser):
    """A page as it is parsed: its elements with their attributes, its texts, and the cells of its tables."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.tables: list[list[list[str]]] = []
        self.marks: dict[tuple[str, int], tuple[str, str]] = {}  # by layer and head: class and title
        self.feed(page)
        self.close()
        assert not self.open, "every element ends"

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        assert len(attributes) == len(attrs)
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
            if tag == "td" and "title" in attributes:
                row = self.tables[-1][-1]
                self.marks[row[0], len(row) - 2] = attributes["class"], attributes["title"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data


def page_of(words: Sequence[str], folder: Path) -> str:
    file = folder / "page.html"
    assert main([*words, "-o", str(file), "--overwrite"]) in (0, 1)
    return file.read_text("utf-8")


def json_of(words: Sequence[str], capsys: Captured) -> Any:
    capsys.readouterr()
    main([*words, "--format", "json"])
    return json.loads(capsys.readouterr().out)


def pixels(source: str) -> Any:
    """The colours of a PNG with a palette, and how opaque they are, [rows, columns, 4]."""
    data, chunks = base64.b64decode(source.partition(",")[2])[8:], dict[bytes, Any]()
    while data:
        size = int.from_bytes(data[:4], "big")
        chunks[data[4:8]], data = np.frombuffer(data[8 : 8 + size], np.uint8), data[12 + size :]
    across, down = chunks[b"IHDR"][:8].view(">u4")
    places = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(down, 1 + across)[:, 1:]
    return np.hstack([chunks[b"PLTE"].reshape(-1, 3), chunks[b"tRNS"][:, np.newaxis]])[places]


def capture(folder: Path, layers: int, heads: int, name: str, wrong: Sequence[int] = ()) -> str:
    """Write a causal capture with lse, whose `wrong` layers apply the scale twice."""
    rng, calls = np.random.default_rng(0), list[attn_tui.Call]()
    for layer in range(layers):
        q, k = rng.normal(size=(2, 1, heads, 12, 8)).astype(np.float32)
        scale = 1 / 8 if layer in wrong else 8**-0.5
        z = np.where(np.tri(12, dtype=bool), scale * (q @ k.mT), -np.inf)
        lse = np.log(np.exp(z).sum(-1))
        calls.append(attn_tui.call(q, k, lse=lse, scale=8**-0.5, causal=True, name=name.format(layer)))
    path = folder / f"{layers}.safetensors"
    attn_tui.save(path, calls)
    return str(path)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_page_is_well_formed_and_loads_nothing(words: Sequence[str], tmp_path: Path) -> None:
    page = Page(page_of(words, tmp_path))
    assert {"html", "head", "title", "body"} <= {tag for tag, _ in page.elements}
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "href"]
        assert tag != "img" or attributes["src"].startswith("data:image/png;base64,")
    assert "url(" not in page_of(words, tmp_path)
    assert "@import" not in page_of(words, tmp_path)


def test_a_diagnosis_has_the_verdicts_of_json(tmp_path: Path, capsys: Captured) -> None:
    page = Page(page_of(["diagnose", WRONG], tmp_path))
    found = json_of(["diagnose", WRONG], capsys)
    tones = {"healthy": "right", "cause": "wrong", "unexplained": "wrong", "no-evidence": "neutral"}
    assert len(page.marks) == len(found["heads"])
    for head in found["heads"]:
        tone, title = page.marks[head["layer"], head["head"]]
        assert tone == tones[head["verdict"]]
        assert title.startswith(f"layer {head['layer']} head {head['head']}: ")
        assert head["cause"] is None or head["cause"] in title
    header, *lines = page.tables[-1]
    at = [header.index(name) for name in ("layer", "head", "verdict")]
    assert [[line[i] for i in at] for line in lines] == [
        [head["layer"], str(head["head"]), head["verdict"]] for head in found["heads"]
    ]
    for group in found["groups"]:
        assert group["what"] in page.text
    several = Page(page_of(["diagnose", *FILES.values()], tmp_path)).tables[-1][0]
    assert ("file" in header, "file" in several) == (False, True)


def test_colours_are_as_strong_as_the_root_of_the_weight(tmp_path: Path) -> None:
    page = Page(page_of(["diagnose", capture(tmp_path, 1, 1, "layers.{}", wrong=[0])], tmp_path))
    q, k = np.random.default_rng(0).normal(size=(2, 12, 8))
    seen = np.tri(12, dtype=bool)
    pictures = [pixels(attributes["src"]) for tag, attributes in page.elements if tag == "img"]
    for shown, scale in zip(pictures, (1 / 8, 8**-0.5), strict=True):  # as it is, and as it should be
        weights = np.where(seen, np.exp(scale * (q @ k.mT)), 0)
        weights /= weights.sum(-1, keepdims=True)
        assert (shown[~seen] == (128, 128, 128, 56)).all()
        assert (shown[seen, :3] == (42, 122, 191)).all()
        assert shown[seen, 3] == pytest.approx(255 * np.sqrt(weights[seen]), abs=5)  # of 32 levels


def test_a_check_has_the_findings_of_json(tmp_path: Path, capsys: Captured) -> None:
    words = ["check", FILES["twice"], "--baseline", FILES["right"]]
    page, found = Page(page_of(words, tmp_path)), json_of(words, capsys)
    wrong = {(each["layer"], each["head"]) for each in found["findings"] if not each["allowed"]}
    assert {place for place, (tone, _) in page.marks.items() if tone == "wrong"} == wrong
    assert len(page.marks) == found["summary"]["heads"]
    main(words)
    told, shown = capsys.readouterr().out.split(), page.text.replace(",", " ").split()
    assert [word for word in told if word.strip(",") not in shown] == [], "the blocks that the command prints"


def test_a_comparison_has_the_stages_of_json(tmp_path: Path, capsys: Captured) -> None:
    words = ["compare", FILES["right"], FILES["twice"]]
    page, found = Page(page_of(words, tmp_path)), json_of(words, capsys)
    differs = {(each["layer"], each["head"]) for each in found["heads"] if each["first"]}
    assert {place for place, (tone, _) in page.marks.items() if tone == "wrong"} == differs
    captions = [attributes["alt"] for tag, attributes in page.elements if tag == "img"]
    assert any("right.safetensors" in each for each in captions)
    assert any("scale-twice.safetensors" in each for each in captions)


def test_what_differs_because_an_earlier_layer_does_is_marked(tmp_path: Path, capsys: Captured) -> None:
    rng, files = np.random.default_rng(0), list[str]()
    q, k = rng.normal(size=(2, 2, 1, 2, 12, 8)).astype(np.float32)
    for name, scale in (("one", 8**-0.5), ("other", 1 / 8)):
        calls = [
            attn_tui.call(q[at] * (1 + at * (name == "other")), k[at], scale=scale, name=f"layers.{at}")
            for at in (0, 1)
        ]
        files.append(str(tmp_path / f"{name}.safetensors"))
        attn_tui.save(files[-1], [calls[0], calls[1]])
    words = ["compare", *files]
    page, found = Page(page_of(words, tmp_path)), json_of(words, capsys)
    states = {(each["layer"], each["head"]): each["stages"]["qk"]["state"] for each in found["heads"]}
    downstream = {place for place, state in states.items() if state == "downstream"}
    assert {place for place, (tone, _) in page.marks.items() if tone == "downstream"} <= downstream


@pytest.mark.parametrize("command", ["inspect", "diagnose", "check"])
def test_names_from_a_file_are_text(command: str, tmp_path: Path) -> None:
    page = page_of([command, capture(tmp_path, 2, 2, HOSTILE, wrong=[1])], tmp_path)
    assert "<script" not in page
    assert "\x1b" not in page
    titles = [attributes.get("title", "") for _, attributes in Page(page).elements]
    assert any("<script>alert('1')</script>\"'&\\x1b[2J" in title for title in titles)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["inspect", "diagnose"])
def test_1024_heads_fit_in_300_kilobytes(command: str, tmp_path: Path) -> None:
    file = capture(tmp_path, 32, 32, "model.layers.{}.self_attn", wrong=range(20, 32))
    page = page_of([command, file], tmp_path)
    assert len(Page(page).marks) == 1024
    assert len(page.encode()) < 300_000


def test_the_ending_chooses_the_format_and_the_language_is_that_of_tables(tmp_path: Path, capsys: Captured) -> None:
    assert 'lang="en"' in page_of(["diagnose", WRONG], tmp_path)
    chinese = page_of(["diagnose", WRONG, "--lang", "zh"], tmp_path)
    assert 'lang="zh-Hans"' in chinese
    assert "错误" in chinese
    assert page_of(["diagnose", WRONG, "--ascii"], tmp_path).isascii()
    main(["diagnose", WRONG, "--format", "html"])
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert json.loads(page_of(["diagnose", WRONG, "--format", "json"], tmp_path))["schema"] == "attn-tui/diagnosis-2"


def results() -> Mapping[str, attn_tui.Result]:
    head = attn_tui.open(sample_path())[0, 2]
    wrong = attn_tui.open(WRONG)
    return {
        "Lab": attn_tui.measure(d_k=8, n_keys=16, n_queries=4, batch=2),
        "Exact": attn_tui.predict(d_k=8),
        "Sweep": attn_tui.sweep([4, 8], n_keys=16, batch=2),
        "Answer": attn_tui.cost("llama-3-8b"),
        "HeadMeasurement": head.measure(),
        "HeadReplay": head.replay(),
        "Diagnosis": attn_tui.diagnose(wrong),
        "Differences": attn_tui.compare(FILES["right"], FILES["twice"]),
        "Check": attn_tui.check(wrong),
    }


def test_every_result_shows_itself_in_a_notebook_and_styles_nothing_else(tmp_path: Path) -> None:
    for name, result in results().items():
        part = result._repr_html_()  # pyright: ignore[reportPrivateUsage]
        page = Page(part)
        assert page.elements[0] == ("div", {"class": "attn-tui"}), name
        assert page.text.strip(), name
        [style] = re.findall("<style>(.*?)</style>", part, re.DOTALL)
        selectors = [each for rule in re.sub(r"@media\([^)]*\)\{", "", style).split("}") for each in _selectors(rule)]
        assert selectors
        assert all(each.startswith(".attn-tui") for each in selectors), name
    arrays = attn_tui.diagnose(*np.random.default_rng(0).normal(size=(2, 1, 2, 8, 4)))
    assert "not judged" in Page(arrays._repr_html_()).text.lower()  # pyright: ignore[reportPrivateUsage]
    shown = attn_tui.diagnose(attn_tui.open(WRONG))._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert shown in page_of(["diagnose", WRONG], tmp_path), "the page that the command writes"


def test_rows_of_every_result_have_their_columns_and_types() -> None:
    given = results()
    for name, result in given.items():
        types = result.table().columns
        for row in result.rows():
            assert row.keys() == types.keys(), name
            for column, value in row.items():
                accepted = (float, int) if types[column] is float else types[column]
                assert value is None or isinstance(value, accepted), (name, column)
        assert result.rows(), name
    told = [pair for column in given["Exact"].to_dict()["columns"] for pair in column["theory"].items()]
    assert [(row["statistic"], row["theory"]) for row in given["Exact"].rows()] == told


def _selectors(rule: str) -> list[str]:
    """Return the selectors of a rule; commas in parentheses do not separate them."""
    selectors, brace, _ = rule.strip().partition("{")
    return re.split(r",(?![^(]*\))", selectors) if brace else []


LOOKING = """<!doctype html><meta charset=utf-8><p id=before>text</p>
<table id=table><tr><td id=cell>1</td></tr></table>
<iframe src="page.html" width=900 height=900></iframe>%s
<script>
const style = (of, name) => getComputedStyle(of)[name];
onload = () => {
  const page = document.querySelector("iframe").contentDocument;
  const root = page.querySelector(".attn-tui"), images = [...page.images];
  document.title = JSON.stringify({
    paper: style(root, "backgroundColor"), ink: style(root, "color"),
    images: images.length, drawn: images.filter(each => each.naturalWidth > 1).length,
    titles: page.querySelectorAll("td[title]").length,
    marks: page.querySelectorAll("td.wrong").length,
    markColour: style(page.querySelector("td.wrong"), "backgroundColor"),
    wide: page.documentElement.scrollWidth, loaded: page.defaultView.performance.getEntriesByType("resource")
      .filter(each => !each.name.startsWith("data:")).length,
    outside: [style(before, "color"), style(before, "margin"), style(cell, "padding"), style(table, "fontSize")],
  });
};
</script>"""


@pytest.mark.slow
def test_a_browser_shows_it_in_light_and_dark_and_nothing_leaks(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("needs Chromium")
    page_of(["diagnose", WRONG], tmp_path)
    part = attn_tui.diagnose(WRONG)._repr_html_()  # pyright: ignore[reportPrivateUsage]
    seen: dict[tuple[bool, bool], Any] = {}
    for dark, inside in ((False, False), (False, True), (True, True)):
        look = tmp_path / "look.html"
        look.write_text(LOOKING % (part if inside else ""), "utf-8")
        scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom"]
        command = [browser, *options, *scheme, f"--user-data-dir={tmp_path / 'profile'}", look.as_uri()]
        dom = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
        [title] = re.findall("<title>(.*?)</title>", dom)
        seen[dark, inside] = json.loads(title)
    light, dark_one = seen[False, True], seen[True, True]
    assert light["images"] == light["drawn"] > 4
    assert (light["titles"], light["marks"], light["loaded"]) == (24, 10, 0)
    assert light["wide"] <= 900
    assert light["outside"] == seen[False, False]["outside"], "an element outside looks as before"
    assert light["paper"] == "rgb(255, 255, 255)"
    for name in ("paper", "ink", "markColour"):
        assert light[name] != dark_one[name]
