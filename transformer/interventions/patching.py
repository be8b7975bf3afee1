"""An activation copied from the pass of another sentence (activation patching).

The other sentence goes through the same model without any switch, decoded greedily where the site is in the decoder.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from transformer.decoding.greedy import greedy
from transformer.figures.labels import readable
from transformer.interventions.names import plural, site_name
from transformer.interventions.protocol import Intervention, Replaced, Resources, is_number
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Address, Recorder, Recording, Site

PER_HEAD = ("q", "k", "v", "heads")
"""Tensors [batch head position d_head]; one head of them can be copied alone."""
COPYABLE = ("embedding", "input", "residual", *PER_HEAD, "output", "normed")
"""Tensors with a row for each position, whatever the length of the sentence."""
LONGEST_TEXT = 1_000
"""Characters of the other sentence."""


@dataclass(frozen=True)
class PatchActivation(Intervention):
    """Puts what another sentence had at a site in the place of what this one has, position by position.

    Prints `copy:encoder.1.ffn.output:3>5:The cat slept.` (its position 3 onto position 5 here), `3>5,4>6` for several
    and `all` for each position onto its own; `copy:decoder.1.cross.heads.2:...` copies head 2 alone.
    """

    site: Site
    head: int | None
    """None: the whole tensor."""
    positions: tuple[tuple[int, int], ...]
    """(position there, position here) of each copy; none: each position onto its own."""
    text: str
    """The other sentence."""
    rows: Float[Tensor, "position ..."] | None = field(default=None, compare=False, repr=False)
    """The activations of the other sentence's pass at the site, put in by `resolve`."""

    prefix = "copy"
    usage = "`copy:encoder.1.ffn.output:3>5:The cat slept.` its token 3 onto token 5 here; `all` for each onto its own"
    order = 0

    @classmethod
    def parse(cls, text: str) -> "PatchActivation | None":
        match text.split(":", 3):
            case [_, address, place, other] if len(other) <= LONGEST_TEXT:
                stem, _, last = address.rpartition(".")
                head = int(last) if is_number(last) else None
                try:
                    site = Site.parse(address if head is None else stem)
                except ValueError:
                    return None
                positions = _pairs(place)
                return None if positions is None else cls(site, head, positions, other)
        return None

    def __str__(self) -> str:
        head = "" if self.head is None else f".{self.head}"
        return f"copy:{self.site}{head}:{self.place}:{self.text}"

    @property
    def place(self) -> str:
        """The positions as the text form has them."""
        return ",".join(f"{there}>{here}" for there, here in self.positions) or "all"

    @property
    def over_source(self) -> bool:
        """True if positions are those of the source sentence, which all exist from the beginning."""
        return self.site.stack == "encoder" or (self.site.sublayer == "cross" and self.site.tensor in ("k", "v"))

    @property
    def needs_recomputation(self) -> bool:
        """True in the decoder but for keys and values: a cached step does not show at which position it stands."""
        return self.site.stack == "decoder" and self.site.tensor not in ("k", "v")

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        """Returns the site; ValueError where the model lacks the site or nothing can be copied there."""
        if self.site not in model.sites():
            raise ValueError(f"this model has no activation {self.site}")
        if self.site.tensor not in COPYABLE:
            raise ValueError(f"{self.site} has no row for each position to copy; choose one of: {', '.join(COPYABLE)}")
        if self.head is not None and self.site.tensor not in PER_HEAD:
            raise ValueError(f"{self.site} is not made of heads; only {', '.join(PER_HEAD)} are")
        if self.head is not None and self.head >= model.config.n_heads:
            raise ValueError(f"head {self.head} does not exist: this model has heads 0 to {model.config.n_heads - 1}")
        furthest = max((max(pair) for pair in self.positions), default=0)
        if furthest >= model.config.max_length:
            raise ValueError(
                f"position {furthest} does not exist: this model has positions 0 to {model.config.max_length - 1}"
            )
        targets = [here for _, here in self.positions]
        if len(set(targets)) < len(targets):
            twice = next(here for here in targets if targets.count(here) > 1)
            raise ValueError(f"two activations are copied onto position {twice}: leave one out")
        if not self.text.strip():
            raise ValueError("the other sentence is missing: write it after the positions")
        return (self.site,)

    def check_source(self, n_tokens: int) -> None:
        """ValueError where a source of so many tokens lacks a position that is copied onto."""
        furthest = max((here for _, here in self.positions), default=0)
        if self.over_source and furthest >= n_tokens:
            raise ValueError(f"token {furthest} does not exist: the sentence has tokens 0 to {n_tokens - 1}")
        if self.over_source and not self.positions and self.rows is not None and len(self.rows) != n_tokens:
            raise ValueError(
                f"the other sentence has {len(self.rows)} tokens and this one {n_tokens}: "
                "to copy all, both need as many; copy single positions instead"
            )

    def resolve(self, resources: Resources) -> "PatchActivation":
        return self.filled(resources.model, resources.sentence(self.text).ids)

    def filled(self, model: Seq2Seq, source: Sequence[int]) -> "PatchActivation":
        """The spec with what these ids of the other sentence had at the site; ValueError where it is too short."""
        rows = activations(model, source, self.site)
        furthest = max((there for there, _ in self.positions), default=0)
        if furthest >= len(rows):
            whose = "tokens" if self.over_source else "steps"
            raise ValueError(f"the other sentence has {whose} 0 to {len(rows) - 1}: there is no {furthest} to copy")
        return replace(self, rows=rows)

    @property
    def address(self) -> Address:
        return Address(self.site.stack, self.site.layer, self.site.sublayer)

    @property
    def replaced(self) -> Replaced:
        heads = None if self.head is None else (self.head,)
        if self.rows is None:
            return Replaced(self.site.tensor, "copy", heads, tuple(here for _, here in self.positions) or None)
        there, here = zip(*(self.positions or [(i, i) for i in range(len(self.rows))]), strict=True)
        return Replaced(self.site.tensor, "copy", heads, here, self.rows[list(there)])

    @property
    def steps(self) -> frozenset[int]:
        return frozenset() if self.over_source else frozenset(here for _, here in self.positions)

    def label(self) -> str:
        text = self.text if len(self.text) <= 40 else f"{self.text[:39]}…"
        unit = "token" if self.over_source else "step"
        places = ", ".join(f"{here} from {there}" for there, here in self.positions)
        what = f"{plural(len(self.positions), unit)} {places}" if places else f"all {unit}s"
        return f"{site_name(self.site, self.head)} · {what} of “{readable(text.replace(chr(10), ' '))}”"

    @property
    def notes(self) -> tuple[str, ...]:
        found = []
        if self.needs_recomputation:
            found.append(
                "A cached step does not show at which position it stands, so with something copied into the decoder "
                "each step passes the whole prefix again, without the key/value cache."
            )
        if not self.over_source:
            found.append(
                "What is copied into the decoder is what it had at those steps of its own translation of the other "
                "sentence; a step that this output never reaches receives nothing."
            )
        return tuple(found)

    def apply(self, site: Site, tensor: Tensor, /) -> Tensor:
        """The activation [batch (head) position d] with the copied rows in place; later steps may not be there yet."""
        if self.rows is None:
            raise ValueError(f"what {self} copies is not known: resolve it with the lab first")
        length = tensor.size(-2)
        if self.over_source:
            self.check_source(length)
        tensor = tensor.clone()
        for there, here in self.positions or [(i, i) for i in range(len(self.rows))]:
            if here >= length:
                continue
            if self.head is not None:
                tensor[:, self.head, here] = self.rows[there, self.head].to(tensor)
            else:
                tensor[..., here, :] = self.rows[there].to(tensor)
        return tensor


