"""Recurrent models against torch's packed sequences, and against the papers' equations written out in float64."""

import pytest
import torch
from random_models import (
    RECURRENT_BUILDS,
    assert_lawful,
    dropout_factors,
    ragged_batch,
    random_ids,
    random_recurrent,
)
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transformer.config import RecurrentConfig
from transformer.model.families import build_model, count_hidden, count_parameters
from transformer.model.recurrent import VECTOR, RecurrentLayer
from transformer.model.seq2seq import Seq2Seq, attention_layers
from transformer.model.taps import Address, Recorder


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("both_ways", [True, False])
def test_a_layer_reads_and_learns_as_torch_does_at_every_length(cell, both_ways, within):
    config = RecurrentConfig(d_model=8, cell=cell, bidirectional=both_ways)
    layer = RecurrentLayer(config, 6, Address("encoder", 0, "recurrent"), both_ways=both_ways).double()
    kind = nn.LSTM if cell == "lstm" else nn.GRU
    theirs = kind(6, 4 if both_ways else 8, batch_first=True, bidirectional=both_ways).double()
    ways = {"": layer.forwards} | ({"_reverse": layer.backwards} if both_ways else {})
    for end, ours in ways.items():
        for name, parameter in ours.named_parameters():
            nn.init.normal_(parameter, std=0.5)
            getattr(theirs, name + end).data.copy_(parameter)
    lengths = torch.arange(1, 65)
    x = torch.randn(64, 64, 6, dtype=torch.float64)
    packed, last = theirs(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    real = (torch.arange(64) < lengths[:, None])[..., None]
    found = layer.read(x, lengths)
    within(found * real, expected, 1e-12)
    within(layer.ends(found, lengths), torch.cat([*(last[0] if cell == "lstm" else last)], dim=-1), 1e-12)
    weights = torch.randn_like(expected)
    (expected * weights).sum().backward()
    (found * real * weights).sum().backward()
    for end, ours in ways.items():
        for name, parameter in ours.named_parameters():
            within(parameter.grad, getattr(theirs, name + end).grad, 1e-10)


@pytest.mark.parametrize("build", RECURRENT_BUILDS, ids=str)
@pytest.mark.parametrize("sizes", [dict(), dict(n_encoder_layers=3, n_decoder_layers=2, bidirectional=False)], ids=str)
def test_the_whole_equals_the_equations_written_out(build, sizes, within):
    model = random_recurrent(torch.float64, **build, **sizes)
    source, target = ragged_batch()
    found = model(source, target)
    for row in range(len(source)):
        ids = [token for token in source[row].tolist() if token != 0]
        written = [token for token in target[row].tolist() if token != 0]
        within(found[row, : len(written)], written_out(model, ids, written), 1e-12)


@pytest.mark.parametrize("build", RECURRENT_BUILDS, ids=str)
@pytest.mark.parametrize("one_by_one", [False, True], ids=["whole", "one token at a time"])
def test_in_training_dropout_falls_on_embeddings_between_layers_and_on_outputs_alone(build, one_by_one, within):
    sizes = dict(n_encoder_layers=2, n_decoder_layers=2, dropout=0.3)
    model = random_recurrent(torch.float64, **build, **sizes).train()
    source, target = random_ids(2, 5), random_ids(2, 4)
    with dropout_factors(model) as factors:
        if one_by_one:
            carried = model.begin(model.encode(source), torch.ones_like(source, dtype=torch.bool))
            found = torch.stack([model.project(carried.advance(tokens)) for tokens in target.T], dim=1)
        else:
            found = model(source, target)
    placed = at_their_places(model.config, factors, one_by_one)
    for row in range(2):
        of_row = {place: values[row] for place, values in placed.items()}
        expected = written_out(model, source[row].tolist(), target[row].tolist(), of_row)
        within(found[row].detach(), expected, 1e-12)
    assert_lawful(factors, 0.3)


@pytest.mark.parametrize("build", RECURRENT_BUILDS, ids=str)
def test_watched_and_plain_passes_are_equal_and_every_site_comes_by(build, within):
    model = random_recurrent(n_encoder_layers=2, n_decoder_layers=2, **build)
    recorder = Recorder()
    watched = model(*ragged_batch_of(model), tap=recorder)
    within(watched, model(*ragged_batch_of(model)), 2e-6)
    assert tuple(recorder.recording) == model.sites()
    assert isinstance(model, Seq2Seq)
    assert attention_layers(model) == ({} if build["attention"] == "none" else {"cross": 1})


@pytest.mark.parametrize("attention", ["none", "general"])
def test_the_fixed_vector_can_be_read_and_changed(attention, within):
    model = random_recurrent(attention=attention)
    source, target = random_ids(1, 5), random_ids(1, 4)

    def silent(site, tensor):
        return tensor * 0 if site == VECTOR else tensor

    changed = model(source, target, tap=silent)
    assert (changed - model(source, target)).abs().max() > 1e-3
    if attention == "none":  # nothing else comes through
        within(changed, model(random_ids(1, 5), target, tap=silent), 0.0)


@pytest.mark.parametrize("build", RECURRENT_BUILDS, ids=str)
def test_parameters_are_counted_without_building(build):
    for more in (dict(), dict(n_encoder_layers=2, n_decoder_layers=3, tie_output=False), dict(bidirectional=False)):
        config = RecurrentConfig(vocab_size=30, d_model=12, **build, **more)
        model = build_model(config)
        hidden = [m.weight for m in model.modules() if isinstance(m, nn.Linear) and m is not model.projection]
        assert count_parameters(config) == sum(p.numel() for p in model.parameters())
        assert count_hidden(config) == sum(weight.numel() for weight in hidden)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (dict(cell="rnn"), "cell"),
        (dict(d_model=7), "must be even where the encoder reads both ways"),
        (dict(n_encoder_layers=5), "at most 4"),
        (dict(input_feeding=True), r"would do nothing with attention \('none'\)"),
        (dict(attention="additive", input_feeding=True), r"nothing with attention \('additive'\)"),
        (dict(family="transformer"), "must be rnn"),
        (dict(dropout=1.0), r"lie in \[0, 1\)"),
    ],
    ids=str,
)
def test_settings_that_contradict_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        RecurrentConfig(**wrong)


