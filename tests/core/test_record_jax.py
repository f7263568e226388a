"""Calls of jax.nn.dot_product_attention are recorded as they were computed, and nothing of it reaches the program.

JAX is not installed for tests. A module that computes the same stands in for it; where JAX is installed, it is tried,
too.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
from attn_tui.core.files import FileError
from cases import for_each

BATCH, QUERIES, HEADS, WIDTH = 2, 12, 4, 16
rng = np.random.default_rng(0)
Q = rng.standard_normal((BATCH, QUERIES, HEADS, WIDTH), np.float32)
K, V = rng.standard_normal((2, BATCH, QUERIES, 2, WIDTH), np.float32)
MASK = (rng.random((BATCH, 1, QUERIES, QUERIES)) < 0.7) | np.eye(QUERIES, dtype=np.bool_)
BIAS = rng.standard_normal((1, HEADS, QUERIES, QUERIES), np.float32)


def lengths(*tokens: int) -> Any:
    return np.array(tokens, np.int32)


def positions(array: Any) -> Any:
    return np.arange(int(array.shape[1]))


def weights(
    query: Any, key: Any, bias: Any = None, mask: Any = None, scale: Any = None, is_causal: bool = False,
    query_seq_lengths: Any = None, key_value_seq_lengths: Any = None, local_window_size: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Return the weights of jax.nn.dot_product_attention of JAX 0.10, and which keys are seen: [batch, head, …]."""
    q, k = (np.array(each, np.float32, ndmin=4) for each in (query, key))
    i, j = positions(q)[:, np.newaxis], positions(k)
    z = np.einsum("btnh,bsnh->bnts", q, np.repeat(k, q.shape[2] // k.shape[2], axis=2))
    z *= np.float32(q.shape[3] ** -0.5 if scale is None else scale)
    z += 0 if bias is None else np.array(bias, ndmin=4)
    seen = np.ones(z.shape, np.bool_) if mask is None else np.broadcast_to(np.array(mask, ndmin=4), z.shape)
    if is_causal:
        seen = seen & (i >= j)
    if local_window_size is not None:
        before, after = np.broadcast_to(local_window_size, 2)
        seen = seen & (i <= j + before) & (i >= j - after)
    for tokens, at in ((query_seq_lengths, i), (key_value_seq_lengths, j)):
        if tokens is not None:
            seen = seen & (at < np.expand_dims(tokens, (1, 2, 3)))
    z = np.where(seen, z, -0.7 * np.finfo(np.float32).max)
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True), seen


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: Any = None,
    is_causal: bool = False, query_seq_lengths: Any = None, key_value_seq_lengths: Any = None,
    local_window_size: Any = None, implementation: Any = None, return_residual: bool = False, dropout: Any = None,
) -> Any:  # fmt: skip
    """Compute what jax.nn.dot_product_attention does; `dropout` stands for arguments of versions to come."""
    given = (query, key, bias, mask, scale, is_causal, query_seq_lengths, key_value_seq_lengths, local_window_size)
    p, _ = weights(*given)
    v = np.array(value, np.float32, ndmin=4)
    o = np.einsum("bnts,bsnh->btnh", p, np.repeat(v, p.shape[1] // v.shape[2], axis=2))
    if query_seq_lengths is not None:
        o *= positions(o)[:, np.newaxis, np.newaxis] < np.expand_dims(query_seq_lengths, (1, 2, 3))
    o = o.astype(np.float32).reshape(query.shape)
    return (o, None) if return_residual else o


@pytest.fixture(params=["eager", "compiled", "real"])
def jax(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """JAX, or a module with what record_jax uses of it, in which arrays are those of compiled functions or not."""
    if request.param == "real":
        return pytest.importorskip("jax", reason="needs pip install jax")
    library: Any = types.ModuleType("jax")
    library.nn = types.SimpleNamespace(dot_product_attention=dot_product_attention)
    library.numpy = np
    library.core = types.SimpleNamespace(Tracer=np.ndarray if request.param == "compiled" else ())
    library.debug = types.SimpleNamespace(callback=lambda function, *given: function(*given))  # type: ignore[misc]
    library.cleared = []
    library.clear_caches = lambda: library.cleared.append(True)
    library.local_devices = lambda backend: [backend]  # type: ignore[misc]
    library.effects_barrier = lambda: None
    monkeypatch.setitem(sys.modules, "jax", library)
    return library


CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "plain": ((Q, K, V), {}),
    "keywords": ((), {"value": V, "key": K, "query": Q, "is_causal": True, "mask": None}),
    "scale": ((Q, K, V), {"scale": 0.125, "implementation": "xla"}),
    "scale that is an array": ((Q, K, V), {"scale": np.float32(0.125)}),
    "no batch": ((Q[0], K[0], V[0]), {"is_causal": True}),
    "residual": ((Q, K, V), {"return_residual": True}),
    "mask": ((Q, K, V, None, MASK), {}),
    "mask without batch": ((Q, K, V, None, MASK[0, 0]), {}),
    "mask of heads": ((Q, K, V), {"mask": rng.random((1, HEADS, 1, QUERIES)) < 0.7}),
    "mask of queries": ((Q, K, V), {"mask": MASK[:, :, :, :1]}),
    "bias": ((Q, K, V, BIAS), {"mask": MASK}),
    "bias of queries": ((Q, K, V, BIAS[..., :1]), {}),
    "bias that hides": ((Q, K, V, np.where(MASK, np.float32(0), np.float32(-1e9))), {}),
    "keys": ((Q, K, V), {"key_value_seq_lengths": lengths(12, 7)}),
    "keys of no batch": ((Q[0], K[0], V[0]), {"key_value_seq_lengths": lengths(7)}),
    "more keys than there are": ((Q, K, V), {"key_value_seq_lengths": lengths(20, 3), "is_causal": True}),
    "no keys": ((Q, K, V), {"key_value_seq_lengths": lengths(12, 0)}),
    "queries": ((Q, K, V), {"query_seq_lengths": lengths(5, 12)}),
    "both": ((Q, K, V), {"query_seq_lengths": lengths(5, 12), "key_value_seq_lengths": lengths(6, 11)}),
    "both and a mask": (
        (Q, K, V, None, MASK),
        {"query_seq_lengths": lengths(5, 12), "key_value_seq_lengths": lengths(6, 11), "is_causal": True},
    ),
    "other lengths": ((Q[:, :5], K, V), {"key_value_seq_lengths": lengths(12, 7), "is_causal": True}),
    "window": ((Q, K, V), {"local_window_size": 3}),
    "two windows": ((Q, K, V), {"local_window_size": (2, 4)}),
    "causal window": ((Q, K, V), {"local_window_size": (2, 4), "is_causal": True}),
    "window of fewer queries": ((Q[:, :5], K, V), {"local_window_size": (2, 3)}),
    "window of fewer keys": ((Q, K[:, :5], V[:, :5]), {"local_window_size": (9, 1), "is_causal": True}),
}


def recorded(jax: Any, path: Path, *calls: dict[str, Any]) -> list[Any]:
    """Return what calls with these arguments return while they are recorded."""
    with attn_tui.record_jax(path):
        return [jax.nn.dot_product_attention(Q, K, V, **named) for named in calls]


@for_each("name", CASES)
def test_a_call_is_recorded_as_it_was_computed(name: str, jax: Any, tmp_path: Path) -> None:
    given, named = CASES[name]
    path = tmp_path / f"{name}.safetensors"
    expected = jax.nn.dot_product_attention(*given, **named)
    with attn_tui.record_jax(path):
        found = jax.nn.dot_product_attention(*given, **named)
    if named.get("return_residual"):
        found, expected = found[0], expected[0]
    np.testing.assert_array_equal(found, expected)
    capture = attn_tui.open(path)
    diagnosis = attn_tui.diagnose(capture, expect=float(named.get("scale", WIDTH**-0.5)))
    assert [each.verdict.word for each in diagnosis.heads] == ["healthy"] * HEADS
    bound = inspect.signature(dot_product_attention).bind(*given, **named).arguments
    p, seen = weights(**{each: bound[each] for each in bound.keys() & inspect.signature(weights).parameters})
    rows = seen.any(axis=-1)
    if seen.shape[2] == seen.shape[3]:  # tokens that no query sees are padding, and so are their own rows
        rows &= seen.any(axis=-2)
    for head, own in enumerate(capture):
        np.testing.assert_allclose(own.weights()[rows[:, head]], p[:, head][rows[:, head]], atol=2e-6)


def test_what_was_done_is_not_taken_as_what_was_meant(jax: Any, tmp_path: Path) -> None:
    recorded(jax, tmp_path / "a.safetensors", {"scale": 1.0})
    for each in attn_tui.diagnose(tmp_path / "a.safetensors").heads:
        assert (each.verdict.word, each.verdict.maybe) == ("undecided", ("scale-missing",))


def test_calls_are_recorded_in_their_order_and_only_in_the_block(jax: Any, tmp_path: Path) -> None:
    original, path = jax.nn.dot_product_attention, tmp_path / "a.safetensors"
    with attn_tui.record_jax(path):
        kept = jax.nn.dot_product_attention
        assert inspect.signature(kept) == inspect.signature(original)
        kept(Q, K, V)
        functools.partial(kept, is_causal=True)(Q, Q, Q)
    assert jax.nn.dot_product_attention is original
    found = [(each.name, each.kv_heads, each.causal) for each in attn_tui.open(path).layers]
    assert found == [("call 0", 2, None), ("call 1", 4, "top_left")]
    before = path.read_bytes()
    np.testing.assert_array_equal(kept(Q, K, V), original(Q, K, V))
    assert path.read_bytes() == before
    if jax.core.Tracer in (np.ndarray, ()):
        assert len(jax.cleared) == 1 + (jax.core.Tracer is np.ndarray)  # of what was compiled with the recorder, too


@for_each(
    ("named", "why"),
    [
        ({"scale": -0.5}, r"arrays: metadata 'scale' must be a positive number, not '-0\.5'"),
        ({"local_window_size": (-1, 3)}, r"local_window_size \(-1, 3\) is negative"),
        (
            {"bias": np.ones((1, 1, QUERIES, QUERIES), np.int32)},
            "arrays: tensor .* must hold floating-point numbers",
        ),
    ],
)
def test_what_a_capture_cannot_say_is_named(named: dict[str, Any], why: str, jax: Any, tmp_path: Path) -> None:
    expected = jax.nn.dot_product_attention(Q, K, V, **named)
    with pytest.warns(UserWarning, match=f"not recorded: 2 calls of jax.nn.dot_product_attention: {why}"):
        found = recorded(jax, tmp_path / "a.safetensors", named, named)
    np.testing.assert_array_equal(found, [expected] * 2)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("jax", ["eager"], indirect=True)
def test_arguments_that_are_not_known_are_named_if_they_are_given(jax: Any, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="1 call of jax.nn.dot_product_attention: dropout is not") as said:
        recorded(jax, tmp_path / "a.safetensors", {"dropout": np.ones(2)}, {"dropout": None})
    assert [each.filename for each in said] == [__file__]
    assert [each.name for each in attn_tui.open(tmp_path / "a.safetensors").layers] == ["call 1"]


def test_that_nothing_was_seen_is_said(jax: Any, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="no call of jax.nn.dot_product_attention was seen"):
        recorded(jax, tmp_path / "a.safetensors")


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("it is broken\nfor many reasons")


@pytest.mark.parametrize("jax", ["compiled"], indirect=True)
@pytest.mark.parametrize("name", ["local_devices", "debug", "numpy", "core"])
def test_what_goes_wrong_beside_the_program_does_not_reach_it(
    name: str, jax: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = dot_product_attention(Q, K, V)
    parts = {"debug": types.SimpleNamespace(callback=broken), "numpy": types.SimpleNamespace(asarray=broken)}
    for each in (name, "effects_barrier", "clear_caches"):
        monkeypatch.setattr(jax, each, parts.get(each, broken))
    with pytest.warns(UserWarning, match="not recorded: 1 call of jax.nn.dot_product_attention: .*$") as said:
        found = recorded(jax, tmp_path / "a.safetensors", {})
    assert "many" not in str(said[0].message)  # the first line of an error
    np.testing.assert_array_equal(found, [expected])
    assert jax.nn.dot_product_attention is dot_product_attention


def ended_by(error: Exception, jax: Any, path: Path) -> None:
    """End a recorded block by an error of the program."""
    with attn_tui.record_jax(path):
        jax.nn.dot_product_attention(Q, K, V)
        raise error


def test_a_file_of_others_is_refused_before_the_block(jax: Any, tmp_path: Path) -> None:
    path, ran = tmp_path / "a.safetensors", list[bool]()
    path.write_bytes(b"weights")
    with pytest.raises(FileError, match="overwrite=True"), attn_tui.record_jax(path):
        ran.append(True)
    assert not ran
    assert path.read_bytes() == b"weights"
    with attn_tui.record_jax(path, overwrite=True):
        jax.nn.dot_product_attention(Q, K, V)
    assert len(attn_tui.open(path).layers) == 1


def test_what_cannot_be_written_is_an_error_but_never_instead_of_that_of_the_program(
    jax: Any, tmp_path: Path
) -> None:
    path = tmp_path / "absent" / "a.safetensors"
    with pytest.raises(FileError, match="absent"):
        recorded(jax, path, {})
    with pytest.warns(UserWarning, match="absent"), pytest.raises(KeyError, match="of the program"):
        ended_by(KeyError("of the program"), jax, path)
    with pytest.raises(KeyError, match="of the program"):  # although warnings are errors
        ended_by(KeyError("of the program"), jax, path)
    with pytest.raises(KeyError, match="of the program"):
        ended_by(KeyError("of the program"), jax, tmp_path / "a.safetensors")
    assert attn_tui.open(tmp_path / "a.safetensors").layers


DEFINITIONS = """
import jax
from jax import lax, numpy as jnp
x = jnp.asarray(Q)
def attend(q, **named): return jax.nn.dot_product_attention(q, q, q, **named)
def loss(q, **named): return attend(q, **named).sum()
def repeated(q): return lax.scan(lambda each, _: (attend(each, is_causal=True), None), q, None, length=3)[0]
def without_leaks(program):
    with jax.checking_leaks(): return program()
"""
# Programs that JAX compiles, differentiates or maps.
PROGRAMS = """
jax.jit(lambda q: attend(q))(x)
jax.jit(lambda: attend(x))()
jax.jit(lambda q, tokens: attend(q, key_value_seq_lengths=tokens))(x, jnp.array([12, 7]))
jax.jit(lambda q, scale: attend(q, scale=scale))(x, 0.25)
jax.jit(jax.nn.dot_product_attention, static_argnames="is_causal")(x, x, x, is_causal=True)
jax.jit(lambda q: attend(q), donate_argnums=0)(x + 0)
jax.jit(lambda q: attend(q, is_causal=True))(x.astype(jnp.bfloat16))
jax.grad(lambda q: loss(q))(x)
jax.jit(jax.grad(lambda q: loss(q, is_causal=True)))(x)
jax.grad(jax.jit(lambda q: loss(q, is_causal=True)))(x)
jax.jit(jax.grad(jax.checkpoint(lambda q: loss(q))))(x)
jax.vmap(lambda q: attend(q))(x)
jax.vmap(jax.jit(lambda q: attend(q)))(jnp.stack([x, 2 * x]))
jax.jit(jax.vmap(lambda q: attend(q)))(jnp.stack([x, 2 * x]))
repeated(x)
jax.jit(jax.grad(lambda q: repeated(q).sum()))(x)
lax.while_loop(lambda at: at[0] < 1, lambda at: (at[0] + 1, attend(at[1])), (0, x))
lax.cond(x.sum() < 1e9, lambda q: attend(q), lambda q: q, x)
jax.pmap(lambda q: attend(q))(x[jnp.newaxis])
without_leaks(lambda: jax.jit(lambda q: attend(q))(x))
""".strip().splitlines()


@pytest.mark.parametrize("jax", ["real"], indirect=True)
def test_what_jax_transforms_is_recorded_and_computed_afterwards_as_before(jax: Any, tmp_path: Path) -> None:
    """Compiled with the recorder in it, a program may round otherwise."""
    names: dict[str, Any] = {"Q": Q}
    exec(DEFINITIONS, names)
    for at, program in enumerate(PROGRAMS):
        path = tmp_path / f"{at}.safetensors"
        expected = jax.tree.leaves(eval(program, names))
        with attn_tui.record_jax(path):
            found = jax.tree.leaves(eval(program, names))
        for one, other, again in zip(found, expected, jax.tree.leaves(eval(program, names)), strict=True):
            np.testing.assert_allclose(one.astype(float), other.astype(float), rtol=1e-5, atol=1e-6, err_msg=program)
            np.testing.assert_array_equal(again, other, err_msg=program)
        assert attn_tui.diagnose(path, expect="1/sqrt(d)").healthy, program


EXPORTED = "jax.export.export(jax.jit(lambda q: attend(q)))(Q).call(Q)"


@pytest.mark.parametrize("jax", ["real"], indirect=True)
def test_an_exported_function_is_as_without_the_recorder(jax: Any, tmp_path: Path) -> None:
    names: dict[str, Any] = {"Q": Q}
    exec(DEFINITIONS, names)
    with (
        pytest.warns(UserWarning, match="1 call of jax.nn.dot_product_attention: it is exported"),
        attn_tui.record_jax(tmp_path / "a.safetensors"),
    ):
        found = eval(EXPORTED, names)
    np.testing.assert_array_equal(found, eval(EXPORTED, names))


LARGE = """
import attn_tui, jax
x = jax.random.normal(jax.random.PRNGKey(0), (2, 1024, 8, 64))
with attn_tui.record_jax("a.safetensors"):
    jax.jit(lambda x: jax.nn.dot_product_attention(x, x, x))(x)
print(len(attn_tui.open("a.safetensors")))
"""


@pytest.mark.parametrize("jax", ["real"], indirect=True)
def test_large_arrays_are_not_waited_for(jax: Any, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", LARGE], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (found.stdout, found.stderr) == ("8\n", "")
