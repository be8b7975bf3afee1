"""The names and formulas of scores, each written once. Nothing here needs torch.

A new score needs four things: its name in `config.ScoreKind`, its form here, its module in `model.scores`, and its
arithmetic in `analysis.attention.score_reference`, which shares nothing with the module.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ScoreForm:
    """How one kind of score is named and written."""

    label: str
    """Its name among the choices: "dot product (paper)"."""
    written: str
    """The score of one query and one key, in plain text: "q · k"."""
    matrices: str
    """All scores of a head, in plain text: "QKᵀ"."""
    equation: str
    """All scores of a head before any division, as LaTeX."""
    pair: Callable[[str, str], str]
    """Returns the score of a query and a key of these names before any division, as LaTeX."""
    term: Callable[[str, str], str]
    """Returns its term of dimension i, as LaTeX, with these indices of query and key before the i."""
    short_term: str
    """The same in little room, as HTML."""
    is_divided: bool
    """True if it is divided by sqrt(d_k) unless a setting says otherwise."""
    is_bilinear: bool
    """True if the score of a sum is the sum of the scores, on either side."""
    says: str
    """The sentences of the Walkthrough on what happens to the chosen token's query."""
    paper: str
    """Where it was published."""

    def scaled(self, is_scaled: bool) -> str:
        """Returns the equation with the division by sqrt(d_k) where the score has one and the settings ask for it."""
        return rf"\frac{{{self.equation}}}{{\sqrt{{d_k}}}}" if self.is_divided and is_scaled else self.equation

    def formula(self, is_scaled: bool) -> str:
        """Returns the score of one query and one key in plain text, divided where it is."""
        return f"{self.written} / √d" if self.is_divided and is_scaled else self.written


SCORE_FORMS = {
    "dot": ScoreForm(
        label="dot product (paper)",
        written="q · k",
        matrices="QKᵀ",
        equation=r"Q K^\top",
        pair=lambda q, k: rf"{q} \cdot {k}",
        term=lambda t, j: rf"q_{{{t}i}}\, k_{{{j}i}}",
        short_term="q<sub>i</sub> k<sub>i</sub>",
        is_divided=True,
        is_bilinear=True,
        says="The chosen token's query is multiplied with each key, number by number, and the products are summed. The "
        "better the two match, the larger the sum: this decides who attends to whom.",
        paper="Section 3.2.1, inside eq. 1",
    ),
    "additive": ScoreForm(
        label="additive (Bahdanau)",
        written="v · tanh(q + k)",
        matrices="v · tanh(q + k)",
        equation=r"v^\top \tanh(q_t + k_j)",
        pair=lambda q, k: rf"v \cdot \tanh({q} + {k})",
        term=lambda t, j: rf"v_i \tanh(q_{{{t}i}} + k_{{{j}i}})",
        short_term="v tanh",
        is_divided=False,
        is_bilinear=False,
        says="The chosen token's query is added to each key, number by number, and each sum is squeezed between −1 and "
        "1. A learned vector *v* of the head weighs these numbers and adds them up: this decides who attends to whom.",
        paper="Additive attention: Bahdanau et al. 2015, appendix A.1.2; compared in section 3.2.1",
    ),
    "multiplicative": ScoreForm(
        label="multiplicative (Luong)",
        written="q · W k",
        matrices="QWKᵀ",
        equation=r"Q W K^\top",
        pair=lambda q, k: rf"{q} W {k}",
        term=lambda t, j: rf"\left(\textstyle\sum_l q_{{{t}l}} W_{{li}}\right) k_{{{j}i}}",
        short_term="(qW) k",
        is_divided=True,
        is_bilinear=True,
        says="The chosen token's query is multiplied by a learned matrix *W* of the head, then with each key, number "
        "by number, and the products are summed. *W* says which number of the query meets which of the key. W_Q could "
        "do the same without it: *W* changes how the model trains, not what it can learn.",
        paper="“General” in Luong et al. 2015, section 3.1; the paper has no W here (section 3.2.1)",
    ),
}
"""The form of each score, by its name in the settings."""
