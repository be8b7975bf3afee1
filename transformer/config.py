"""Frozen settings of a model, a training run, a corpus and a decoding, and the presets.

Only plain values live here. Contradictions are refused when a config is built, so that nothing downstream has to check.
"""

from dataclasses import asdict, dataclass
from typing import Literal

from transformer.setting import Check, about, setting

Activation = Literal["relu", "gelu", "swish"]
NormPlacement = Literal["post", "pre", "none"]
PositionKind = Literal["sinusoidal", "learned", "none", "rotary", "alibi"]
ScoreKind = Literal["dot", "additive", "multiplicative"]
CellKind = Literal["lstm", "gru"]
RecurrentAttentionKind = Literal["none", "additive", "dot", "general"]
ScheduleKind = Literal["paper", "constant", "cosine", "wsd"]
OptimizerKind = Literal["adamw", "muon"]
TokenizerKind = Literal["auto", "words", "bpe", "unigram", "char"]
Precision = Literal["auto", "float32", "bfloat16"]
SmoothingKind = Literal["uniform", "unigram"]
DecodeMethod = Literal["greedy", "beam", "sample"]
LengthNorm = Literal["paper", "length"]

FEWEST_SYMBOLS, MOST_SYMBOLS = 4, 64
"""Bounds of the longest strings that copy, reverse and sort can be asked for: of shorter ones there are too few to hold
a thousand out."""
LONGEST_MODEL = 4_096
"""The largest max_length of a model: what is recorded of a sentence grows with its square."""
WSD_DECAY = 0.6
"""The share of all steps over which the schedule `wsd` falls."""
MAX_VOCABULARY = 1_000_000
"""The most vocabulary entries of a model: four times those of the largest multilingual ones."""
WIDEST_BEAM = 256
"""Hypotheses a sentence: time and memory grow with it, translations stop getting better long before."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The architecture of one encoder-decoder Transformer (section 3); the defaults are the paper's base model."""

    family: Literal["transformer"] = setting(
        "transformer", "Model", "A Transformer, or a kind of model that came before it: recurrent or convolutional."
    )
    vocab_size: int = setting(
        37_000, "Vocabulary", "Entries of the joint source and target vocabulary.", least=1, most=MAX_VOCABULARY
    )
    d_model: int = setting(512, "d_model", "Width of every sublayer's input and output.", least=1, most=4096, step=32)
    n_heads: int = setting(
        8,
        "Heads",
        "Attention heads; each has d_k = d_v = d_model / n_heads.",
        noun="the number of heads",
        least=1,
        most=64,
    )
    d_ff: int = setting(2048, "d_ff", "Inner width of the feed-forward sublayer.", least=1, most=16_384, step=32)
    n_encoder_layers: int = setting(6, "Encoder layers", "Encoder layers.", least=1, most=24)
    n_decoder_layers: int = setting(6, "Decoder layers", "Decoder layers.", least=1, most=24)
    activation: Activation = setting(
        "relu",
        "Activation",
        "Non-linearity of the feed-forward sublayer; the paper's is relu.",
    )
    norm: NormPlacement = setting(
        "post",
        "Layer norm",
        "Layer norm after the residual sum (post, the paper), before each sublayer with one final norm a "
        "stack (pre), or none at all.",
    )
    positions: PositionKind = setting(
        "sinusoidal",
        "Positions",
        "How token order enters: the paper's fixed sinusoids, a learned table, not at all, or inside self-"
        "attention alone: queries and keys turned by their position (rotary), or scores lowered with distance"
        " (alibi).",
        noun="positions",
    )
    max_length: int = setting(
        256,
        "Longest sentence, tokens",
        "Longest source or target in tokens; pairs with a longer side are skipped. A learned table has this many rows.",
        noun="the longest sentence",
        least=1,
        most=LONGEST_MODEL,
        step=16,
    )
    dropout: float = setting(
        0.1,
        "Dropout",
        "Dropout on each sublayer's output before the residual sum.",
        share=True,
        step=0.05,
    )
    embedding_dropout: float = setting(
        0.1,
        "Embedding dropout",
        "Dropout on the sum of embedding and position.",
        share=True,
    )
    attention_dropout: float = setting(
        0.0, "Attention dropout", "Dropout on the attention weights.", share=True, step=0.05
    )
    activation_dropout: float = setting(
        0.0,
        "Activation dropout",
        "Dropout after the feed-forward non-linearity.",
        share=True,
        step=0.05,
    )
    causal_mask: bool = setting(
        True,
        "Causal mask",
        "The decoder's self-attention hides later tokens (section 3.2.3). Without it a decoder trained with "
        "the right answer as its input reads the token that it is to predict; it then decodes without a "
        "key/value cache.",
    )
    window: int = setting(
        0,
        "Attention window",
        "How many tokens to either side self-attention may look at (restricted self-attention, section 4 and Table 1);"
        " 0: all. In the decoder the causal mask leaves those before. Scores beyond are computed and hidden, so that "
        "nothing gets faster.",
        least=0,
        most=LONGEST_MODEL,
    )
    score: ScoreKind = setting(
        "dot",
        "Score",
        "How well a query matches a key: their dot product (section 3.2.1), v · tanh(q + k) with a learned vector v "
        "for each head (additive: Bahdanau et al. 2015), which is slower, or q · W k with a learned matrix W for each "
        "head (multiplicative: Luong et al. 2015).",
        noun="the score",
    )
    scale_scores: bool = setting(
        True,
        "Scores divided by √d_k",
        "Attention scores are divided by sqrt(d_k) (section 3.2.1).",
        noun="the division by √d_k",
    )
    residual: bool = setting(
        True,
        "Residual connections",
        "Each sublayer's input is added to its output (section 3.1).",
    )
    tie_embeddings: bool = setting(True, "Shared embedding", "Source and target share one embedding.")
    tie_output: bool = setting(True, "Tied output", "The output projection is the target embedding (section 3.4).")
    output_bias: bool = setting(
        False,
        "Output bias",
        "The output projection adds a bias to each logit; the paper's has none, imported models may.",
    )
    norm_epsilon: float = setting(
        1e-5, "Layer norm epsilon", "Added to the variance inside layer norm.", above=0, step=1e-6
    )
    pad_id: int = setting(0, "Padding id", "Token id that fills short rows of a batch.")
    bos_id: int = setting(1, "Start id", "Token id that starts every decoder input.")
    eos_id: int = setting(2, "End id", "Token id that ends every source and target.")

    def __post_init__(self) -> None:
        check = Check(self)
        if check.sound("d_model", "n_heads") and self.d_model % self.n_heads:
            check.add(
                "d_model",
                "must be divisible by {n_heads}, as each head gets an equal part",
                f"take {_nearest_widths(self)}, or another number of heads",
            )
        if check.sound("d_model", "n_heads", "positions") and self.positions == "sinusoidal" and self.d_model % 2:
            check.add(
                "d_model",
                "must be even for sinusoidal positions, as each frequency needs a sine and a cosine",
                f"take {_nearest_widths(self)}",
            )
        if check.sound("d_model", "n_heads", "positions") and self.positions == "rotary" and self.d_head % 2:
            check.add(
                "d_model",
                f"gives each of {{n_heads}} an odd part ({self.d_head}), and rotary positions turn dimensions in pairs",
                f"take {_nearest_widths(self)}",
            )
        if check.sound("score", "scale_scores") and self.score == "additive" and not self.scale_scores:
            check.add(
                "score",
                "is never divided by √d_k, so that {scale_scores} would do nothing",
                "switch that on, or take dot products",
            )
        if check.sound("score", "positions") and self.score != "dot" and self.positions == "rotary":
            check.add(
                "score",
                "cannot go with {positions}, as only dot products keep the distance of two turned vectors",
                "take other positions, or dot products",
            )
        _check_special_ids(self, check)
        check.refuse()

    @property
    def d_head(self) -> int:
        """Width of one head's queries, keys and values."""
        return self.d_model // self.n_heads

    @property
    def kind_in_words(self) -> str:
        """The kind of model, as a noun."""
        return "Transformer"

    @property
    def missing_parts(self) -> tuple[str, ...]:
        """The parts of the paper's model that these settings leave out, each as a phrase."""
        left_out = {
            "no causal mask": not self.causal_mask,
            "no positions": self.positions == "none",
            "no scaling of scores by 1/√d_k": not self.scale_scores,
            "no residual connections": not self.residual,
            "no layer norm": self.norm == "none",
        }
        return tuple(phrase for phrase, missing in left_out.items() if missing)


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """The architecture of one recurrent encoder-decoder, with or without attention; see `model/recurrent.py`."""

    family: Literal["rnn"] = setting("rnn", "Model", "rnn: an encoder-decoder of LSTMs or GRUs.")
    vocab_size: int = setting(
        37_000, "Vocabulary", "Entries of the joint source and target vocabulary.", least=1, most=MAX_VOCABULARY
    )
    d_model: int = setting(
        128, "d_model", "Width of embeddings and states, both directions together.", least=2, most=4096, step=32
    )
    cell: CellKind = setting("lstm", "Cell", "The recurrent unit: lstm (Hochreiter 1997) or gru (Cho et al. 2014).")
    n_encoder_layers: int = setting(1, "Encoder layers", "Recurrent layers of the encoder.", least=1, most=4)
    n_decoder_layers: int = setting(1, "Decoder layers", "Recurrent layers of the decoder.", least=1, most=4)
    bidirectional: bool = setting(
        True, "Reads both ways", "The encoder reads the source forwards and backwards, half its width each."
    )
    attention: RecurrentAttentionKind = setting(
        "none",
        "Attention",
        "none: the decoder starts from one fixed vector and sees no more of the source. additive: Bahdanau et al. "
        "2015; dot, general: Luong et al. 2015.",
        noun="attention",
    )
    input_feeding: bool = setting(
        False,
        "Input feeding",
        "What the last step gathered is fed into the next one (Luong et al. 2015, section 3.3); additive attention "
        "always does so in its own way.",
    )
    max_length: int = setting(
        256,
        "Longest sentence, tokens",
        "Longest source or target in tokens; pairs with a longer side are skipped.",
        noun="the longest sentence",
        least=1,
        most=LONGEST_MODEL,
        step=16,
    )
    dropout: float = setting(
        0.1, "Dropout", "Dropout on embeddings, between layers and on outputs.", share=True, step=0.05
    )
    tie_embeddings: bool = setting(True, "Shared embedding", "Source and target share one embedding.")
    tie_output: bool = setting(True, "Tied output", "The output projection is the target embedding.")
    pad_id: int = setting(0, "Padding id", "Token id that fills short rows of a batch.")
    bos_id: int = setting(1, "Start id", "Token id that starts every decoder input.")
    eos_id: int = setting(2, "End id", "Token id that ends every source and target.")

    def __post_init__(self) -> None:
        check = Check(self)
        if check.sound("d_model", "bidirectional") and self.bidirectional and self.d_model % 2:
            check.add(
                "d_model",
                "must be even where the encoder reads both ways, as each direction has half of it",
                f"take {self.d_model - 1} or {self.d_model + 1}",
            )
        if check.sound("input_feeding", "attention") and self.input_feeding and self.attention in ("none", "additive"):
            check.add(
                "input_feeding",
                "is for dot and general attention and would do nothing with {attention}",
                "switch it off, or take one of them",
            )
        _check_special_ids(self, check)
        check.refuse()

    @property
    def n_heads(self) -> int:
        """Heads of a block of attention: its whole width is one."""
        return 1

    @property
    def d_head(self) -> int:
        """Width of that head."""
        return self.d_model

    @property
    def is_sequential(self) -> bool:
        """True if what attention gathers enters the recurrence, so that training too goes token by token."""
        return self.attention == "additive" or self.input_feeding

    @property
    def missing_parts(self) -> tuple[str, ...]:
        """None: it is another model, not the paper's with something left out."""
        return ()

    @property
    def kind_in_words(self) -> str:
        """The kind of model, as a noun."""
        return "recurrent model"

    @property
    def attention_in_words(self) -> str:
        """How the decoder reads the source, as a phrase: "without attention"."""
        if self.attention == "none":
            return "without attention"
        return f"with {self.attention} attention" + (" and input feeding" if self.input_feeding else "")

    @property
    def made_of(self) -> str:
        """What its layers are, and how they read the source, as a phrase."""
        return f"{self.cell.upper()}s, {self.attention_in_words}"

    @property
    def further(self) -> tuple[str, ...]:
        """Further facts for its card, each as a phrase."""
        return ("read both ways",) if self.bidirectional else ()

    @property
    def portrait(self) -> str:
        """Two sentences on how it works, after "This is not a Transformer but a "."""
        reads = "reads the source both ways" if self.bidirectional else "reads the source once, forwards"
        return (
            f"recurrent model ({self.cell.upper()}, {self.attention_in_words}). It {reads} and carries one state from "
            "token to token; it has no self-attention."
        )

    @property
    def carried(self) -> int:
        """Numbers that its decoder carries from one token to the next."""
        return self.n_decoder_layers * self.d_model * (2 if self.cell == "lstm" else 1)

    # Facts that a Transformer has as settings.

    @property
    def causal_mask(self) -> bool:
        """True: a recurrent decoder never sees later tokens."""
        return True

    @property
    def positions(self) -> PositionKind:
        """None are added: the order of tokens is the order of reading."""
        return "none"

    @property
    def norm(self) -> NormPlacement:
        """There is no layer norm."""
        return "none"


