"""Programs of JAX, Flax and Keras are recorded layer by layer, by name, and what is missed is said.

They need `make test-jax`.
"""

# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

jax: Any = pytest.importorskip("jax", reason="needs make test-jax")
X = np.random.default_rng(0).standard_normal((2, 12, 4, 16), np.float32)
FLAT = X.reshape(2, 12, 64)


def attend(q: Any, **named: Any) -> Any:
    return jax.nn.dot_product_attention(q, q, q, **named)


def scanned(q: Any, length: int = 8) -> Any:
    """Eight layers, whose logits do not grow."""
    return jax.lax.scan(lambda each, _: (attend(each, is_causal=True), None), q, None, length=length)[0]


def looped(q: Any) -> Any:
    for _ in range(4):
        q = attend(q)
    return q


def scoped(q: Any) -> Any:
    for at in range(2):
        with jax.named_scope(f"layer_{at}"), jax.named_scope("attn"):
            q = attend(q)
    return q


def remapped(q: Any) -> Any:
    return jax.lax.scan(lambda each, _: (jax.checkpoint(scanned)(each), None), q, None, length=2)[0]


def steps(function: Callable[[Any], Any], *given: Any) -> list[Any]:
    """Call a compiled function once for each argument."""
    compiled = jax.jit(function)
    return [compiled(each) for each in given]


def checkpointed(function: Any) -> Any:
    return jax.jit(jax.grad(lambda q: function(function(function(function(q)))).sum()))(X)


SCAN, LOOP = [f"call 0[{at}]" for at in range(8)], [f"call {at}" for at in range(4)]
TWICE = [f"call 0[{at}]" for at in range(16)]
SCOPES = ["layer_0.attn", "layer_1.attn"]
# A program, the names of its layers, and how many calls at the same places are not stored.
PROGRAMS: dict[str, tuple[Callable[[], object], list[str], int]] = {
    "scan": (lambda: steps(scanned, X), SCAN, 0),
    "scan without jit": (lambda: scanned(X), SCAN, 0),
    "scan of steps and a smaller batch": (lambda: steps(scanned, X, X, X[:1]), SCAN, 16),
    "gradient of a scan": (lambda: jax.jit(jax.grad(lambda q: scanned(q).sum()))(X), SCAN, 0),
    "scan of scans": (lambda: steps(remapped, X), TWICE, 0),
    "gradient of a scan of checkpoints": (lambda: jax.jit(jax.grad(lambda q: remapped(q).sum()))(X), TWICE, 16),
    "checkpoint of each layer": (lambda: checkpointed(lambda q: jax.checkpoint(lambda x: attend(x))(q)), LOOP, 4),
    "mapped scan": (lambda: jax.jit(jax.vmap(scanned))(np.stack([X, X, X])), SCAN, 0),
    "loop traced again": (lambda: steps(looped, X, X, X[:1]), LOOP, 8),
    "two functions": (lambda: (steps(scoped, X), steps(lambda q: scoped(q) + 1, X)), SCOPES, 2),
    "without jit": (lambda: scoped(X), SCOPES, 0),
    "abstract first": (lambda: (jax.eval_shape(scoped, X), steps(scoped, X)), SCOPES, 0),
}


def recorded(path: Path, program: Callable[[], object], **named: Any) -> tuple[Any, list[str]]:
    """Return the recording of a program, and the names of its layers."""
    with attn_tui.record_jax(path, **named) as recording:
        jax.block_until_ready(program())
    return recording, [each.name for each in attn_tui.open(path).layers]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_layer_is_recorded_once(name: str, tmp_path: Path) -> None:
    program, names, again = PROGRAMS[name]
    recording, found = recorded(tmp_path / "a.safetensors", program)
    assert found == names
    assert recording.complete
    assert f"{len(names)} attention calls seen, {len(names)} recorded" in recording.summary
    assert re.findall(r"not stored: (\d+)", recording.summary) == [str(again)] * bool(again)
    assert attn_tui.diagnose(tmp_path / "a.safetensors", expect="1/sqrt(d)").healthy


@pytest.mark.parametrize("mapped", [False, True])
def test_iterations_are_in_their_order(mapped: bool, tmp_path: Path) -> None:
    """Of those that are mapped, one element is recorded, which may be any."""
    path = tmp_path / "a.safetensors"
    own = [np.stack([X, 2 * X] if mapped else [X])]
    for _ in range(7):
        own.append(np.stack([attend(each, is_causal=True) for each in own[-1]]))
    recording, _ = recorded(path, lambda: jax.jit(jax.vmap(scanned))(own[0]) if mapped else jax.jit(scanned)(X))
    found = load_file(path)
    for at, expected in enumerate(own):
        q = found[f"layers.{at}.attn.q"].transpose(0, 2, 1, 3)
        assert any(np.allclose(q, each, rtol=1e-4, atol=1e-5) for each in expected), at
    assert ("inside jax.vmap, one element of each call is recorded" in recording.summary) is mapped


def test_a_function_that_was_imported_by_its_name_or_compiled_before_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = jax.nn.dot_product_attention
    monkeypatch.setitem(globals(), "imported", original)
    compiled = jax.jit(lambda q: globals()["imported"](q, q, q))
    expected = compiled(X)
    _, names = recorded(tmp_path / "a.safetensors", lambda: compiled(X))
    assert names == ["call 0"]
    assert globals()["imported"] is original
    np.testing.assert_array_equal(compiled(X), expected)


