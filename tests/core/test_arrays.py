"""Arrays are diagnosed without a file, and say all that a file can."""

from __future__ import annotations

import json
import re
from typing import Any

import attn_tui
import ml_dtypes
import numpy as np
import pytest
from cases import for_each

HEADS, TOKENS, WIDTH = 4, 24, 16
CAUSAL = np.tri(TOKENS, dtype=np.bool_)
rng = np.random.default_rng(0)


def attended(visible: Any = None, scale: float = 0.25) -> Any:
    """Return q, k, v and what attention makes of them, all in float32."""
    q, k, v = rng.normal(size=(3, 2, HEADS, TOKENS, WIDTH)).astype(np.float32)
    z = scale * (q @ k.mT).astype(np.float64)
    z = z if visible is None else np.where(visible, z, -np.inf)
    lse = np.log(np.exp(z).sum(-1))
    weights = np.exp(z - lse[..., np.newaxis])
    found: dict[str, Any] = {"q": q, "k": k, "v": v, "o": weights @ v, "lse": lse, "weights": weights}
    return {name: array.astype(np.float32) for name, array in found.items()}


def of(arrays: Any, names: str = "q k v o") -> Any:
    return {name: arrays[name] for name in names.split()}


def words(found: attn_tui.Diagnosis) -> set[str]:
    return {each.verdict.cause or each.verdict.word for each in found}


@for_each("evidence", ["q k v o", "q k lse", "q k weights", "q k v o lse weights"])
def test_arrays_with_any_evidence_tell_the_scale(evidence: str) -> None:
    arrays = of(attended(), evidence)
    assert words(attn_tui.diagnose(**arrays, expect="1/sqrt(d)")) == {"healthy"}
    assert words(attn_tui.diagnose(arrays, expect=np.float32(0.25))) == {"healthy"}
    assert words(attn_tui.diagnose(**arrays, expect="1/d")) == {"scale-fixed"}


def test_what_arrays_say_of_themselves_is_used() -> None:
    arrays, causal = of(attended()), of(attended(CAUSAL))
    said: Any
    for said in ({"causal": True}, {"mask": CAUSAL}, {"mask": np.where(CAUSAL, 0, -np.inf).astype(np.float32)}):
        assert words(attn_tui.diagnose(**causal, **said)) == {"healthy"}
        assert "healthy" not in words(attn_tui.diagnose(**arrays, **said))
    assert words(attn_tui.diagnose(**arrays, scale=0.5)) == {"scale-fixed"}
    assert words(attn_tui.diagnose(**causal, causal=False)) == {"causal-extra"}
    with pytest.raises(attn_tui.InputError, match=r"caussal: unknown name \(did you mean causal\?\)"):
        attn_tui.diagnose(**arrays, caussal=True)


def test_causal_attention_that_nobody_said_is_noted() -> None:
    found = attn_tui.diagnose(**of(attended(CAUSAL)))
    assert words(found) == {"healthy"}
    assert "taken as causal" in found.notes[0]
    assert found.notes[0] in repr(found)
    assert found.to_dict()["file"]["notes"] == list(found.notes)
    arrays = of(attended(CAUSAL))
    last = arrays | {name: arrays[name][:, :, -5:] for name in "qo"}  # beside a cache
    found = attn_tui.diagnose(**last)
    assert words(found) == {"healthy"}
    assert "taken as causal" in found.notes[0]


@for_each("evidence", ["q k v o", "q k lse"])
@for_each("visible", [None, CAUSAL])
def test_exchanged_axes_are_asked_about(visible: Any, evidence: str) -> None:
    arrays = of(attended(visible), evidence)
    exchanged: Any = {name: a if name == "lse" else a.swapaxes(1, 2) for name, a in arrays.items()}
    with pytest.raises(attn_tui.InputError, match=re.escape("give axes='batch,token,head,d_k'")):
        attn_tui.diagnose(**exchanged)
    for axes in ("batch,token,head,d_k", "b, t, h, d"):
        assert words(attn_tui.diagnose(**exchanged, axes=axes)) == {"healthy"}