@dataclass(frozen=True, kw_only=True)
class ConvolutionalConfig:
    """The architecture of one convolutional encoder-decoder with attention; see `model/convolutional.py`."""

    family: Literal["conv"] = setting("conv", "Model", "conv: an encoder-decoder of dilated convolutions.")
    vocab_size: int = setting(
        37_000, "Vocabulary", "Entries of the joint source and target vocabulary.", least=1, most=MAX_VOCABULARY
    )
    d_model: int = setting(128, "d_model", "Width of embeddings and states.", least=1, most=4096, step=32)
    kernel: int = setting(
        3, "Kernel", "Positions that a convolution looks at, an odd number: its own in the middle.", least=3, most=9
    )
    dilated: bool = setting(
        True,
        "Dilated",
        "Layer i looks at every 2^i-th position (ByteNet: Kalchbrenner et al. 2016); else at neighbours (ConvS2S: "
        "Gehring et al. 2017).",
    )
    separable: bool = setting(
        False,
        "Separable",
        "Each convolution first mixes positions within a channel, then channels within a position: fewer weights.",
    )
    n_encoder_layers: int = setting(3, "Encoder layers", "Convolutions of the encoder.", least=1, most=8)
    n_decoder_layers: int = setting(
        3, "Decoder layers", "Convolutions of the decoder, each with its own attention to the source.", least=1, most=8
    )
    max_length: int = setting(
        256,
        "Longest sentence, tokens",
        "Longest source or target in tokens; pairs with a longer side are skipped.",
        noun="the longest sentence",
        least=1,
        most=LONGEST_MODEL,
        step=16,
    )
    dropout: float = setting(
        0.1, "Dropout", "Dropout on embeddings and on the input of each convolution.", share=True, step=0.05
    )
    tie_embeddings: bool = setting(True, "Shared embedding", "Source and target share one embedding.")
    tie_output: bool = setting(True, "Tied output", "The output projection is the target embedding.")
    pad_id: int = setting(0, "Padding id", "Token id that fills short rows of a batch.")
    bos_id: int = setting(1, "Start id", "Token id that starts every decoder input.")
    eos_id: int = setting(2, "End id", "Token id that ends every source and target.")

    def __post_init__(self) -> None:
        check = Check(self)
        if check.sound("kernel") and self.kernel % 2 == 0:
            check.add("kernel", "must be odd", f"take {self.kernel - 1} or {self.kernel + 1}")
        _check_special_ids(self, check)
        check.refuse()

    def dilation(self, layer: int) -> int:
        """Returns the distance between two neighbouring positions that a layer looks at."""
        return 2**layer if self.dilated else 1

    def reach(self, n_layers: int) -> int:
        """Returns the distance to the furthest position that a state after so many layers can depend on; in an encoder,
        half of it on either side."""
        return sum((self.kernel - 1) * self.dilation(layer) for layer in range(n_layers))

    @property
    def n_heads(self) -> int:
        """Heads of a block of attention: its whole width is one."""
        return 1

    @property
    def d_head(self) -> int:
        """Width of that head."""
        return self.d_model

    @property
    def missing_parts(self) -> tuple[str, ...]:
        """None: it is another model, not the paper's with something left out."""
        return ()

    @property
    def kind_in_words(self) -> str:
        """The kind of model, as a noun."""
        return "convolutional model"

    @property
    def made_of(self) -> str:
        """What its layers are, and how they read the source, as a phrase."""
        kinds = [name for name in ("dilated", "separable") if getattr(self, name)]
        return f"{' '.join([*kinds, 'convolutions'])}, with attention in each decoder layer"

    @property
    def further(self) -> tuple[str, ...]:
        """Further facts for its card, each as a phrase."""
        return (f"kernel {self.kernel}",)

    @property
    def portrait(self) -> str:
        """Two sentences on how it works, after "This is not a Transformer but a "."""
        return (
            f"convolutional model ({self.made_of}). A state of its encoder depends on the "
            f"{self.reach(self.n_encoder_layers) // 2} tokens on either side, one of its decoder on the last "
            f"{self.reach(self.n_decoder_layers) + 1} tokens written; it has no self-attention."
        )

    @property
    def carried(self) -> int:
        """Numbers that its decoder carries from one token to the next."""
        return self.d_model * self.reach(self.n_decoder_layers)

    # Facts that a Transformer has as settings.

    @property
    def causal_mask(self) -> bool:
        """True: its decoder's convolutions look back alone."""
        return True

    @property
    def positions(self) -> PositionKind:
        """None are added: a convolution knows which of its inputs stands where."""
        return "none"

    @property
    def norm(self) -> NormPlacement:
        """There is no layer norm."""
        return "none"


