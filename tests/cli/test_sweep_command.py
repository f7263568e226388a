"""attn-tui sweep."""

import csv
import io
import json
import shlex
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree
from zlib import crc32

import pytest
from attn_tui.core.files import MARK
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import Target
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.sweep import SweepQuestion
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.theory.predict import predict
from attn_tui.core.work import sweeps
from attn_tui.tui.cli.main import main
from cli_runner import Captured, assert_refused, printed, refusal, request_of

SMALL = ("sweep", "--n-keys", "16", "--n-queries", "4", "--batch", "4")
NESTED = [statistic.name for statistic in STATISTICS if not statistic.optional]


def as_json(words: list[str], capsys: Captured) -> Any:
    return json.loads(printed([*SMALL, *words, "--format", "json"], capsys))


def test_the_json_has_every_point_with_its_theory(capsys: Captured) -> None:
    found = as_json(["--d-k", "64,3", "--seed", "5"], capsys)
    assert (found["schema"], found["complete"], found["d_k"]) == ("attn-tui/sweep-2", True, [3, 64])
    assert (found["parameters"]["seed"], "d_k" in found["parameters"]) == (5, False)
    assert [point["d_k"] for point in found["points"]] == [3, 64]
    p = Parameters(d_k=64, n_keys=16, n_queries=4, batch=4, seed=5)
    point = found["points"][1]
    assert (point["draws"], point["reached"]) == (4, None)
    columns = zip(point["columns"], run(p, full=False).columns, predict(p).columns, strict=True)
    for column, measured, exact in columns:
        assert column["scale"] == {
            "rule": measured.rule,
            "formula": SCALE_RULES[measured.rule].formula,
            "multiplier": measured.multiplier,
        }
        assert list(column["measured"]) == list(column["theory"]) == NESTED
        assert column["measured"]["entropy"]["value"] == pytest.approx(measured.measured["entropy"].value, rel=1e-4)
        assert column["theory"]["entropy"] == exact.values["entropy"]


def test_without_options_d_k_is_swept_on_a_logarithmic_axis() -> None:
    request = request_of("sweep", "--stderr", "0.5")
    assert request.question == SweepQuestion(Parameters(), "1:4096:log24", stderr=0.5)
    assert (request.question.d_ks[0], request.question.d_ks[-1]) == (1, 4096)


def test_csv_has_the_columns_of_a_report_and_a_line_for_each_value(capsys: Captured) -> None:
    rows = list(csv.DictReader(io.StringIO(printed([*SMALL, "--d-k", "2,8", "--format", "csv"], capsys))))
    assert len(rows) == 2 * 2 * len(NESTED)
    assert {row["d_k"] for row in rows} == {"2", "8"}
    report = printed(["report", "--d-k", "8", *SMALL[1:], "--format", "csv"], capsys).splitlines()[0]
    assert list(rows[0]) == [*report.split(","), "reached"]


def test_stderr_draws_until_it_is_reached_or_there_are_most_draws(capsys: Captured) -> None:
    found = as_json(["--d-k", "2,64", "--stderr", "0.01", "--of", "max_weight"], capsys)
    assert found["target"] == {"statistic": "max_weight", "stderr": 0.01, "most_draws": Target(0.01).most_draws}
    for point in found["points"]:
        assert point["reached"]
        assert point["draws"] % 4 == 0
        assert all(column["measured"]["max_weight"]["stderr"] <= 0.01 for column in point["columns"])
    [point] = as_json(["--d-k", "2", "--stderr", "1e-9", "--most-draws", "8"], capsys)["points"]
    assert (point["draws"], point["reached"]) == (8, False)
    table = printed([*SMALL, "--d-k", "2", "--stderr", "1e-9", "--most-draws", "8"], capsys)
    assert "8 *" in table
    assert "1 of 1 points" in table


def test_gradients_and_number_formats_are_measured_on_request(capsys: Captured) -> None:
    found = as_json(["--d-k", "8", "--statistics", "grad_q_median,weight_error"], capsys)
    for column in found["points"][0]["columns"]:
        assert list(column["measured"]) == ["grad_q_median", "weight_error"]
        assert all(estimate["value"] is not None for estimate in column["measured"].values())
    assert "weight error" in printed([*SMALL, "--d-k", "8", "--vary", "precision=float16"], capsys)


