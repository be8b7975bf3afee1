"""What stations are called on the map, on links and above their titles: the words of the paper's figures."""

from transformer.analysis.trace.steps import Station
from transformer.model.transformer import Transformer

ACTIVATION_NAMES = {"relu": "ReLU", "gelu": "GELU", "swish": "swish"}


def short_name(station: Station, model: Transformer) -> str:
    """The station's name on the map and on links, in the words of the paper's figures."""
    config = model.config
    if station.sublayer == "ffn" and station.name == "output":
        return "× W₂"
    decoder = station.stack == "decoder"
    match station.name:
        case "ids":
            return "Outputs (shifted right)" if decoder else "Inputs"
        case "embedding":
            return "Output embedding" if decoder else "Input embedding"
        case "positions":
            return "+ position"
        case "norm" | "final":
            return "Norm"
        case "qkv":
            return "Q, K, V" + ", turned" * (config.positions == "rotary" and station.sublayer == "self")
        case "products":
            return "MatMul QKᵀ"
        case "scaled":
            return "Scale ÷ √dₖ"
        case "penalty":
            return "− ALiBi penalty"
        case "masked":
            return "Mask"
        case "weights":
            return "Softmax"
        case "context":
            return "MatMul with V"
        case "concat":
            return "Concat"
        case "output":
            return "Linear Wᴼ"
        case "hidden":
            return f"× W₁, {ACTIVATION_NAMES[config.activation]}"
        case "add":
            return _add_name(model)
        case "layers":
            return "All layers"
        case "logits":
            return "Linear"
        case "probabilities":
            return "Softmax"
    raise AssertionError(f"{station} has no name")


def sublayer_name(station: Station, *, masked: bool = True) -> str:
    """The box of figure 1 in which a station stands, for the line above its title; `masked`: later tokens are hidden
    from the decoder."""
    names = {
        ("encoder", "self"): "self-attention",
        ("decoder", "self"): "masked self-attention" if masked else "self-attention",
        ("decoder", "cross"): "cross-attention",
        ("encoder", "ffn"): "feed-forward",
        ("decoder", "ffn"): "feed-forward",
    }
    return "" if station.sublayer is None else names[station.stack, station.sublayer]


def _add_name(model: Transformer) -> str:
    """What stands behind a block: the sum, the norm or both."""
    if not model.config.residual:
        return "Norm"
    return "Add & norm" if model.config.norm == "post" else "Add"