AnyModelConfig = ModelConfig | RecurrentConfig | ConvolutionalConfig
"""The settings of a model of any family."""
FAMILIES: dict[str, type[ModelConfig] | type[RecurrentConfig] | type[ConvolutionalConfig]] = {
    "transformer": ModelConfig,
    "rnn": RecurrentConfig,
    "conv": ConvolutionalConfig,
}
"""The families of models, by their names."""


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """The parallel text that a run learns from, and its tokenizer."""

    name: str = setting(
        "reverse",
        "Corpus",
        "A generated corpus (see `transformer.data.corpora.CORPORA`), or the path of a file of pairs: TSV, CSV, JSONL "
        "or TMX.",
    )
    columns: str | None = setting(
        None,
        "Columns",
        "The columns of a file that hold source and target, such as en,fr or 2,4; left empty: found by their names and "
        "their content.",
    )
    seed: int = setting(0, "Corpus seed", "Seed of generated text.", most=2**31 - 1)
    longest: int | None = setting(
        None,
        "Longest string, symbols",
        "Strings of copy, reverse and sort have 1 to so many symbols; left empty: 10.",
        noun="the longest string",
        least=FEWEST_SYMBOLS,
        most=MOST_SYMBOLS,
        empty="10",
    )
    tokenizer: TokenizerKind = setting(
        "auto",
        "Tokenizer",
        "Kind of token; auto takes whole words for generated text, bpe for files, where each character of a script "
        "without spaces is a token of its own.",
    )
    vocab_size: int | None = setting(
        None,
        "Vocabulary",
        "Tokens of a bpe or unigram tokenizer, source and target together; left empty: what suits the number of "
        "pairs (1,000 to 32,000), or the most that the text allows.",
        least=8,
        most=100_000,
        empty="auto",
    )

    def __post_init__(self) -> None:
        check = Check(self)
        if check.sound("columns") and self.columns is not None:
            named = [part.strip() for part in self.columns.split(",")]
            if not (len(named) == 2 and all(named) and named[0] != named[1]):
                check.add("columns", "must name two columns with a comma between them, the source first", "en,fr")
        check.refuse()


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of a training; section 5 of the paper, with sizes for two cores."""

    max_steps: int = setting(
        1_000,
        "End after, steps",
        "Optimiser steps after which training ends.",
        noun="the number of steps",
        least=1,
        most=1_000_000,
    )
    max_seconds: float | None = setting(
        None,
        "End after, seconds",
        "Seconds of training after which it ends; with steps too, whichever comes first. Left empty: no limit.",
        noun="the number of seconds",
        above=0,
        most=1_000_000,
        empty="no limit",
    )
    target_exact_match: float | None = setting(
        None,
        "End early at exact match",
        "End as soon as validation exact match (0..1) reaches this; left empty: train to the end.",
        noun="exact match",
        above=0,
        most=1,
        empty="never",
    )
    patience: int | None = setting(
        None,
        "End early without gain, evaluations",
        "End after this many evaluations in a row without a lower validation loss; left empty: train to the end.",
        noun="the number of evaluations",
        above=0,
        most=10_000,
        empty="never",
    )
    batch_tokens: int = setting(
        1_536,
        "Tokens a batch",
        "Tokens in a micro-batch, padding included, on the longer side.",
        least=1,
        most=100_000,
        step=256,
    )
    accumulate: int = setting(
        1,
        "Batches a step",
        "Micro-batches summed into one optimiser step, normalised by their real tokens.",
        least=1,
        most=10_000,
    )
    schedule: ScheduleKind = setting(
        "paper",
        "Schedule",
        "Course of the learning rate: the paper's warm-up and inverse square root, constant, cosine to zero, or wsd: "
        "constant, then straight to zero over the last 60 % of the steps.",
        noun="the schedule",
    )
    optimizer: OptimizerKind = setting(
        "adamw",
        "Optimiser",
        "adamw, the paper's Adam with decoupled weight decay, or muon: steps of equal size in every direction of the "
        "layers' matrices, and Adam for all else.",
    )
    learning_rate: float = setting(
        2e-3,
        "Learning rate",
        "Peak learning rate, reached at the end of the warm-up.",
        above=0,
        most=10,
        step=1e-4,
    )
    warmup_steps: int = setting(
        100,
        "Warm-up, steps",
        "Steps of linear warm-up (every schedule).",
        noun="the warm-up",
        least=0,
        most=1_000_000,
        step=50,
    )
    label_smoothing: float = setting(
        0.1,
        "Label smoothing",
        "Share of the probability spread over all tokens (section 5.4).",
        share=True,
        step=0.05,
    )
    smoothing: SmoothingKind = setting(
        "uniform",
        "Smoothed towards",
        "How label smoothing spreads its share: over all tokens alike (uniform, as in the paper), or over each in "
        "proportion to how often training predicts it (unigram: Pereyra et al. 2017).",
    )
    beta1: float = setting(0.9, "Adam beta 1", "Adam's decay of the mean gradient.", share=True, step=0.01)
    beta2: float = setting(0.98, "Adam beta 2", "Adam's decay of the mean squared gradient.", share=True, step=0.01)
    epsilon: float = setting(1e-9, "Adam epsilon", "Adam's epsilon.", above=0, step=1e-9)
    momentum: float = setting(0.95, "Muon momentum", "Muon's decay of the mean gradient.", share=True, step=0.01)
    weight_decay: float = setting(
        0.0,
        "Weight decay",
        "Decoupled weight decay on matrices and embeddings, not on gains, biases and other vectors; the paper: 0.",
        least=0,
        step=0.01,
    )
    clip_norm: float = setting(
        1.0,
        "Gradient clipping",
        "Gradient norm above which gradients are scaled down; 0 switches clipping off.",
        least=0,
    )
    evaluate_every: int = setting(
        50,
        "Steps between evaluations",
        "Steps between evaluations.",
        least=1,
        most=1_000_000,
        step=10,
    )
    evaluate_pairs: int = setting(
        200,
        "Pairs an evaluation",
        "Validation pairs translated and scored at each evaluation.",
        least=1,
        most=1_000_000,
    )
    test_pairs: int = setting(
        1_000,
        "Held-out pairs",
        "Pairs of each held-out split translated and scored at the end, for the card.",
        least=1,
        most=1_000_000,
    )
    average_last: int = setting(
        1,
        "Evaluations averaged",
        "Weights of this many last evaluations are averaged into the final weights (section 6.1); 1 keeps the last.",
        least=1,
        most=1_000,
    )
    seed: int = setting(0, "Seed", "Seed of initial weights, data order and dropout.", most=2**31 - 1)
    device: str = setting("auto", "Device", "auto (the best one present), cpu, cuda, cuda:N or mps.")
    precision: Precision = setting(
        "auto",
        "Precision",
        "float32, bfloat16 autocast, or auto: bfloat16 only where it measures faster.",
    )
    threads: int | None = setting(
        None,
        "CPU threads",
        "CPU threads; left empty: all, or one while another run is training.",
        above=0,
        most=256,
        empty="auto",
    )
    compile: bool = setting(
        False,
        "Compiled",
        "Compile the forward pass with torch.compile; pays on a GPU, not on two cores.",
    )

    def __post_init__(self) -> None:
        check = Check(self)
        if check.sound("max_steps", "schedule", "warmup_steps") and self.schedule == "wsd":
            plateau = wsd_plateau(self.max_steps)
            if self.warmup_steps > plateau:
                check.add(
                    "warmup_steps",
                    f"must end by step {plateau:,}, from which {{schedule}} falls to 0",
                    "take fewer steps of warm-up, more in all, or another schedule",
                )
        check.refuse()

    @property
    def final_weights(self) -> Literal["latest", "averaged", "best"]:
        """The final weights of a run: averaged if `average_last` asks, else the best if `patience` may pass them."""
        if self.average_last > 1:
            return "averaged"
        return "latest" if self.patience is None else "best"


def wsd_plateau(max_steps: float) -> int:
    """Returns the last step before the schedule `wsd` falls."""
    return int((1 - WSD_DECAY) * max_steps + 1e-6)  # 40 % of 5 steps are 2, though floats say a little less


CONFIGS: dict[str, type] = {"model": ModelConfig, "train": TrainConfig, "corpus": CorpusConfig}
"""The parts of a run's settings, by the names before the dot in "model.n_heads"."""


