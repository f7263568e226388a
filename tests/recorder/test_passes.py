"""Where a pass begins, what its layers are called, and attention that is computed outside modules."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch
from replay import load
from running import plain, program, record

F: Any = torch.nn.functional
nn: Any = torch.nn
pytestmark = pytest.mark.filterwarnings("default")

X = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(2))


class Attention(torch.nn.Module):
    """Attention whose softmax is a module."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.softmax = nn.Linear(8, 8), nn.Linear(8, 8), nn.Softmax(-1)

    def forward(self, x: Any, weights: bool = False) -> Any:
        p = self.softmax(self.q(x) * 0.25 @ self.k(x).mT)
        o = x + p @ x
        return p if weights else o


class Model(torch.nn.Module):
    """A model whose methods call its modules."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.act = nn.Linear(8, 8), nn.GELU()
        self.encoder = nn.ModuleList([Attention(), Attention()])
        self.decoder = nn.ModuleDict({"cross": Attention()})

    def encode(self, x: Any) -> Any:
        x = self.act(self.embed(x))
        for layer in self.encoder:
            x = self.act(layer(x))
        return x

    def decode(self, x: Any) -> Any:
        return self.act(self.decoder["cross"](x))

    def forward(self, x: Any) -> Any:
        return self.decode(self.encode(x))

    def get_last_selfattention(self, x: Any) -> Any:
        return self.encoder[1](self.encoder[0](x), weights=True)

    @torch.no_grad()
    def act_on(self, x: Any) -> Any:
        return self(x)


ENCODER, ALL = ["encoder.0", "encoder.1"], ["encoder.0", "encoder.1", "decoder.cross"]


def model_of(kind: Callable[[], Any] = Model) -> Any:
    torch.manual_seed(0)
    return kind()


def names(path: Path | str) -> list[str]:
    """The names of the layers in a file."""
    return [layer["name"] for layer in load(Path(path))[1]["layers"]]


def active_modes() -> int:
    dispatch: Any = torch.utils._python_dispatch
    return len(dispatch._get_current_dispatch_mode_stack())


CALLS: list[tuple[Callable[[Any], Any], list[str]]] = [
    (lambda model: model(X), ALL),
    (lambda model: model.forward(X), ALL),
    (lambda model: model.encode(X), ENCODER),
    (lambda model: model.act_on(X), ALL),
    (lambda model: model.get_last_selfattention(X), ENCODER),
    (lambda model: model.encoder[1](X), ["encoder.1"]),
    (lambda model: nn.Sequential(nn.Identity(), model.encoder[1])(X), ["encoder.1"]),
]


@pytest.mark.parametrize(("call", "found"), CALLS)
def test_any_module_of_the_model_begins_a_pass(call: Callable[[Any], Any], found: list[str], tmp_path: Path) -> None:
    model = model_of()
    expected = call(model)
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        assert torch.equal(call(model), expected)
    assert recorder.complete, recorder.summary
    assert names(tmp_path / "a.safetensors") == found
    assert load(tmp_path / "a.safetensors")[1]["model"] == "Model"
    assert active_modes() == 0


def test_attention_in_methods_that_are_called_by_hand(tmp_path: Path) -> None:
    """Factors that the method multiplied onto queries are known, as in a pass."""
    single = model_of(Attention)
    with attn_tui.record(single, tmp_path / "a.safetensors") as recorder:
        single.forward(X)
    assert recorder.complete, recorder.summary
    [layer] = load(tmp_path / "a.safetensors")[1]["layers"]
    assert (layer["name"], layer["scale"], layer["prescaled"]) == ("Attention", 1.0, [0.25, 1.0])
    model = model_of()
    with attn_tui.record(model, tmp_path / "b.safetensors") as recorder:
        model.encoder[1].forward(X)
        model.decoder.cross.forward(X)
    assert recorder.complete, recorder.summary
    assert names(tmp_path / "b.safetensors") == ["Attention", "Attention"]  # of three


class Pooled(Model):
    """A model whose methods have attention of their own before and after its modules'."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.full((8,), 0.25))

    def pool(self, x: Any) -> Any:
        return torch.softmax(x * self.gain @ x.mT, -1) @ x

    def pooled(self, x: Any) -> Any:
        return self.pool(self.decode(self.pool(x)))


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_attention_of_a_method_beside_its_modules(grad: bool, given: bool, tmp_path: Path) -> None:
    model = model_of(Pooled)
    expected = model.pooled(X)
    with (
        torch.set_grad_enabled(grad),
        attn_tui.record(model if given else None, tmp_path / "a.safetensors") as recorder,
    ):
        assert torch.equal(model.pooled(X), expected)
    assert recorder.complete, recorder.summary
    between = "Pooled" if given else "attention"
    cross = "decoder.cross" if given else "Attention"
    assert names(tmp_path / "a.safetensors") == [between, cross, between]
    assert active_modes() == 0


