"""Functions of programs for the measurements of layers (core/claims/layers)."""

from __future__ import annotations

from .counted import Functions

LAYERED: dict[str, Functions] = {
    "shapes": Functions(
        """\
@cache
def shapes(batch, heads, n, d_k):
    q, k, v = np.random.default_rng((23, 2, batch, heads, n, d_k)).standard_normal((3, batch, heads, n, d_k))
    scores = q @ k.mT / d_k**0.5
    p = softmax(scores)
    output, sums = p @ v, p.sum(-1).ravel()
    loop = [[softmax(a @ b.T / d_k**0.5) @ c for a, b, c in zip(*of)] for of in zip(q, k, v)]
    return {
        "scores": scores.size,
        "output": output.size,
        "sum": round(sums[abs(sums - 1).argmax()], 12),
        "apart": round(abs(output - loop).max(), 12),
    }""",
        """\
@cache
def shapes(batch, heads, n, d_k):
    drawn = np.random.default_rng((23, 2, batch, heads, n, d_k)).standard_normal((3, batch, heads, n, d_k))
    q, k, v = torch.from_numpy(drawn)
    scores = q @ k.mT / d_k**0.5
    p = softmax(scores)
    output, sums = p @ v, p.sum(-1).ravel()
    loop = [torch.stack([softmax(a @ b.T / d_k**0.5) @ c for a, b, c in zip(*of)]) for of in zip(q, k, v)]
    return {
        "scores": scores.numel(),
        "output": output.numel(),
        "sum": round(sums[(sums - 1).abs().argmax()].item(), 12),
        "apart": round((output - torch.stack(loop)).abs().max().item(), 12),
    }""",
    ),
    "through_layers": Functions(
        """\
def norm(x):
    return (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)


def before_norm(x, g):  # the gradient of x, given that of norm(x)
    y = norm(x)
    return (g - g.mean(1, keepdims=True) - y * (g * y).mean(1, keepdims=True)) / x.std(1, keepdims=True)


def stack(x, weights, scale, g):  # of x + attention(norm(x)): the gradient of x, and the output
    passed = []
    for wq, wk, wv in weights:
        q, k, v = (norm(x) @ w for w in (wq, wk, wv))
        passed.append((x, q, k, v, softmax(scale * (q @ k.T))))
        x = x + passed[-1][-1] @ v
    g = before_norm(x, g)
    for (inside, q, k, v, p), (wq, wk, wv) in zip(passed[::-1], weights[::-1]):
        a = g @ v.T
        ds = scale * p * (a - (p * a).sum(1, keepdims=True))
        g = g + before_norm(inside, ds @ k @ wq.T + ds.T @ q @ wk.T + p.T @ g @ wv.T)
    return g, norm(x)


@cache
def through_layers(depth, d, n):
    found = []
    for draw in range(16):
        rng = np.random.default_rng((23, 1, depth, d, n, draw))
        x, g = rng.standard_normal((2, n, d))
        weights = rng.standard_normal((depth, 3, d, d)) / d**0.5
        logs, alike = {}, []
        for scale in 1.0, d**-0.5:
            for layers in 1, depth:
                dx, end = stack(x, weights[:layers], scale, g)
                logs[scale, layers] = np.log((dx**2).mean()) / 2
            unit = end / np.linalg.norm(end, axis=1, keepdims=True)
            alike.append(((unit.sum(0) ** 2).sum() - n) / (n * (n - 1)))
        u, s, one = logs[1.0, depth], logs[d**-0.5, depth], logs[1.0, 1] - logs[d**-0.5, 1]
        found.append([u, s, u - s, u - s - one, *alike])
    *mean, a, b = np.mean(found, 0)
    names = "unscaled", "scaled", "ratio", "over_one"
    return dict(zip(names, np.exp(mean))) | {"alike_unscaled": a, "alike_scaled": b}""",
        """\
def norm(x):
    return torch.nn.functional.layer_norm(x, x.shape[1:], eps=0)


def stack(x, weights, scale, g):  # of x + attention(norm(x)): the gradient of x, and the output
    x = start = x.clone().requires_grad_()
    for wq, wk, wv in weights:
        q, k, v = (norm(x) @ w for w in (wq, wk, wv))
        x = x + softmax(scale * (q @ k.T)) @ v
    end = norm(x)
    return torch.autograd.grad(end, start, g)[0], end.detach()


@cache
def through_layers(depth, d, n):
    found = []
    for draw in range(16):
        rng = np.random.default_rng((23, 1, depth, d, n, draw))
        x, g = torch.from_numpy(rng.standard_normal((2, n, d)))
        weights = torch.from_numpy(rng.standard_normal((depth, 3, d, d))) / d**0.5
        logs, alike = {}, []
        for scale in 1.0, d**-0.5:
            for layers in 1, depth:
                dx, end = stack(x, weights[:layers], scale, g)
                logs[scale, layers] = (dx**2).mean().log().item() / 2
            unit = end / end.norm(dim=1, keepdim=True)
            alike.append(((unit.sum(0) ** 2).sum().item() - n) / (n * (n - 1)))
        u, s, one = logs[1.0, depth], logs[d**-0.5, depth], logs[1.0, 1] - logs[d**-0.5, 1]
        found.append([u, s, u - s, u - s - one, *alike])
    *mean, a, b = np.mean(found, 0)
    names = "unscaled", "scaled", "ratio", "over_one"
    return dict(zip(names, np.exp(mean))) | {"alike_unscaled": a, "alike_scaled": b}""",
    ),
}