def label_of(setting: str) -> str:
    """The label of a setting named with its section, as in "model.n_heads"."""
    section, _, name = setting.partition(".")
    kinds = FAMILIES.values() if section == "model" else (CONFIGS[section],)
    return next(about(kind, name).label for kind in kinds if name in kind.__dataclass_fields__)


def value_text(value: object) -> str:
    """The value of a setting in a word: "yes", "0.001", "–" for none."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
    return str(value)


def missing_parts(model: AnyModelConfig, train: TrainConfig) -> tuple[str, ...]:
    """The parts of the paper's model and training that these settings leave out, each as a phrase."""
    left_out = {"no label smoothing": train.label_smoothing == 0, "no warm-up": train.warmup_steps == 0}
    return (*model.missing_parts, *(phrase for phrase, missing in left_out.items() if missing))


_METHOD_OF: dict[str, DecodeMethod] = {
    **dict.fromkeys(("beam", "alpha", "length_norm", "early_stopping"), "beam"),
    **dict.fromkeys(("temperature", "top_k", "top_p", "min_p", "seed"), "sample"),
}


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """Settings of decoding."""

    method: DecodeMethod = setting(
        "greedy", "Method", "The most probable token each time, a beam of hypotheses, or tokens sampled at random."
    )
    max_length: int | None = setting(
        None,
        "Most tokens",
        "Most tokens written, the end token included; None: as many as the model can.",
        least=1,
        most=LONGEST_MODEL,
    )
    min_length: int = setting(
        0, "Fewest tokens", "The fewest tokens, the end token included.", least=0, most=LONGEST_MODEL
    )
    no_repeat_ngram: int = setting(
        0,
        "No repeated n-gram",
        "No n tokens in a row are written twice; 0 allows it.",
        least=0,
        most=LONGEST_MODEL,
    )
    n_best: int = setting(
        1, "Outputs", "Outputs for each text: the best of the beam, or as many samples.", least=1, most=1_000
    )
    beam: int = setting(4, "Beam size", "Hypotheses kept for each sentence (method beam).", least=1, most=WIDEST_BEAM)
    alpha: float = setting(
        0.6,
        "Strength of the length norm, α",
        "Strength of the length norm by which a hypothesis's log-probability is divided (method beam).",
        least=0,
        most=10,
        step=0.1,
        fix="0 is no length norm",
    )
    length_norm: LengthNorm = setting(
        "paper",
        "Length norm",
        "paper: ((5 + length) / 6) ** alpha. length: length ** alpha, as in fairseq and transformers (method beam).",
    )
    early_stopping: bool = setting(
        False,
        "Stop early",
        "Stop once as many hypotheses have ended as the beam is wide, though another may overtake them (method beam).",
    )
    temperature: float = setting(
        1.0,
        "Temperature",
        "Log-probabilities are divided by it: below 1 sharpens, above 1 flattens (method sample).",
        least=0.01,
        most=100,
        step=0.1,
        fix="for the most probable token each time, take the method greedy",
    )
    top_k: int = setting(
        0,
        "Top-k",
        "Draw from the k most probable tokens; 0 from all (method sample).",
        least=0,
        most=MAX_VOCABULARY,
        fix="0 draws from all tokens",
    )
    top_p: float = setting(
        1.0,
        "Top-p",
        "Draw from the fewest tokens that together have this probability (method sample).",
        above=0,
        most=1,
        step=0.05,
        fix="1 draws from all tokens",
    )
    min_p: float = setting(
        0.0,
        "Min-p",
        "Draw from tokens at least this fraction as probable as the most probable one (method sample).",
        least=0,
        most=1,
        step=0.05,
        fix="0 draws from all tokens",
    )
    seed: int = setting(0, "Seed", "The seed of the draws (method sample).", least=0, most=2**63 - 1)
    cache: bool = setting(
        True,
        "Cache",
        "Keep keys and values between steps; switched off where an intervention would make them wrong.",
    )

    def __post_init__(self) -> None:
        check = Check(self)
        if check.sound("min_length", "max_length") and self.max_length is not None:
            if self.min_length > self.max_length:
                check.add("min_length", "must not be above {max_length}")
        if check.sound("n_best", "method", "beam"):
            if self.method == "greedy" and self.n_best > 1:
                check.add("n_best", "must be 1, as greedy decoding has one output", "take a beam, or samples")
            elif self.method == "beam" and self.n_best > self.beam:
                check.add("n_best", "must not be above {beam}, which holds no more", "take fewer, or a wider beam")
        for name, method in _METHOD_OF.items():
            changed = getattr(self, name) != self.__dataclass_fields__[name].default
            if check.sound(name, "method") and self.method != method and changed:
                check.add(name, f"is for the method {method} and would do nothing: the method is {self.method}")
        check.refuse()

    @property
    def in_force(self) -> dict[str, object]:
        """The method, its own settings, and what else is not as usual."""
        usual = asdict(DecodeConfig())
        return {
            name: value
            for name, value in asdict(self).items()
            if name == "method" or _METHOD_OF.get(name) == self.method or value != usual[name]
        }


