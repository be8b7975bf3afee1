"""The steps inside an LSTM or a GRU: its gates, an LSTM's cell, and the state that it hands on."""

from functools import cached_property

from transformer.analysis.trace.recurrent.passes import LayerPass, layer_input, layer_pass
from transformer.analysis.trace.step import Computed, Lines, Step, StepRecord, Words
from transformer.model.recurrent import RecurrentLayer

_LSTM = "LSTM: Hochreiter and Schmidhuber 1997; the forget gate: Gers et al. 2000"
_GRU = "GRU: Cho et al. 2014, eq. 5 to 8"


class _InUnit(Step):
    """The parts that the steps of a unit have in common."""

    in_paper = False

    @cached_property
    def lines(self) -> tuple[Lines, ...]:
        built = (RecurrentLayer.__init__, "kind = ")
        if self.stack == "decoder":
            return (built, (RecurrentLayer.write, "begin =", "return"))
        if self.model.config.bidirectional:
            return (built, (RecurrentLayer.read, "found =", "return torch.cat"))
        return (built, (RecurrentLayer.read, "found =", "return found"))

    @property
    def is_lstm(self) -> bool:
        return bool(self.model.config.cell == "lstm")

    @property
    def letter(self) -> str:
        """The letter of its states, as in Bahdanau et al. 2015."""
        return "h" if self.stack == "encoder" else "s"

    @property
    def paper(self) -> str:  # type: ignore[override]
        return _LSTM if self.is_lstm else _GRU

    def passed(self, at: StepRecord) -> LayerPass:
        return layer_pass(self.model, at.trace, self.stack, at.layer)


class Gates(_InUnit):
    """The gates at each token, from what comes in and the state before."""

    name = "gates"
    label = "Gates"

    def words(self, at: StepRecord | None = None) -> Words:
        beside = ", ".join(self._beside) and f", beside it {self._beside[0]},"
        unit, before = str(self.model.config.cell).upper(), "the state before"
        says = (
            f"The {unit} goes from token to token and carries a **state** along. From the token's vector{beside} and "
            f"{before} it sets gates, numbers between 0 and 1. "
        )
        if self.is_lstm:
            says += (
                "The **input gate** says what to write, the **forget gate** what to keep, the **output gate** what to "
                "show. The **candidate** is what could be written."
            )
        else:
            says += (
                "The **update gate** says what to keep of the state, the **reset gate** how much of it the "
                "**candidate**, which could replace it, is made from."
            )
        return Words("What to keep and what to write", says + self._both_ways, self._equation, self.paper)

    def compute(self, at: StepRecord) -> Computed:
        found = self.passed(at)
        read = layer_input(self.model, at.trace, self.stack, at.layer)
        return Computed(
            (
                *(at.value(name, x, recorded=name != "fed") for name, x in read.items()),
                at.value("state before", found.states_before, recorded=False),
            ),
            tuple(at.value(name, gate, recorded=False) for name, gate in found.gates.items()),
            ((found.states, at.offered("output")),),
            "the states that these gates make, token by token, against the recorded ones",
        )

    @property
    def _beside(self) -> tuple[str, ...]:
        """What else comes in, in words."""
        if self.stack == "encoder" or self.model.attention is None:
            return ()
        if self.model.config.attention == "additive":
            return ("the context that attention has just gathered",)
        return (
            ("what the last step made of its own context (input feeding)",) if self.model.config.input_feeding else ()
        )

    @property
    def _both_ways(self) -> str:
        if self.stack == "decoder" or not self.model.config.bidirectional:
            return ""
        half = self.model.config.d_model // 2
        return (
            f" Two of them read here, one forwards and one backwards, with {half} numbers each, shown side by side: in "
            "the first half the state before is that of the token on the left, in the second that of the one on the "
            "right."
        )

    @property
    def _equation(self) -> str:
        x, h = "x_t", self.letter
        if self._beside:
            x = r"[x_t; c_t]" if self.model.config.attention == "additive" else r"[x_t; \tilde h_{t-1}]"

        def gate(symbol: str, function: str) -> str:
            return rf"{symbol}_t &= {function}(W_{symbol} {x} + U_{symbol} {h}_{{t-1}} + b_{symbol})"

        if self.is_lstm:
            rows = [gate("i", r"\sigma"), gate("f", r"\sigma"), gate("o", r"\sigma"), gate("g", r"\tanh")]
        else:
            candidate = rf"n_t &= \tanh(W_n {x} + b_n + r_t \odot (U_n {h}_{{t-1}} + b'_n))"
            rows = [gate("r", r"\sigma"), gate("z", r"\sigma"), candidate]
        return r"\begin{aligned} " + r" \\ ".join(rows) + r" \end{aligned}"


class Cell(_InUnit):
    """An LSTM's cell: what is kept of it, and what is written."""

    name = "cell"
    label = "Cell"
    title = "The cell: kept and written"
    says = (
        "The LSTM's memory is a second vector, the **cell**. What the forget gate keeps of it goes on unchanged, and "
        "what the input gate lets through of the candidate is added. Because it is a sum, gradients reach further back "
        "than through a plain recurrent network."
    )
    equation = r"m_t = f_t \odot m_{t-1} + i_t \odot g_t"

    @cached_property
    def exists(self) -> bool:
        return self.is_lstm

    def compute(self, at: StepRecord) -> Computed:
        found = self.passed(at)
        assert found.cells is not None and found.cells_before is not None, "only an LSTM has this step"
        gates = [at.value(name, found.gates[name], recorded=False) for name in _MAKE_CELL]
        return Computed(
            (*gates, at.value("cell before", found.cells_before, recorded=False)),
            (at.value("cell", found.cells, recorded=False),),
            ((found.gates["output gate"] * found.cells.tanh(), at.offered("output")),),
            "what the output gate shows of these cells, against the recorded states",
        )


class State(_InUnit):
    """The state at each token, which is all that the next token and the next layer get."""

    name = "state"
    title = "The state that goes on"
    tensors = ("output",)

    @cached_property
    def label(self) -> str:
        return f"State {self.letter}"

    def words(self, at: StepRecord | None = None) -> Words:
        if self.is_lstm:
            says = "The output gate decides which part of the cell is shown: this is the **state**."
            equation = rf"{self.letter}_t = o_t \odot \tanh(m_t)"
        else:
            says = "The new **state** is mixed, number by number, from the candidate and the state before."
            equation = rf"{self.letter}_t = (1 - z_t) \odot n_t + z_t \odot {self.letter}_{{t-1}}"
        says += (
            " It goes up to what reads this token and on to the next token, which has to wait for it: a recurrent "
            "network cannot compute all tokens at once."
        )
        return Words(self.title, says, equation, self.paper)

    def compute(self, at: StepRecord) -> Computed:
        found = self.passed(at)
        if found.cells is not None:
            read = {"output gate": found.gates["output gate"], "cell": found.cells}
        else:
            read = {name: found.gates[name] for name in ("update gate", "candidate")}
            read["state before"] = found.states_before
        return Computed(
            tuple(at.value(name, x, recorded=False) for name, x in read.items()),
            (at.result("state", at.taken("output")),),
            ((found.states, at.offered("output")),),
            "the states of all tokens, one after the other, against the recorded ones",
        )


_MAKE_CELL = ("forget gate", "input gate", "candidate")
UNIT_STEPS: tuple[type[Step], ...] = (Gates, Cell, State)
"""The steps in the order of computation."""
