"""The rules by which self-attention hides tokens, each described once. Nothing here needs torch.

Padding is no such rule: which keys it hides depends on the batch. A new rule needs three things: a setting of
`config.ModelConfig`, its description here, and its arithmetic in `analysis.attention.mask_reference`, which shares
no arithmetic with it. Quick decoding leaves a model alone until `decoding.plain_steps` follows its rules.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

from transformer.config import ModelConfig
from transformer.model.kinds import AttentionKind, Stack

RuleName = Literal["causal", "window"]


@dataclass(frozen=True, kw_only=True)
class MaskRule:
    """A restriction of self-attention that looks only at how far a key stands from its query."""

    name: RuleName
    """Its name among the masks, as links have it: "causal"."""
    label: str
    """Its name within a sentence: "causal mask"."""
    stacks: tuple[Stack, ...]
    """The stacks whose self-attention it restricts."""
    holds: Callable[[ModelConfig], bool]
    """Tells whether a model of these settings has it."""
    allows: Callable[[Any, ModelConfig], Any]
    """Tells which keys it leaves open, by their distance ahead of the query: a number, an array or a tensor."""
    hidden: str
    """The reason why a cell is hidden."""
    share: str
    """The attention that it forbids, as a share: "on later tokens"."""
    says: Callable[[ModelConfig], str] = lambda config: ""
    """Returns a sentence for pages on which nobody would expect it; empty for what the paper's model has."""
    lacking: str = ""
    """The text on cells that it would hide in a model without it; empty where nobody would miss it."""
    note: str
    """The sentences to know where a switch has lifted it."""
    unfamiliar: str
    """The reason why a model that was trained with it does worse where it is lifted."""
    needs_recomputation: bool
    """True if earlier states depend on later tokens where it is lifted, so that none may be kept."""

    def is_on(self, kind: AttentionKind) -> bool:
        """Tells whether it restricts this kind of attention."""
        return kind.sublayer == "self" and kind.stack in self.stacks


MASK_RULES = (
    MaskRule(
        name="causal",
        label="causal mask",
        stacks=("decoder",),
        holds=lambda config: config.causal_mask,
        allows=lambda ahead, config: ahead <= 0,
        hidden="later than the query",
        share="on later tokens",
        lacking="a causal mask would hide this",
        note="Without the causal mask every position sees later ones, so what was computed at earlier steps is out of "
        "date at each new token. The key/value cache is therefore not used: each step passes the whole prefix "
        "again. The decoder self-attention shown is the last of these passes.",
        unfamiliar="Every position of the decoder now sees the tokens after it too. In training it never did, so they "
        "only confuse it; a model that was trained with them would copy its answers from there.",
        needs_recomputation=True,
    ),
    MaskRule(
        name="window",
        label="window of self-attention",
        stacks=("encoder", "decoder"),
        holds=lambda config: config.window > 0,
        allows=lambda ahead, config: abs(ahead) <= config.window,
        hidden="too far from the query",
        share="beyond the window",
        says=lambda config: (
            "Self-attention is restricted in this model: no token sees another that is more than "
            f"{config.window} {'place' if config.window == 1 else 'places'} away."
        ),
        note="Without the window every token also sees those further away, in the encoder and in the decoder.",
        unfamiliar="Every token now also sees those further away. In training it never did, so they only confuse it.",
        needs_recomputation=False,
    ),
)
"""Every rule, in the order in which masks are listed."""


def rules_of(config: object, kind: AttentionKind | None = None) -> tuple[MaskRule, ...]:
    """Returns the rules that hold in a model, or in one kind of its attention; only Transformers have any."""
    if not isinstance(config, ModelConfig):
        return ()
    return tuple(rule for rule in MASK_RULES if rule.holds(config) and (kind is None or rule.is_on(kind)))


def limits_of(config: object, kind: AttentionKind | None = None, *, but: Collection[str] = ()) -> tuple[str, ...]:
    """Returns a sentence for each rule that holds there and that the paper's model lacks; `but` names lifted ones."""
    rules = (rule for rule in rules_of(config, kind) if rule.name not in but)
    return tuple(said for rule in rules if (said := rule.says(config)))  # type: ignore[arg-type]