def _check_special_ids(config: AnyModelConfig, check: Check) -> None:
    specials = (config.pad_id, config.bos_id, config.eos_id)
    if not check.sound("vocab_size", "pad_id", "bos_id", "eos_id"):
        return
    if len(set(specials)) < 3 or not all(0 <= each < config.vocab_size for each in specials):
        check.add("pad_id", "must be an id of its own like {bos_id} and {eos_id}, each below {vocab_size}")


def _nearest_widths(config: ModelConfig) -> str:
    """Returns the nearest widths that the heads divide: even ones, so that sinusoidal positions are possible, and for
    rotary ones even for each head."""
    heads = config.n_heads
    step = heads if heads % 2 == 0 and config.positions != "rotary" else 2 * heads
    below = config.d_model // step * step
    most = about(ModelConfig, "d_model").most
    return " or ".join(str(width) for width in (below, below + step) if 0 < width <= most)


PRESETS: dict[str, ModelConfig] = {
    "tiny": ModelConfig(d_model=64, n_heads=4, d_ff=256, n_encoder_layers=2, n_decoder_layers=2, max_length=64),
    "small": ModelConfig(d_model=128, n_heads=4, d_ff=512, n_encoder_layers=2, n_decoder_layers=2, max_length=128),
    "medium": ModelConfig(d_model=256, n_heads=8, d_ff=1024, n_encoder_layers=3, n_decoder_layers=3, max_length=128),
    "paper-base": ModelConfig(),
    "paper-big": ModelConfig(d_model=1024, n_heads=16, d_ff=4096, dropout=0.3, embedding_dropout=0.3),
}
"""Named sizes. The vocabulary of a preset is replaced by that of the tokenizer when a run is made."""
