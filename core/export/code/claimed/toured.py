"""Functions of programs for the measurements of the tour (core/learning/trials.py)."""

from __future__ import annotations

from ....captures.capture import sample_path
from ....statistics.catalogue import SINK
from .counted import Functions

TOURED: dict[str, Functions] = {
    "saturation_threshold": Functions(*["def saturation_threshold(n):\n    return (2 * log(n)) ** 0.5"] * 2),
    "saturation_width": Functions(*["def saturation_width(n):\n    return ceil(2 * log(n))"] * 2),
    "weights_above": Functions(
        """\
def weights_above(d_k, n, threshold, scale):  # of a row
    rng = np.random.default_rng((22, 1, d_k, n))
    drawn = ((rng.standard_normal((64, d_k)), rng.standard_normal((n, d_k))) for _ in range(48))
    return np.mean([(softmax(scale * (q @ k.T)) > threshold).sum(-1).mean() for q, k in drawn])""",
        """\
def weights_above(d_k, n, threshold, scale):  # of a row
    rng = np.random.default_rng((22, 1, d_k, n))
    drawn = ((rng.standard_normal((64, d_k)), rng.standard_normal((n, d_k))) for _ in range(48))
    p = torch.stack([softmax(scale * torch.from_numpy(q @ k.T)) for q, k in drawn])
    return (p > threshold).sum(-1).double().mean()""",
    ),
    "projected": Functions(
        """\
@cache
def projected(d_model, d_k, variance_q, variance_k, scale):  # of inputs after LayerNorm
    rng, found = np.random.default_rng((22, 2, d_model, d_k)), []
    for _ in range(32):
        x = rng.standard_normal((48, d_model))
        x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
        q, k = (x @ rng.normal(0, variance**0.5, (d_model, d_k)) for variance in (variance_q, variance_k))
        found.append(((q**2).mean(), scale**2 * ((q @ k.T) ** 2).mean()))
    return dict(zip(("component", "logits"), np.mean(found, 0)))""",
        """\
@cache
def projected(d_model, d_k, variance_q, variance_k, scale):  # of inputs after LayerNorm
    rng, found = np.random.default_rng((22, 2, d_model, d_k)), []
    for _ in range(32):
        x = torch.nn.functional.layer_norm(torch.from_numpy(rng.standard_normal((48, d_model))), (d_model,))
        drawn = (rng.normal(0, variance**0.5, (d_model, d_k)) for variance in (variance_q, variance_k))
        q, k = (x @ torch.from_numpy(w) for w in drawn)
        found.append(((q**2).mean().item(), scale**2 * ((q @ k.T) ** 2).mean().item()))
    return dict(zip(("component", "logits"), np.mean(found, 0)))""",
    ),
    "rotary": Functions(
        """\
@cache
def rotary(d_k, distance, base):  # of a key that equals the query, and of an independent one
    angles = distance * base ** (-2 * np.arange(d_k // 2) / d_k)
    rng, found = np.random.default_rng((22, 3, d_k, distance)), []
    for _ in range(64):
        q, other = rng.standard_normal((2, 256, d_k)).view(np.complex128)  # pairs of components
        s, t = ((q.conj() * k * np.exp(1j * angles)).real.sum(1) for k in (q, other))
        found.append((s.mean() / d_k, (t**2).mean()))
    return dict(zip(("same", "variance"), np.mean(found, 0)))""",
        """\
@cache
def rotary(d_k, distance, base):  # of a key that equals the query, and of an independent one
    angles = distance * base ** (-2 * torch.arange(d_k // 2).double() / d_k)
    rng, found = np.random.default_rng((22, 3, d_k, distance)), []
    for _ in range(64):
        q, other = torch.from_numpy(rng.standard_normal((2, 256, d_k)).view(np.complex128))  # pairs of components
        s, t = ((q.conj() * k * torch.exp(1j * angles)).real.sum(1) for k in (q, other))
        found.append((s.mean().item() / d_k, (t**2).mean().item()))
    return dict(zip(("same", "variance"), np.mean(found, 0)))""",
    ),
    "summed_terms": Functions(
        """\
def summed_terms(d_k, terms):
    rng = np.random.default_rng((22, 4, d_k, terms))
    q, k = rng.standard_normal((2, 64, 512, terms * d_k), dtype=np.float32)
    return ((q * k).sum(-1) ** 2 / d_k).mean()""",
        """\
def summed_terms(d_k, terms):
    rng = np.random.default_rng((22, 4, d_k, terms))
    q, k = torch.from_numpy(rng.standard_normal((2, 64, 512, terms * d_k), dtype=np.float32))
    return ((q * k).sum(-1) ** 2 / d_k).mean()""",
    ),
    "score_overflow": Functions(
        """\
def score_overflow(d_k, std, scale):  # of float16
    q, k = np.random.default_rng((22, 5, d_k)).standard_normal((2, 64, 512, d_k), dtype=np.float32)
    return (abs((q * k).sum(-1)) > 65504 / (std**2 * scale)).mean()""",
        """\
def score_overflow(d_k, std, scale):  # of float16
    rng = np.random.default_rng((22, 5, d_k))
    q, k = torch.from_numpy(rng.standard_normal((2, 64, 512, d_k), dtype=np.float32))
    return ((q * k).sum(-1).abs() > 65504 / (std**2 * scale)).double().mean()""",
    ),
    "all_heads": Functions(
        f"""\
@cache
def all_heads():  # of the sample, all-MiniLM-L6-v2
    sample, found = load_file("{sample_path()}"), []
    for layer in range(6):
        q, k = (sample[f"layers.{{layer}}.attn.{{name}}"][0].astype(np.float32) for name in "qk")
        d_k, s = q.shape[-1], q @ k.mT  # a matrix of scores for each head
        z = s / d_k**0.5
        spread = z.std(-1) / (2 * log(z.shape[-1])) ** 0.5  # softmax saturates at 1
        found.append((s.var(-1).mean(-1) / d_k, softmax(z)[..., 0].mean(-1), spread.mean(-1)))
    variance, first, spread = np.concatenate(found, axis=1)
    sink, saturated = first > {SINK}, spread >= 1
    return {{"least": variance.min(), "median": np.median(variance), "most": variance.max(), "heads": sink.size,
            "sinks": sink.sum(), "saturated": saturated.sum(), "looking": (saturated & ~sink).sum()}}""",
        f"""\
@cache
def all_heads():  # of the sample, all-MiniLM-L6-v2
    sample, found = load_file("{sample_path()}"), []
    for layer in range(6):
        q, k = (sample[f"layers.{{layer}}.attn.{{name}}"][0].float() for name in "qk")
        d_k, s = q.shape[-1], q @ k.mT  # a matrix of scores for each head
        z = s / d_k**0.5
        spread = z.std(-1, correction=0) / (2 * log(z.shape[-1])) ** 0.5  # softmax saturates at 1
        variance = s.var(-1, correction=0).mean(-1) / d_k
        found.append(torch.stack((variance, softmax(z)[..., 0].mean(-1), spread.mean(-1))))
    variance, first, spread = torch.cat(found, dim=1)
    sink, saturated = first > {SINK}, spread >= 1
    return {{"least": variance.min(), "median": variance.quantile(0.5), "most": variance.max(), "heads": len(sink),
            "sinks": sink.sum(), "saturated": saturated.sum(), "looking": (saturated & ~sink).sum()}}""",
    ),
}