@pytest.mark.parametrize("width", ["60", "80", "160"])
def test_the_table_fits_the_screen(width: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    table = printed([*SMALL, "--d-k", "16,256", "--statistics", "all"], capsys).rsplit("attn-tui", 1)[0]
    assert all(len(line) <= int(width) for line in table.splitlines())
    for statistic in STATISTICS:
        assert statistic.short_label in table
    assert printed([*SMALL, "--d-k", "16,256", "--ascii"], capsys).isascii()


def test_options_without_effect_are_noted(capsys: Captured) -> None:
    assert main([*SMALL, "--d-k", "2", "--of", "entropy", "--vary", "n-keys=3"]) == 0
    err = capsys.readouterr().err
    assert "--n-keys has no effect" in err
    assert "--of has no effect" in err


def test_ctrl_c_keeps_the_points_that_are_done(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> Iterator[Any]:
        for number, step in enumerate(nested(*arguments)):
            yield step
            if number == 2:
                raise KeyboardInterrupt

    nested = sweeps.measure_nested
    monkeypatch.setattr(sweeps, "measure_nested", interrupted)
    file = tmp_path / "sweep.json"
    words = [*SMALL, "--d-k", "1:9", "--executor", "serial"]
    assert main([*words, "--format", "json", "-o", str(file)]) == 130
    found = json.loads(file.read_text())
    assert (found["complete"], [point["d_k"] for point in found["points"]]) == (False, [1, 2, 3])
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"attn-tui: interrupted: kept 3 of 9 points in {file}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.json"]
    assert main(words) == 130
    assert "3 of 9 points" in capsys.readouterr().out


def test_a_grid_of_keys_is_swept_at_one_d_k(capsys: Captured) -> None:
    words = ["sweep", "--n-keys", "4:16:log3", "--n-queries", "4", "--batch", "2", "--format", "json"]
    found = json.loads(printed(words, capsys))
    assert [(point["n_keys"], point["d_k"]) for point in found["points"]] == [(4, 64), (8, 64), (16, 64)]
    assert found["command"].startswith("attn-tui sweep --d-k 64 --n-keys 4:16:log3 ")
    assert json.loads(printed(shlex.split(found["command"])[1:], capsys)) == found
    for point in found["points"]:
        report = ["report", "--n-keys", str(point["n_keys"]), *words[3:]]
        for swept, alone in zip(point["columns"], json.loads(printed(report, capsys))["columns"], strict=True):
            for name, estimate in swept["measured"].items():
                value = alone["measured"][name]["value"]
                assert estimate["value"] == (value and pytest.approx(value, rel=1e-5, abs=1e-6)), name
            assert swept["theory"] == {name: alone["theory"][name] for name in swept["theory"]}


def test_a_grid_of_keys_excludes_a_second_axis_of_keys(capsys: Captured) -> None:
    line = refusal(["sweep", "--n-keys", "4,8", "--vary", "n-keys=2,3"], capsys)
    assert line == "--vary n-keys: --n-keys 4,8 sweeps the number of keys already; leave out one of them"
    assert "must be from 1 to 1048576" in refusal(["sweep", "--n-keys", "4,2M"], capsys)


def test_a_figure_has_a_point_for_each_value_its_axes_and_the_command(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "figure.svg"
    words = ["sweep", "--d-k", "4,16,64", "--n-keys", "16", "--batch", "2", "--statistics", "entropy"]
    assert main([*words, "-o", str(path)]) == 0
    figure = ElementTree.parse(path)
    circles = figure.findall(".//{*}circle")
    texts = [element.text for element in figure.findall(".//{*}text")]
    assert len(circles) == 2 * 3 + 2  # with those of the legend
    at = {element.text: float(element.attrib["x"]) for element in figure.findall(".//{*}text")}
    assert at["d_k"] == at["16"] == (at["4"] + at["64"]) / 2, "under a logarithmic axis"
    assert {"d_k", "4", "16", "64", "entropy (nats)", "unscaled", "scaled"} <= {*texts}
    assert any(str(text).startswith("attn-tui sweep --d-k 4,16,64") for text in texts)
    assert main([*words, "--vary", "scale=sqrt_d_k,d_k", "-o", str(path)]) == 0
    assert len(ElementTree.parse(path).findall(".//{*}circle")) == 3 * 3 + 3  # unscaled is one curve
    assert_refused([*words, "--n-keys", "16,32", "-o", str(path)], "a figure has one axis", capsys)
    assert_refused([*words, "--format", "csv", "-o", str(path)], "leave out --format csv", capsys)
    assert_refused(["report", "-o", str(path)], "only attn-tui sweep draws figures", capsys)


def test_a_figure_is_converted_where_cairo_is_installed(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["sweep", "--d-k", "4,16", "--n-keys", "16", "--batch", "2", "-o"]
    with suppress(ImportError, OSError):  # a machine may lack Cairo
        import_module("cairosvg")
        for ending, start in ((".pdf", b"%PDF"), (".png", b"\x89PNG"), (".eps", b"%!PS")):
            file = tmp_path / f"figure{ending}"
            assert main([*words, str(file)]) == 0
            assert file.read_bytes().startswith(start)
    other = tmp_path / "other.pdf"
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    assert_refused([*words, str(other)], "attn-tui[figure]", capsys)
    assert not other.exists()
    chunks = [struct.pack(f">I4s{len(data)}sI", len(data), name, data, crc32(name + data))
              for name, data in ((b"IHDR", bytes(13)), (b"IEND", b""))]  # fmt: skip
    start = b"\x89PNG\r\n\x1a\n"
    made = {"svg2pdf": b"%PDF", "svg2png": start + b"".join(chunks)}

    def converting(name: str) -> Callable[[str], bytes]:
        return lambda figure: made[name]

    fake = SimpleNamespace(**{name: converting(name) for name in made})
    monkeypatch.setitem(sys.modules, "cairosvg", fake)
    assert main([*words, str(other)]) == 0
    assert other.read_bytes() == made["svg2pdf"] + f"%{MARK}.\n".encode()
    assert main([*words, str(other.with_suffix(".png"))]) == 0
    image = other.with_suffix(".png").read_bytes()
    note = image[len(start + chunks[0]) : -len(chunks[1])]
    assert image == start + chunks[0] + note + chunks[1]
    size, kind, data, check = struct.unpack(f">I4s{len(note) - 12}sI", note)
    assert (size, kind, check) == (len(data), b"tEXt", crc32(kind + data))
    assert data == b"Software\0" + MARK.encode()