SHARED = r"3 calls of a compiled function inside another: with jax\.disable_jit\(\)"
MISSED: dict[str, tuple[Callable[[], object], dict[str, Any], str, int]] = {
    "loop": (lambda: [attend(X) for _ in range(20)], {"max_calls": 16}, "4 calls of .*: there are more than 16", 16),
    "while": (
        lambda: jax.lax.while_loop(lambda at: at[0] < 5, lambda at: (at[0] + 1, attend(at[1])), (0, X)),
        {},
        "4 calls of .*: in a while loop, after its first iteration",
        1,
    ),
    "shared": (lambda: (lambda f: jax.jit(lambda q: f(f(f(f(q)))))(X))(jax.jit(attend)), {}, SHARED, 1),
    "checkpoint": (
        lambda: checkpointed(jax.checkpoint(attend)),
        {},
        r"3 calls of a function under jax\.checkpoint",
        1,
    ),
    "own": (lambda: (attend(X), own_attention(X)), {}, r"1 call of jax\.nn\.softmax in \S+\.own_attention: if", 1),
}


def own_attention(q: Any) -> Any:
    p = jax.nn.softmax(jax.numpy.einsum("bqhd,bkhd->bhqk", q, q) / 4)
    return jax.numpy.einsum("bhqk,bkhd->bqhd", p, q)


@pytest.mark.parametrize("name", MISSED)
def test_what_is_missed_is_said_with_what_would_record_it(name: str, tmp_path: Path) -> None:
    program, named, why, calls = MISSED[name]
    with pytest.warns(UserWarning, match=f"not recorded: {why}"):
        recording, names = recorded(tmp_path / "a.safetensors", program, **named)
    assert len(names) == calls
    assert not recording.complete
    assert re.search(why, recording.summary)


def test_functions_inside_others_are_recorded_without_jit(tmp_path: Path) -> None:
    with jax.disable_jit():
        recording, names = recorded(tmp_path / "a.safetensors", MISSED["shared"][0])
    assert (names, recording.complete) == (LOOP, True)


def test_flax_linen_is_recorded_with_what_entered_softmax(tmp_path: Path) -> None:
    nn: Any = pytest.importorskip("flax.linen")

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any, _: Any) -> Any:
            attention = nn.MultiHeadDotProductAttention(num_heads=4, dropout_rate=0.5, name="attn")
            return x + attention(x, mask=nn.make_causal_mask(x[..., 0]), deterministic=False), None

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x, _ = Block(name="first")(x, None)
            scan = nn.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True}, length=3)
            return scan(name="blocks")(x, None)[0]

    model, keys = Model(), dict(zip(("params", "dropout"), jax.random.split(jax.random.key(0)), strict=True))
    weights = model.init(keys, FLAT)

    def loss(weights: Any, x: Any) -> Any:
        return model.apply(weights, x, rngs=keys).sum()

    def fit_and_predict() -> Any:
        return jax.jit(jax.grad(loss))(weights, FLAT), jax.jit(model.apply)(weights, FLAT, rngs=keys)

    expected = fit_and_predict()
    path = tmp_path / "a.safetensors"
    recording, names = recorded(path, fit_and_predict)
    assert names == ["Model.first.attn", "blocks.attn[0]", "blocks.attn[1]", "blocks.attn[2]"]
    assert recording.complete
    capture = attn_tui.open(path)
    assert attn_tui.diagnose(path, expect="1/sqrt(d)").healthy  # dropout comes after what entered softmax
    assert not np.triu(capture[0, 0].weights(), 1).any()
    for one, other in zip(jax.tree.leaves(fit_and_predict()), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)


def test_flax_nnx_is_recorded(tmp_path: Path) -> None:
    nnx: Any = pytest.importorskip("flax.nnx")
    attention = nnx.MultiHeadAttention(4, 64, dropout_rate=0.1, decode=False, rngs=nnx.Rngs(0))
    path = tmp_path / "a.safetensors"
    recording, names = recorded(path, lambda: nnx.jit(lambda one, x: one(x, deterministic=True))(attention, FLAT))
    assert (names, recording.complete) == (["call 0"], True)
    assert attn_tui.diagnose(path, expect="1/sqrt(d)").healthy


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_keras_is_recorded_once_in_fit_and_predict(
    dropout: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "KERAS_BACKEND", "jax")
    keras: Any = pytest.importorskip("keras")
    if keras.config.backend() != "jax":
        pytest.skip("needs KERAS_BACKEND=jax")
    layers, x = keras.layers, keras.Input((12, 64))
    h = x + layers.MultiHeadAttention(4, 16, dropout=dropout, name="one")(x, x, use_causal_mask=True)
    h += layers.GroupQueryAttention(16, 4, 2, dropout=dropout, name="two")(h, h)
    model = keras.Model(x, h)
    model.compile("sgd", "mse")

    def fit_and_predict() -> Any:
        model.fit(FLAT, FLAT, batch_size=1, epochs=2, verbose=0)
        return model.predict(FLAT, verbose=0)

    path = tmp_path / "a.safetensors"
    recording, names = recorded(path, fit_and_predict)
    assert (names, recording.complete) == (["one", "two"], True)
    assert attn_tui.diagnose(path, expect="1/sqrt(d)").healthy
    assert not np.triu(attn_tui.open(path)[0, 0].weights(), 1).any()
    simple = keras.Model(x, layers.Attention(name="simple")([x, x]))
    with (
        pytest.warns(UserWarning, match=r"1 call of jax\.nn\.softmax in simple: if this is attention"),
        attn_tui.record_jax(tmp_path / "b.safetensors"),
    ):
        simple.predict(FLAT, verbose=0)
