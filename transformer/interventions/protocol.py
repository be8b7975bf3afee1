"""The interface of every intervention, with a default for all that most of them do not need.

An intervention is frozen data that prints as its URL form and compiles into one tap. Code outside this package never
asks for its class: it asks for facts (what is replaced, overwritten, forbidden, lifted) and for words (label, notes,
idle). A new intervention is a frozen dataclass with `prefix`, `usage`, `parse`, `__str__`, `sites`, `apply` and
`label`, named once in INTERVENTIONS.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

from torch import Tensor

from transformer.interventions.names import plural, sublayer_name
from transformer.model.mask_rules import RuleName
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Address, Site, Stack, Sublayer
from transformer.text.sentence import Sentence

MaskKind = Literal["padding", "cross", RuleName]
ReplacedBy = Literal["zero", "mean", "copy"]
HeadPlace = tuple[str, int, str, int]
"""Stack, layer, block and head."""


@runtime_checkable
class Applied(Protocol):
    """The part of an intervention that a compiled tap calls at a site."""

    def apply(self, site: Site, tensor: Tensor, /) -> Tensor: ...


@runtime_checkable
class Resources(Protocol):
    """The resources that complete an intervention; a Lab has them."""

    @property
    def model(self) -> Seq2Seq: ...

    def means_by_sublayer(self) -> Mapping[str, Tensor]: ...

    def sentence(self, text: str) -> Sentence: ...


@dataclass(frozen=True, eq=False)
class Replaced:
    """One tensor of a block in whose place an intervention puts something that this pass did not compute."""

    tensor: str
    """The name of the tensor, as a site has it."""
    by: ReplacedBy
    heads: tuple[int, ...] | None = None
    """None: all, or a tensor without heads."""
    positions: tuple[int, ...] | None = None
    """None: all."""
    rows: Tensor | None = None
    """The copied activations at each of `positions`; None for no copy, or before it is resolved."""


@dataclass(frozen=True)
class OverwrittenRow:
    """A row of one head's weights that an intervention sets."""

    head: int
    query: int
    weights: tuple[float, ...]
    """The weights from key 0 on, summing to 1; empty if the row is even over the allowed keys."""

    @property
    def is_even(self) -> bool:
        return not self.weights


class Intervention(ABC):
    """A change of one forward pass."""

    prefix: ClassVar[str]
    """The word before the first colon of its URL form."""
    usage: ClassVar[str]
    """A line of Markdown with an example of the URL form and what it does."""
    order: ClassVar[int] = 1
    """Copies (0) are applied first, and what closes or sets to zero (2) last, so that it stays so."""
    preparation: ClassVar[str] = ""
    """The text of the spinner while it is resolved."""
    title: ClassVar[str] = ""
    """The section of the panel with a form made from its fields; empty: none, or one written by hand."""
    action: ClassVar[str] = ""
    """The button of that form."""
    hint: ClassVar[str] = ""
    """The line under that form."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> "Intervention | None":
        """The intervention that prints as `text`, which begins with its prefix; None if none does."""

    @abstractmethod
    def __str__(self) -> str:
        """The URL form."""

    @abstractmethod
    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        """Returns the sites that it changes; ValueError if the model lacks them or nothing would change."""

    @abstractmethod
    def apply(self, site: Site, tensor: Tensor, /) -> Tensor:
        """The tensor that the pass goes on with."""

    @abstractmethod
    def label(self) -> str:
        """Returns its description as plain text: Markdown needs it escaped."""

    # Before a pass

    def bound(self, model: Seq2Seq, others: "Sequence[Intervention]" = ()) -> Applied:
        """Returns what is applied in passes of this model, among others in the same pass."""
        return self

    def resolve(self, resources: Resources) -> "Intervention":
        """The intervention with what it needs from elsewhere; ValueError where that cannot be had."""
        return self

    def check_source(self, n_tokens: int) -> None:  # noqa: B027 - most have nothing to check
        """Raises ValueError for positions that a source of so many tokens (end mark included) does not have."""

    def check_with(self, others: Sequence["Intervention"]) -> None:  # noqa: B027 - nor here
        """Raises ValueError for others that cannot be applied in the same pass."""

    @property
    def needs_recomputation(self) -> bool:
        """True if decoding must pass the whole prefix at each step, without cached keys and values."""
        return False

    # In a set: see `merged`

    def parts(self) -> "tuple[Intervention, ...]":
        """The smallest interventions that together do the same."""
        return (self,)

    def replaces(self, other: "Intervention") -> bool:
        """Tells whether it replaces an earlier part of the same set, both changing one thing."""
        return False

    @property
    def group(self) -> tuple[str | float, ...]:
        """Parts of one group are joined into one intervention, in the order of their groups; empty: never joined."""
        return ()

    def joined(self, others: "Sequence[Intervention]") -> "Intervention":
        """One intervention for this part and others of its group."""
        return self

    # Facts, for pictures and reference implementations

    @property
    def address(self) -> Address | None:
        """The block in which it acts; None where that is not a single one."""
        return None

    def acts_in(self, stack: str, sublayer: str) -> bool:
        """Tells whether it acts in blocks of this kind, in any layer."""
        return self.address is not None and (self.address.stack, self.address.sublayer) == (stack, sublayer)

    @property
    def replaced(self) -> Replaced | None:
        """The tensor in whose place it puts something else."""
        return None

    @property
    def head_factors(self) -> Mapping[int, float]:
        """The factor by which it multiplies what each of some heads gathered, before W_O."""
        return {}

    @property
    def overwritten(self) -> tuple[OverwrittenRow, ...]:
        """The rows of weights that it sets."""
        return ()

    @property
    def forbidden(self) -> tuple[tuple[int, int], ...]:
        """The (query, key) cells that it closes in all heads of its block."""
        return ()

    @property
    def lifts(self) -> frozenset[MaskKind]:
        """The masks that it lifts in all layers."""
        return frozenset()

    @property
    def steps(self) -> frozenset[int]:
        """The steps of the output that it names."""
        return frozenset()

    # Words

    def idle(self, last_step: int, *, looks_back: bool) -> str:
        """Why it, or a part of it, does nothing to an output with steps 0 to `last_step`; empty where it acts.

        `looks_back`: whether a causal mask holds.
        """
        late = sorted(step for step in self.steps if step > last_step)
        if not late:
            return ""
        steps = f"{plural(len(late), 'step')} {', '.join(map(str, late))}"
        there = f"has steps 0 to {last_step}" if last_step else "has only step 0"
        return f"nothing happens at {steps}, which this output never reaches: it {there}."

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that have to be known to read the result."""
        return ()