def test_a_sentence_longer_than_the_model_takes_is_refused():
    model = random_recurrent(max_length=4)
    with pytest.raises(ValueError, match="source has 5 tokens"):
        model(random_ids(1, 5), random_ids(1, 3))


def at_their_places(config, factors, one_by_one):
    """The factors of dropout, which are in the order of a pass, by their place: [row position d_model]."""
    read = ["encoder.embedding", *(f"encoder.{i}" for i in range(config.n_encoder_layers))]
    written = [f"decoder.{i}" for i in range(config.n_decoder_layers)]
    written += [] if config.attention == "none" else ["combined"]
    if one_by_one:
        written.insert(0, "decoder.embedding")
    else:
        read.append("decoder.embedding")
    at_once, by_step = factors[: len(read)], factors[len(read) :]
    if one_by_one or config.is_sequential:
        by_step = [torch.stack([x.flatten(1) for x in by_step[i :: len(written)]], 1) for i in range(len(written))]
    return dict(zip([*read, *written], [*at_once, *by_step], strict=True))


def ragged_batch_of(model):
    torch.manual_seed(0)
    return ragged_batch()


def written_out(model, source, target, factors=None):
    """The logits of one sentence pair, gate by gate, token by token: [target vocab].

    `factors` are those of dropout at each of its places: embeddings, the output of each layer on its way up (not to the
    next position, nor into the fixed vector), and what attention combines; None without dropout.
    """

    def dropped(place, t, vector):
        return vector if factors is None else vector * factors[place][t]

    c, w = model.config, {name: p.detach() for name, p in model.named_parameters()}
    scale = c.d_model**0.5
    embed = w["source_tokens.weight"]
    x = [dropped("encoder.embedding", t, embed[token] * scale) for t, token in enumerate(source)]
    ends = x
    for i in range(c.n_encoder_layers):
        ways = ["forwards", "backwards"] if c.bidirectional else ["forwards"]
        states = []
        for way in ways:
            order = x if way == "forwards" else x[::-1]
            found, state = [], zero_state(c, order[0].new_zeros(c.d_model // len(ways)))
            for vector in order:
                state = cell(c, w, f"encoder.{i}.{way}", vector, state)
                found.append(state[0])
            states.append(found if way == "forwards" else found[::-1])
        ends = [torch.cat(parts) for parts in zip(*states, strict=True)]
        x = [dropped(f"encoder.{i}", t, state) for t, state in enumerate(ends)]
    half = c.d_model // 2
    vector = torch.cat((ends[-1][:half], ends[0][half:])) if c.bidirectional else ends[-1]
    parts = 2 if c.cell == "lstm" else 1
    begin = (w["start.weight"] @ vector + w["start.bias"]).view(c.n_decoder_layers, parts, c.d_model)
    layers = [(begin[i, 0].tanh(), *begin[i, 1:]) for i in range(c.n_decoder_layers)]
    fed, logits = torch.zeros_like(vector), []
    for t, token in enumerate(target):
        e = dropped("decoder.embedding", t, embed[token] * scale)
        gathered = None
        if c.attention == "additive":
            gathered = gather(c, w, layers[-1][0], x)
        read = torch.cat((e, gathered)) if c.attention == "additive" else torch.cat((e, fed)) if c.input_feeding else e
        for i in range(c.n_decoder_layers):
            layers[i] = cell(c, w, f"decoder.{i}.forwards", read, layers[i])
            read = dropped(f"decoder.{i}", t, layers[i][0])
        if c.attention == "additive":
            read = (w["combine.weight"] @ torch.cat((read, gathered, e)) + w["combine.bias"]).tanh()
        elif c.attention != "none":
            read = (w["combine.weight"] @ torch.cat((read, gather(c, w, read, x))) + w["combine.bias"]).tanh()
        if c.attention != "none":
            read = dropped("combined", t, read)
        fed = read
        logits.append(embed @ read)
    return torch.stack(logits)


def zero_state(c, zeros):
    return (zeros, zeros) if c.cell == "lstm" else (zeros,)


def cell(c, w, name, x, state):
    """One step: Hochreiter and Schmidhuber 1997 with a forget gate, or Cho et al. 2014 as torch defines it."""
    into = (w[f"{name}.weight_ih_l0"] @ x + w[f"{name}.bias_ih_l0"]).split(len(state[0]))
    back = (w[f"{name}.weight_hh_l0"] @ state[0] + w[f"{name}.bias_hh_l0"]).split(len(state[0]))
    if c.cell == "lstm":
        i, f, g, o = (a + b for a, b in zip(into, back, strict=True))
        kept = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * kept.tanh(), kept
    r, z = (into[0] + back[0]).sigmoid(), (into[1] + back[1]).sigmoid()
    new = (into[2] + r * back[2]).tanh()
    return ((1 - z) * new + z * state[0],)


def gather(c, w, state, encoded):
    """The context of Bahdanau et al. 2015 (eq. 5 and 6), or of Luong et al. 2015 (eq. 7 and 8)."""
    scores = []
    for h in encoded:
        if c.attention == "additive":
            query = w["attention.query.weight"] @ state + w["attention.query.bias"]
            scores.append(w["attention.score.v"][0] @ (query + w["attention.key.weight"] @ h).tanh())
        elif c.attention == "general":
            scores.append((w["attention.query.weight"] @ state) @ h)
        else:
            scores.append(state @ h)
    shares = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
    return sum(share * h for share, h in zip(shares, encoded, strict=True))
