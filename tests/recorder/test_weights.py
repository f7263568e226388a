"""What becomes of weights after softmax: how they meet the values, and what changes them before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch
from replay import load
from written import B, D, H, assert_explained, recorded, vectors

F: Any = torch.nn.functional
T = 12


def softmax(q: Any, k: Any, dim: int = -1) -> Any:
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25, dim)


def heads_first(q: Any, k: Any, v: Any) -> Any:
    p = softmax(q, k).transpose(0, 1).reshape(-1, T, T)
    return torch.bmm(p, v.transpose(0, 1).reshape(-1, T, D)).view(H, B, T, D).transpose(0, 1)


def chunks_of_queries(q: Any, k: Any, v: Any) -> Any:
    return torch.cat([part @ v for part in softmax(q, k).split(5, 2)], 2)


def copied_chunks_of_queries(q: Any, k: Any, v: Any) -> Any:
    return torch.cat([part.contiguous() @ v for part in softmax(q, k).split(5, 2)], 2)


def chunks_of_keys(q: Any, k: Any, v: Any) -> Any:
    return sum(p @ part for p, part in zip(softmax(q, k).split(5, 3), v.split(5, 2), strict=True))


def head_by_head(q: Any, k: Any, v: Any) -> Any:
    p = softmax(q, k)
    return torch.stack([p[:, head] @ v[:, head] for head in range(H)], 1)


def element_by_element(q: Any, k: Any, v: Any) -> Any:
    return (softmax(q, k)[..., None] * v[:, :, None]).sum(3)


def repeated(q: Any, k: Any, v: Any) -> Any:
    return (softmax(q, k).repeat_interleave(2, 1) @ v.repeat_interleave(2, 1))[:, ::2]


def flipped(q: Any, k: Any, v: Any) -> Any:
    return softmax(q, k).flip(-1) @ v.flip(2)


def padded(q: Any, k: Any, v: Any) -> Any:
    return F.pad(softmax(q, k), (0, 4)) @ F.pad(v, (0, 0, 0, 4))


def joined_again(q: Any, k: Any, v: Any) -> Any:
    return torch.cat(softmax(q, k).split(5, 3), 3) @ v


def filled_where_it_is_zero(q: Any, k: Any, v: Any) -> Any:
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(-1, -2) * 0.25).masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, -1).masked_fill(hidden, 0.0) @ v


WAYS = [
    heads_first, chunks_of_queries, copied_chunks_of_queries, chunks_of_keys, head_by_head, element_by_element,
    repeated, flipped, padded, joined_again, filled_where_it_is_zero,
]  # fmt: skip


def only(path: Path) -> set[tuple[str, str | None]]:
    """Return the verdicts and causes of a recording's heads."""
    found = attn_tui.diagnose(path / "a.safetensors", expect="1/sqrt(d)")
    return {(each.word, each.cause) for each in (head.verdict for head in found.heads)}


@pytest.mark.parametrize("way", WAYS)
def test_however_weights_meet_the_values_both_are_recorded(way: Callable[..., Any], tmp_path: Path) -> None:
    q, k, v = vectors(n=T, m=T)
    o, layer, held, _ = recorded(tmp_path, way, q, k, v)
    assert torch.equal(held["layers.0.attn.v"], v)
    assert torch.equal(held["layers.0.attn.o"], o)
    assert_explained(layer, held)
    assert not {"softmax_axis", "weights_changed", "weights_followed"} & set(layer)
    assert only(tmp_path) == {("healthy", None)}


@pytest.mark.parametrize("queries", [1, T])
def test_einsum_of_a_single_key_has_no_sum(queries: int, tmp_path: Path) -> None:
    def way(q: Any, k: Any, v: Any) -> Any:
        p = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.25, -1)
        return torch.einsum("bhqk,bhkd->bhqd", p, v)

    q, k, v = vectors(n=queries, m=1)
    o, layer, held, _ = recorded(tmp_path, way, q, k, v)
    assert torch.equal(held["layers.0.attn.v"], v)
    assert torch.equal(held["layers.0.attn.o"], o)
    assert_explained(layer, held)
    assert "weights_followed" not in layer


@pytest.mark.parametrize("rows", [1, 5])
def test_only_the_rows_asked_for_are_kept_of_chunks(rows: int, tmp_path: Path) -> None:
    q, k, v = vectors(n=T, m=T)
    o, _, held, _ = recorded(tmp_path, heads_first, q, k, v, rows=rows, batch=1)
    kept = held["layers.0.attn.rows"]
    assert torch.equal(held["layers.0.attn.o"], o[:1, :, kept])
    assert torch.equal(held["layers.0.attn.v"], v[:1])


def thresholded(p: Any) -> Any:
    return torch.relu(p - 0.02)


def sharpened(p: Any) -> Any:
    return p.square() / p.square().sum(-1, keepdim=True)


def top(p: Any) -> Any:
    return torch.where(p >= p.topk(4, -1).values[..., -1:], p, 0.0)


def cut_in_place(p: Any) -> Any:
    p[p < 0.05] = 0.0
    return p


CHANGES = [(thresholded, "relu"), (sharpened, "div"), (top, "where"), (cut_in_place, "values written")]