@dataclass(frozen=True)
class AtBlock(Intervention):
    """The fields of all that acts in one block of one layer."""

    stack: Stack
    layer: int
    sublayer: Sublayer

    @property
    def address(self) -> Address:
        return Address(self.stack, self.layer, self.sublayer)

    @property
    def where(self) -> str:
        """The block as in `decoder.0.cross`."""
        return f"{self.stack}.{self.layer}.{self.sublayer}"

    @property
    def where_in_words(self) -> str:
        return f"{sublayer_name(self.stack, self.sublayer)} · layer {self.layer}"

    @property
    def is_own_output(self) -> bool:
        """True if its queries and keys are steps of the output."""
        return (self.stack, self.sublayer) == ("decoder", "self")

    def existing(self, model: Seq2Seq, tensor: str) -> Site:
        """Its site with this tensor; ValueError where the model lacks it."""
        site = self.address.site(tensor)
        if site not in model.sites():
            raise ValueError(f"this model has no block {self.where} with {tensor}")
        return site


def heads_set_to(specs: Iterable[Intervention], by: Collection[ReplacedBy]) -> frozenset[HeadPlace]:
    """Every head whose context is set to zero or to its mean at all positions by one of these."""
    return frozenset(
        (spec.address.stack, spec.address.layer, spec.address.sublayer, head)
        for spec in specs
        if spec.address is not None and spec.address.layer is not None and spec.address.sublayer is not None
        if (found := spec.replaced) is not None and found.by in by and found.tensor == "heads"
        for head in found.heads or ()
        if found.positions is None
    )


def factors_of_heads(specs: Iterable[Intervention], address: Address, n_heads: int) -> tuple[float, ...]:
    """Returns the factor by which these multiply what each head of a block gathered; 1 where none does."""
    found = [1.0] * n_heads
    for spec in specs:
        if spec.address == address:
            for head, factor in spec.head_factors.items():
                found[head] *= factor
    return tuple(found)


def parse_sublayer(address: str, *, attention: bool = False) -> tuple[Stack, int, Sublayer] | None:
    """Stack, layer and block of an address like `decoder.0.cross`; None for any other text."""
    try:
        site = Site.parse(f"{address}.input")
    except ValueError:
        return None
    if site.layer is None or site.sublayer is None or (attention and site.sublayer not in ("self", "cross")):
        return None
    return site.stack, site.layer, site.sublayer


def is_number(text: str) -> bool:
    """Tells whether a text is a whole number that may be a position."""
    return text.isascii() and text.isdecimal() and len(text) < 6


def are_whole_numbers(text: str) -> bool:
    """Tells whether a text is whole numbers with commas between."""
    return all(n.isascii() and n.isdecimal() and len(n) < 7 for n in text.split(","))