@pytest.mark.parametrize("encoder", [True, False])  # is asked again
def test_a_pass_of_one_token_is_replaced_by_the_next(encoder: bool, tmp_path: Path) -> None:
    """As where the language of a text is asked before the text."""

    class Speech(Model):
        def decode(self, x: Any) -> Any:
            return self.decoder["cross"](x)

        def transcribe(self, x: Any) -> Any:
            encoded = self.encoder[0](x)
            self.decode(encoded[:, :1])
            return self.decode((self.encoder[0](x) if encoder else encoded)[:, 1:])

    model = model_of(Speech)
    with torch.no_grad(), attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model.transcribe(X)
    assert recorder.complete, recorder.summary
    assert ": 2 attention calls seen, 2 recorded" in recorder.summary
    held = load(tmp_path / "a.safetensors")[0]
    assert names(tmp_path / "a.safetensors") == ["encoder.0", "decoder.cross"]
    assert [held[f"layers.{place}.attn.q"].shape[2] for place in (0, 1)] == [6, 5]


def test_the_end_of_a_step_inside_a_method_is_said(tmp_path: Path) -> None:
    class Siamese(Model):
        def compare(self, x: Any, y: Any) -> Any:
            return self.encoder[0](x) - self.encoder[0](y)

    model = model_of(Siamese)
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model.compare(X, -X)
    assert "encoder.0 was called again inside Siamese" in recorder.summary
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model(X)
        model(X)
    assert "called again" not in recorder.summary


def test_modules_outside_the_model_and_functions_are_not_recorded(tmp_path: Path) -> None:
    model, other = model_of(), model_of(Attention)
    recorder = attn_tui.record(model, tmp_path / "a.safetensors")
    other(X)
    F.scaled_dot_product_attention(X, X, X)
    with pytest.warns(RuntimeWarning, match="no forward pass of the given model"):
        recorder.close()
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model.embed(X)
        other(X)
        F.scaled_dot_product_attention(X, X, X)
        model.encode(X)
    assert recorder.complete, recorder.summary
    assert names(tmp_path / "a.safetensors") == ENCODER


def test_modules_that_are_added_before_they_run_are_recorded(tmp_path: Path) -> None:
    model: Any = nn.Module()
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        nn.Linear(8, 8)(X)
        model.late = Attention()
        model.late(X)
    assert recorder.complete, recorder.summary
    assert names(tmp_path / "a.safetensors") == ["late"]


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("grad", [False, True])
def test_a_step_has_each_method_once(every: int, grad: bool, tmp_path: Path) -> None:
    """Steps begin with the module that began the first one, and modules without attention are called repeatedly."""
    model, seen = model_of(), list[Any]()

    def keep(_: Any, __: Any, out: Any) -> None:
        seen.append(out.detach().clone())

    handles = [layer.k.register_forward_hook(keep) for layer in (*model.encoder, model.decoder.cross)]
    with torch.set_grad_enabled(grad), attn_tui.record(model, tmp_path / "run", every=every) as recorder:
        for step in range(6):
            model.decode(model.encode(X + step))
    assert len(handles) * 6 == len(seen)
    assert recorder.complete, recorder.summary
    files = [Path(file) for file in recorder.files]
    assert [file.name for file in files] == [f"step-{step:06d}.safetensors" for step in range(0, 6, every)]
    for step, file in zip(range(0, 6, every), files, strict=True):
        assert names(file) == ALL
        held = load(file)[0]
        for index in range(3):
            assert torch.equal(held[f"layers.{index}.attn.k"][:, 0], seen[3 * step + index])