def test_arrays_without_a_batch_or_a_head_need_no_axes() -> None:
    arrays = of(attended())
    for place in (0, (0, 0)):
        fewer: Any = {name: array[place] for name, array in arrays.items()}
        assert words(attn_tui.diagnose(**fewer)) == {"healthy"}


@for_each("causal", [None, True])
def test_arrays_that_nothing_explains_are_not_asked_about(causal: bool | None) -> None:
    arrays: Any = {name: array[:1, :2] for name, array in of(attended()).items()}
    noise: Any = rng.normal(size=(1, 2, TOKENS, WIDTH)).astype(np.float32)
    found = attn_tui.diagnose(**(arrays | {"o": noise}), causal=causal)
    assert words(found) <= {"unexplained", "undecided"}


class Tensor:
    """A tensor as PyTorch has it, which NumPy cannot read while it needs gradients."""

    def __init__(self, array: Any, requires_grad: bool = False) -> None:
        self.array, self.requires_grad = array, requires_grad
        self.ndim, self.shape, self.dtype = array.ndim, array.shape, array.dtype

    def detach(self) -> Tensor:
        return Tensor(self.array)

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        assert not self.requires_grad
        return self.array


def test_tensors_that_need_gradients_and_short_formats_are_read() -> None:
    arrays: dict[str, Any] = of(attended())
    tensors: Any = {name: Tensor(array, True) for name, array in arrays.items()}
    assert words(attn_tui.diagnose(**tensors)) == {"healthy"}
    bfloat16: Any = ml_dtypes.bfloat16
    short: Any = {name: array.astype(bfloat16) for name, array in arrays.items()}
    assert words(attn_tui.diagnose(**short)) == {"healthy"}


def test_messages_name_arrays_and_no_file() -> None:
    arrays = of(attended())
    for wrong, says in (
        ({"k": arrays["k"][..., :8]}, "arrays: tensor 'q' of shape [2, 4, 24, 16] and 'k' of [2, 4, 24, 8]"),
        ({"q": np.full_like(arrays["q"], np.nan)}, "arrays: tensor 'layers.0.attn.q'"),
        ({"k": None}, "must be given q and k"),
    ):
        try:
            found = repr(attn_tui.diagnose(**(arrays | wrong)))  # a head whose numbers are not finite has a verdict
        except attn_tui.InputError as error:
            found = str(error)
            assert says in found
        assert "tmp" not in found
        assert ".npz" not in found


def test_what_is_no_capture_is_refused() -> None:
    arrays = of(attended())
    wrong: tuple[Any, ...] = (arrays["q"], [], [arrays["q"]])
    for each in wrong:
        with pytest.raises(attn_tui.InputError, match=r"or calls of attn_tui\.call, not (ndarray|list)"):
            attn_tui.check(each)
        with pytest.raises(attn_tui.InputError, match=r"or calls of attn_tui\.call, not (ndarray|list)"):
            attn_tui.compare(each, each)
    for axes in ("batch,head,token", "batch,head,token,token", "batch,token,head*d_k", "batch,head,token,width"):
        with pytest.raises(attn_tui.InputError, match="axes"):
            attn_tui.diagnose(**arrays, axes=axes)


def test_calls_are_opened_checked_and_compared_without_a_file() -> None:
    arrays = of(attended())
    one = attn_tui.call(**arrays, scale=0.25)
    other = attn_tui.call(**(arrays | {"o": 2 * arrays["o"]}), scale=0.25)
    assert attn_tui.open(one)[0, 1].diagnose().verdict.multiplier == pytest.approx(0.25, rel=1e-3)
    assert attn_tui.check([one], expect="1/sqrt(d)").ok
    assert attn_tui.compare(one, one).same
    differences = attn_tui.compare(one, other)
    assert not differences.same
    assert json.dumps(differences.to_dict())
    assert {head.first.name for head in differences.comparison.heads if head.first} == {"o"}


def test_what_has_no_numbers_is_refused_in_a_line() -> None:
    class Traced:
        def detach(self) -> Any:
            raise NotImplementedError("no data")

    q = np.ones((1, 1, 4, 8), np.float32)
    with pytest.raises(attn_tui.InputError, match="Traced cannot be read as an array: no data"):
        attn_tui.diagnose(Traced(), q)
