"""Files of simple sentences in English and another language, such as a beginner brings."""

from itertools import permutations
from random import Random

_NOUNS = ("cat", "dog", "bird", "horse", "boy", "king", "bear", "wolf")
_VERBS = ("sees", "follows", "hears", "knows", "helps", "loves", "seeks", "paints")
TOY_WORDS: dict[str, tuple[str, str, str]] = {
    "French": (
        "chat chien oiseau cheval garçon roi ours loup",
        "voit suit entend connaît aide aime cherche peint",
        "Le {0} {1} le {2}.",
    ),
    "Chinese": ("猫 狗 鸟 马 男孩 国王 熊 狼", "看见 跟随 听见 认识 帮助 喜爱 寻找 画", "{0}{1}{2}。"),
    "Japanese": (
        "ねこ 犬 鳥 馬 少年 王様 くま おおかみ",
        "を見る についていく を聞く を知っている を助ける が大好きだ を探している を描く",
        "{0}は{2}{1}。",
    ),
    "Thai": ("แมว สุนัข นก ม้า เด็กชาย กษัตริย์ หมี หมาป่า", "เห็น ตาม ได้ยิน รู้จัก ช่วย รัก ตามหา วาด", "{0}{1}{2}"),
}
"""Nouns, verbs and the order of a sentence in each language."""


def toy_file(language: str, n_pairs: int = 448) -> str:
    """Returns so many lines of an English sentence, a tab and its translation; the sentences are the same for all."""
    nouns, verbs, order = TOY_WORDS[language]
    noun, verb = (dict(zip(*pair, strict=True)) for pair in ((_NOUNS, nouns.split()), (_VERBS, verbs.split())))
    facts = [(a, v, b) for a, b in permutations(_NOUNS, 2) for v in _VERBS]
    Random(0).shuffle(facts)
    lines = (f"The {a} {v} the {b}.\t{order.format(noun[a], verb[v], noun[b])}\n" for a, v, b in facts[:n_pairs])
    return "".join(lines)
