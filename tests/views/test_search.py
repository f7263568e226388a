"""Finding items of the Learn pane by the words of study notes, in Chinese and in English."""

import pytest
from attn_tui.core.learning.bugs import BUGS
from attn_tui.core.learning.items import AT, ITEMS
from attn_tui.tui.views.fields.choices import Choice
from attn_tui.tui.views.fields.items import item_row
from attn_tui.tui.views.fields.matching import in_texts, matching
from attn_tui.tui.views.fields.synonyms import TERMS

ROWS = [item_row(item, item.id, "") for item in ITEMS]

# By the item that is among the first: words of the five study notes that the tour answers, and their English.
OF_NOTES = {
    "overflow": "数值稳定性 数值稳定 数值溢出 溢出 数值爆炸 浮点数; numerical stability; overflow; floating point",
    "vanishing-gradients": (
        "梯度消失 梯度接近0 梯度健康 梯度稳定性 梯度优化 梯度爆炸 梯度范数; "
        "vanishing gradient; exploding gradient; gradient norm"
    ),
    "why-sqrt": (
        "独立同分布 随机变量 为什么除以根号 面试 特征维度 维度无关性 高维空间 维度灾难 "
        "方差 方差增长 线性增长 方差控制 标准化; "
        "i.i.d.; random variable; curse of dimensionality; variance; interview"
    ),
    "score": "标准差 期望 均值; standard deviation; mean; footnote; dot product",
    "laws": "正态分布 分量; mean",
    "grow-like-d": "点积 内积 维度 数学推导; inner product; dot product",
    "softmax": (
        "饱和 softmax饱和 数值极端化 极端分布 数值示例 平滑 过于集中 权重集中 未归一化 概率分布 分布退化; "
        "saturation; smooth"
    ),
    "why-not-d_k": "过于平均 区分性 选择性 均匀; uniform",
    "optimum": "最优解 推导; optimal",
    "scales": "缩放 熵 信息熵 温度; log(dk); temperature",
    "temperature": "温度 温度参数; temperature",
    "d_model-or-d_head": "根号 根号d",
    "additive": "加性注意力 前馈网络; additive attention; Bahdanau",
    "cosine": "相似度 余弦相似度; cosine similarity",
    "qk-norm": "归一化 模长",
    "unit-variance": "初始化 批归一化 层归一化; batch normalization; layer normalization; LayerNorm; Xavier",
    "initialisation": "初始化; Kaiming; initialization",
    "heads": (
        "多头 多头注意力 子空间 拼接 全连接层 局部与全局 全局依赖 参数量 参数效率; "
        "multi-head; subspace; concat; output projection; parameter count; number of parameters"
    ),
    "positions": "位置编码 相对位置编码; positional encoding; relative position",
    "drop-at-inference": "推理 推理阶段; inference",
    "learn-it": "表达能力 线性变换 参数矩阵; linear layer",
    "training": (
        "收敛 难以收敛 训练困难 训练稳定 训练不稳定 反向传播 参数更新 鲁棒性; "
        "convergence; backpropagation; robustness"
    ),
    "q-or-scores": "计算效率 开销; efficiency",
    "number-of-keys": "长序列; long sequences",
    "too-peaked": "尖锐 自注意力 注意力机制 软性关注; self-attention; peaked",
}  # fmt: skip


def words_of(table: str) -> list[str]:
    """Return the words of an entry: Chinese ones stand between spaces, then English ones between semicolons."""
    chinese, *english = table.split("; ")
    return [*(chinese.split() if not chinese.isascii() else [chinese]), *english]


@pytest.mark.parametrize("item", OF_NOTES)
def test_the_words_of_the_notes_find_what_answers_them(item: str) -> None:
    for words in words_of(OF_NOTES[item]):
        found = [row.value for row in matching(ROWS, words, guess=False)]
        assert item in found[:12], f"{words} finds {found[:12]}"


def test_every_other_word_stands_for_one_that_finds_an_item() -> None:
    for word, others in TERMS.items():
        assert matching(ROWS, word, guess=False), word
        for other in others:
            assert other == other.casefold()
            assert in_texts(other) == word


def test_the_name_of_a_section_finds_all_of_it() -> None:
    for words in ("bug", "find the bug", "找错误"):
        found = {row.value for row in matching(ROWS, words)}
        assert found >= {item.id for item in ITEMS if item.kind == "bug"}


def test_characters_of_a_chinese_word_may_have_a_few_others_between_them() -> None:
    rows = [Choice(name, name) for name in ("点积的方差", "点积，方差", "方差与点积", "点与它们的积")]
    assert [row.name for row in matching(rows, "点积方差")] == ["点积的方差", "点积，方差"]


def test_the_cause_of_a_bug_is_not_told_by_what_finds_it() -> None:
    for bug in BUGS:
        row = item_row(ITEMS[AT[bug.id]], "", "")
        assert bug.lesson not in (row.help, *row.words, *row.also)