@torch.no_grad()
def activations(model: Seq2Seq, source: Sequence[int], site: Site) -> Float[Tensor, "position ..."]:
    """Returns the activations of a source at a site, one row a position; those of the decoder as decoding had them."""
    ids = torch.tensor([source])
    if site.stack == "encoder":
        recorder = Recorder(site.__eq__)
        model.encode(ids, tap=recorder)
        return _by_position(recorder.recording, site)
    steps = greedy(model, ids, max_length=model.config.max_length, record=site.__eq__)
    if site.sublayer == "cross" and site.tensor in ("k", "v"):
        return _by_position(_recording(next(iter(steps)).recording), site)
    recordings = [_recording(step.recording) for step in steps]
    if site.tensor in ("k", "v") or model.needs_recomputation():
        return _by_position(recordings[-1], site)  # the last pass holds all positions
    return torch.cat([_by_position(recording, site)[-1:] for recording in recordings])


def _recording(found: Recording | None) -> Recording:
    assert found is not None, "these steps record"
    return found


def _by_position(recording: Recording, site: Site) -> Tensor:
    """The recorded tensor with its positions in front: [position d] or [position head d_head]."""
    rows = recording[site][0]
    return rows.transpose(0, 1) if site.tensor in PER_HEAD else rows


def _pairs(place: str) -> tuple[tuple[int, int], ...] | None:
    if place == "all":
        return ()
    found = [pair.split(">") for pair in place.split(",")]
    if not all(len(pair) == 2 and all(map(is_number, pair)) for pair in found):
        return None
    return tuple((int(there), int(here)) for there, here in found)