def test_a_loss_that_is_a_module_counts_no_steps(tmp_path: Path) -> None:
    class Lightning(torch.nn.Module):
        """As a LightningModule, which no one calls."""

        def __init__(self) -> None:
            super().__init__()
            self.loss, self.model = nn.MSELoss(), Model()

        def training_step(self, x: Any) -> Any:
            self.loss(x, x)
            return self.loss(self.model(x), x) + self.loss(x, x)

    module = model_of(Lightning)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    with attn_tui.record(module, tmp_path / "run", every=2) as recorder:
        with torch.no_grad():
            module.training_step(X)  # the validation before the first epoch
        for _ in range(5):
            module.training_step(X).backward()
            optimizer.step()
    assert recorder.complete, recorder.summary
    assert [Path(file).name for file in recorder.files] == [f"step-{step:06d}.safetensors" for step in (0, 2, 4)]
    assert names(recorder.files[1]) == [f"model.{name}" for name in ALL]


def test_what_a_backward_pass_computes_again_is_not_missed(tmp_path: Path) -> None:
    checkpoint: Any = pytest.importorskip("torch.utils.checkpoint").checkpoint
    model = model_of()
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        checkpoint(model.decoder.cross, model.encode(X), use_reentrant=False).sum().backward()
    assert recorder.complete, recorder.summary
    assert names(tmp_path / "a.safetensors") == ALL


def test_a_pass_that_cannot_be_recorded_is_counted_once(tmp_path: Path) -> None:
    model = model_of()

    def loss(x: Any) -> Any:
        return model(x).sum()

    recorder = attn_tui.record(model, tmp_path / "a.safetensors")
    torch.func.grad(loss)(X)
    model(X)
    with pytest.warns(RuntimeWarning, match=r"not recorded: 1 pass inside torch\.func"):
        recorder.close()
    assert names(tmp_path / "a.safetensors") == ALL


def test_layers_have_the_names_of_the_model_in_other_threads(tmp_path: Path) -> None:
    """A thread that waits for attention between passes leaves nothing behind."""
    model = model_of()
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model.embed(X)
        assert active_modes() == 1
        thread = threading.Thread(target=model.encode, args=(X,))
        thread.start()
        thread.join()
        model.act(X)
        assert active_modes() == 1
    assert active_modes() == 0
    assert recorder.complete, recorder.summary
    assert names(tmp_path / "a.safetensors") == ENCODER


def test_layers_that_do_not_fit_make_a_recording_incomplete(tmp_path: Path) -> None:
    model = model_of()
    recorder = attn_tui.record(model, tmp_path / "a.safetensors", max_bytes=1000)
    model(X)
    with pytest.warns(RuntimeWarning, match="not recorded: 1 call: a file has at most 1,000 bytes"):
        recorder.close()
    assert not recorder.complete
    with attn_tui.record(model, tmp_path / "a.safetensors", layers="encoder") as recorder:
        model(X)
    assert recorder.complete


# without a model


def test_whatever_is_between_passes_is_recorded(tmp_path: Path) -> None:
    model = model_of()
    with attn_tui.record(None, tmp_path / "a.safetensors") as recorder:
        model(X)
        F.scaled_dot_product_attention(X, X, X)
        model(X)
        thread = threading.Thread(target=model, args=(X,))
        thread.start()
        thread.join()
    assert recorder.complete, recorder.summary
    assert names(tmp_path / "a.safetensors") == [*ALL, "attention", *ALL]
    assert active_modes() == 0


@pytest.mark.parametrize("optimizer", [False, True])
def test_without_a_model_steps_are_counted(optimizer: bool, tmp_path: Path) -> None:
    model = model_of()
    steps = torch.optim.SGD(model.parameters(), lr=0.1) if optimizer else None
    with attn_tui.record(None, tmp_path / "run", every=2) as recorder:
        for _ in range(5):
            F.scaled_dot_product_attention(model.embed(X), X, X).sum().backward()
            if steps is not None:
                steps.step()
    assert recorder.complete, recorder.summary
    assert [Path(file).name for file in recorder.files] == [f"step-{step:06d}.safetensors" for step in (0, 2, 4)]
    assert all(names(file) == ["attention"] for file in recorder.files)