@pytest.mark.parametrize(("change", "name"), CHANGES)
def test_weights_that_are_changed_are_not_judged(change: Any, name: str, tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return change(softmax(q, k)) @ v

    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert any(name in each for each in layer["weights_changed"])
    assert "layers.0.attn.o" not in held
    heads = [each.verdict for each in attn_tui.diagnose(tmp_path / "a.safetensors", expect="1/sqrt(d)").heads]
    assert {each.word for each in heads} == {"undecided"}
    assert all(name in each.says and "× 0.25, as expected" in each.says for each in heads)
    assert attn_tui.check(tmp_path / "a.safetensors", expect="1/sqrt(d)").ok
    assert not attn_tui.check(tmp_path / "a.safetensors", expect="1/sqrt(d)", strict=True).ok


def test_weights_whose_way_is_not_followed_are_not_judged(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        weights, places = softmax(q, k).topk(4, -1)
        chosen = torch.gather(v[:, :, None].expand(-1, -1, T, -1, -1), 3, places[..., None].expand(-1, -1, -1, -1, D))
        return (weights[..., None, :] @ chosen)[..., 0, :]

    _, layer, _, _ = recorded(tmp_path, function, *vectors(n=T, m=T))
    assert (layer["weights_changed"], layer["weights_followed"]) == (["topk"], False)
    assert only(tmp_path) == {("undecided", None)}


def test_weights_that_meet_no_values_are_not_followed(tmp_path: Path) -> None:
    _, layer, _, _ = recorded(tmp_path, softmax, *vectors()[:2])
    assert layer["weights_followed"] is False
    assert only(tmp_path) == {("undecided", None)}


def test_dropout_is_a_field_and_the_scores_are_judged(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        torch.manual_seed(0)
        return F.dropout(softmax(q, k), 0.1) @ v

    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert layer["weights_dropout"] == 0.1
    assert "layers.0.attn.o" not in held
    assert only(tmp_path) == {("healthy", None)}


def test_exponentials_of_moved_heads_that_nothing_divides_are_not_judged(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        p = torch.exp(q @ k.transpose(-1, -2) * 0.25).transpose(0, 1).reshape(-1, T, T)
        return torch.bmm(p, v.transpose(0, 1).reshape(-1, T, D))

    _, layer, held, _ = recorded(tmp_path, function, *vectors(n=T, m=T))
    assert layer["weights_followed"] is False
    assert "layers.0.attn.o" not in held


def test_a_change_of_one_chunk_is_a_change(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        one, other = softmax(q, k).split(6, 2)
        return torch.cat([one @ v, torch.relu(other - 0.02) @ v], 2)

    _, layer, held, _ = recorded(tmp_path, function, *vectors(n=T, m=T))
    assert layer["weights_changed"] == ["sub", "relu"]
    assert "layers.0.attn.o" not in held


def test_keys_that_are_met_twice_are_not_followed(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return softmax(q, k).repeat(1, 1, 1, 2) @ v.repeat(1, 1, 2, 1)

    _, layer, _, _ = recorded(tmp_path, function, *vectors())
    assert layer["weights_followed"] is False


def over_queries(q: Any, k: Any, v: Any) -> Any:
    return softmax(q, k, -2) @ v


def over_queries_of_a_product_of_keys(q: Any, k: Any, v: Any) -> Any:
    """Scores as [keys, queries], and softmax over their columns."""
    return softmax(k, q).transpose(-1, -2) @ v


@pytest.mark.parametrize("way", [over_queries, over_queries_of_a_product_of_keys])
def test_softmax_over_the_queries_is_a_field(way: Callable[..., Any], tmp_path: Path) -> None:
    q, k, v = vectors(n=T, m=T)
    _, layer, held, _ = recorded(tmp_path, way, q, k, v)
    assert layer["softmax_axis"] == "queries"
    assert torch.equal(held["layers.0.attn.q"], q)
    assert torch.equal(held["layers.0.attn.k"], k)
    assert "layers.0.attn.lse" not in held


def test_outputs_prove_that_softmax_of_one_text_ran_over_its_queries(tmp_path: Path) -> None:
    recorded(tmp_path, over_queries, *vectors(n=T, m=T))
    assert only(tmp_path) == {("cause", "softmax-axis")}


def test_slots_whose_softmax_runs_over_the_queries_are_undecided(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        p = softmax(q, k, -2)
        return (p / p.sum(-1, keepdim=True)) @ v

    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert layer["softmax_axis"] == "queries"
    assert "layers.0.attn.o" not in held
    assert only(tmp_path) == {("undecided", None)}


def test_layers_are_in_the_order_of_their_softmax(tmp_path: Path) -> None:
    """Also those of which nothing tells until the end how their weights meet the values."""

    def through(p: Any) -> Any:
        return torch.fft.irfft(torch.fft.rfft(p), n=p.shape[-1])

    class Blocks(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([Weighing(through), Weighing(None)])

        def forward(self, q: Any, k: Any) -> Any:
            return [layer(q, k) for layer in self.layers]

    class Weighing(torch.nn.Module):
        def __init__(self, change: Any) -> None:
            super().__init__()
            self.change = change

        def forward(self, q: Any, k: Any) -> Any:
            p = softmax(q, k)
            return (p if self.change is None else self.change(p)) @ k

    q, k, _ = vectors()
    model = Blocks()
    with torch.no_grad(), attn_tui.record(model, tmp_path / "a.safetensors"):
        model(q, k)
    layers = load(tmp_path / "a.safetensors")[1]["layers"]
    assert [layer["name"] for layer in layers] == ["layers.0", "layers.1"]
    assert layers[0]["weights_followed"] is False
