"""The rules of masks applied to one query and one key at a time: what pictures and badges are compared with."""

from collections.abc import Collection

from transformer.config import AnyModelConfig
from transformer.model.kinds import AttentionKind
from transformer.model.mask_rules import RuleName


def may_see(config: AnyModelConfig, kind: AttentionKind, query: int, key: int, *, lifted: Collection[str] = ()) -> bool:
    """Tells whether a query may see a key that is no padding, by their positions and the masks that were not lifted."""
    if kind is AttentionKind.CROSS:
        return True
    holds: dict[RuleName, bool] = {
        "causal": kind is AttentionKind.DECODER_SELF and config.causal_mask,
        "window": config.window > 0,
    }
    return not any(hides(rule, config, query, key) for rule, is_on in holds.items() if is_on and rule not in lifted)


def hides(rule: RuleName, config: AnyModelConfig, query: int, key: int) -> bool:
    """Tells whether one rule hides a key from a query, wherever it holds."""
    match rule:
        case "causal":
            return key > query
        case "window":
            return not query - config.window <= key <= query + config.window