def test_functions_alone_are_one_step(tmp_path: Path) -> None:
    with attn_tui.record(None, tmp_path / "run", every=2) as recorder:
        for _ in range(3):
            F.scaled_dot_product_attention(X, X, X)
    assert names(recorder.files[0]) == ["attention"] * 3
    assert "all calls are one step" in recorder.summary


FUNCTION = """
import torch
torch.manual_seed(0)
def attention(q, k, v):
    scores = q @ k.mT / 8 ** 0.5
    return torch.softmax(scores, -1) @ v
"""
ONCE = f"{FUNCTION}q, k, v = torch.randn(3, 1, 4, 16, 8)\nprint(attention(q, k, v).sum().item())"
LAYERS = f"""{FUNCTION}
wq, wk = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
x = torch.randn(2, 4, 16, 8)
for _ in range(3):
    y = attention(wq(x), wk(x), x)
    y = attention(y, y, y)
    y.sum().backward()
print(y.sum().item())
"""
BY_HAND = f"""{FUNCTION}
w = torch.eye(8).requires_grad_()
x = torch.randn(2, 4, 16, 8)
for _ in range(3):
    attention(x @ w, x, x).sum().backward()
    w.data -= w.grad
print(w.sum().item())
"""
MANY = f"""{FUNCTION}
q, k, v = torch.randn(3, 1, 4, 16, 8)
for _ in range(103):
    q = attention(q, k, v)
print(q.sum().item())
"""


IN_INFERENCE = ONCE.replace("print(", "with torch.inference_mode(): print(")


@pytest.mark.parametrize(("text", "count"), [(IN_INFERENCE, 1), (ONCE, 1), (LAYERS, 2), (BY_HAND, 1), (MANY, 100)])
def test_the_command_records_functions(text: str, count: int, tmp_path: Path) -> None:
    name = program(tmp_path, text)
    done, expected = (
        record(["-o", "a.safetensors", "--", sys.executable, name], tmp_path),
        plain([sys.executable, name], tmp_path),
    )
    assert (done.code, done.out) == (0, expected.out)
    assert f": {count} attention call" in done.err
    assert ("not recorded: calls outside modules after the first 100" in done.err) == (count == 100)
    _, metadata = load(tmp_path / "a.safetensors")
    assert [layer["name"] for layer in metadata["layers"]] == ["attention"] * count
    scale, factors = metadata["layers"][0]["scale"], metadata["layers"][0].get("prescaled", [1.0, 1.0])
    assert scale * factors[0] * factors[1] == pytest.approx(8**-0.5)


T5 = """
import sys, torch, transformers
torch.manual_seed(0)
model = transformers.T5ForConditionalGeneration(transformers.T5Config(
    d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=99, decoder_start_token_id=0)).eval()
ids = torch.randint(3, 99, (1, 12))
"""
GENERATE = "print(model.generate(ids, max_new_tokens=3, do_sample=False).tolist())"
DECODER = ("layer.0.SelfAttention", "layer.1.EncDecAttention")
OF_T5 = [
    *(f"encoder.block.{block}.layer.0.SelfAttention" for block in (0, 1)),
    *(f"decoder.block.{block}.{layer}" for block in (0, 1) for layer in DECODER),
]


def test_a_generation_has_its_encoder(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    scope: dict[str, Any] = {}
    exec(T5, scope)
    model, ids = scope["model"], scope["ids"]
    options = {"max_new_tokens": 3, "do_sample": False}
    expected = model.generate(ids, **options)
    recorder = attn_tui.record(model, tmp_path / "a.safetensors")
    assert torch.equal(model.generate(ids, **options), expected)
    recorder.close()
    assert names(tmp_path / "a.safetensors") == OF_T5
    assert '"model_type": "t5"' in load(tmp_path / "a.safetensors")[1]["config"]


def test_the_command_names_modules_in_the_largest_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    name = program(tmp_path, T5 + GENERATE)
    done = record(["-o", "a.safetensors", "--", sys.executable, name], tmp_path)
    assert done.code == 0, done.err
    assert names(tmp_path / "a.safetensors") == OF_T5
    assert load(tmp_path / "a.safetensors")[1]["model"].endswith("T5ForConditionalGeneration")


TOWERS = f"""{FUNCTION}
class Tower(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.MultiheadAttention(8, 2)])
    def forward(self, x):
        return self.layers[0](x, x, x)[0]
class Text(Tower):
    pass
towers = Tower(), Text(), Text()
for tower in towers:
    print(tower(torch.randn(3, 2, 8)).sum().item())
"""


def test_the_command_tells_modules_of_one_name_apart(tmp_path: Path) -> None:
    name = program(tmp_path, TOWERS)
    done = record(["-o", "a.safetensors", "--", sys.executable, name], tmp_path)
    assert done.code == 0, done.err
    assert names(tmp_path / "a.safetensors") == [f"{tower}.layers.0" for tower in ("Tower", "Text[0]", "Text[1]")]


COMPILED = f"""{FUNCTION}
layer = torch.nn.MultiheadAttention(8, 2).eval()
step = torch.compile(lambda x: layer(x, x, x)[0].sum(), backend="eager")
for _ in range(3):
    print(step(torch.relu(torch.ones(3, 2, 8))).item())
"""


INFERENCE = f"""{FUNCTION}
layer = torch.nn.MultiheadAttention(8, 2).eval()
x = torch.relu(torch.randn(3, 2, 8))
for _ in range(3):
    with torch.inference_mode():
        for _ in range(2):
            print(layer(x, x, x)[0].sum().item())
    print(torch.relu(x).sum().item())
"""


@pytest.mark.parametrize("text", [COMPILED, INFERENCE])
def test_a_mode_that_is_left_inside_does_no_harm_outside(text: str, tmp_path: Path) -> None:
    name = program(tmp_path, text)
    words = [sys.executable, name]
    done, expected = record(["-o", "a.safetensors", "--", *words], tmp_path), plain(words, tmp_path)
    assert (done.code, done.out) == (0, expected.out), done.err
    assert ": 1 attention call seen, 1 recorded" in done.err


def test_both_towers_of_a_model_by_their_own_methods(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers")
    part = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    text = {**part, "vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2}
    config = transformers.CLIPConfig(
        text_config=text, vision_config={**part, "image_size": 32, "patch_size": 8}, projection_dim=16
    )
    model = transformers.CLIPModel(config).eval()
    ids, image = torch.randint(3, 99, (1, 12)), torch.randn(1, 3, 32, 32)
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model.get_image_features(pixel_values=image)
        model.get_text_features(input_ids=ids)
    assert recorder.complete, recorder.summary
    towers = [f"{tower}_model.encoder.layers.0.self_attn" for tower in ("vision", "text")]
    assert names(tmp_path / "a.safetensors") == towers


TEACHER_AND_STUDENT = """
import torch
from torch import nn
class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
    def forward(self, x, keys=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        k, v = (k, v) if keys is None else (torch.cat([a, b], 1) for a, b in zip(keys, (k, v)))
        return (q @ k.mT / 8**0.5).softmax(-1) @ v, (k, v)
teacher, student = nn.ModuleDict({"attn": Cached()}), nn.ModuleDict({"attn": Cached()})
for model in (teacher, student):
    type(model).forward = lambda self, x, keys=None: self["attn"](x, keys)
with torch.no_grad():
    (a, keys_a), (b, keys_b) = teacher(torch.randn(1, 4, 8)), student(torch.randn(1, 4, 8))
    for step in range(5):
        (a, keys_a), (b, keys_b) = teacher(a[:, -1:], keys_a), student(b[:, -1:], keys_b)
"""


def test_two_models_of_the_same_names_generate_beside_each_other(tmp_path: Path) -> None:
    done = record(["-o", "a.safetensors", "--", sys.executable, program(tmp_path, TEACHER_AND_STUDENT)], tmp_path)
    assert done.code == 0
    assert ": 2 attention calls seen, 2 recorded" in done.err
    held, metadata = load(tmp_path / "a.safetensors")
    shapes = [held[f"layers.{place}.attn.{name}"].shape[2] for place in range(2) for name in "qk"]
    assert shapes == [9] * 4
    assert len(metadata["layers"]) == 2
