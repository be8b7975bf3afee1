"""The pass of a convolutional model computed again in NumPy, from the token ids alone.

Token by token and weight by weight of the kernel, in double precision; nothing here is shared with
`model/convolutional.py`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.attention.score_reference import softmax_over
from transformer.model.convolutional import ConvolutionalModel

Weights = Mapping[str, ndarray]
Vectors = Float[ndarray, "token d_model"]


def pass_from_ids(
    model: ConvolutionalModel, source: Sequence[int], read: Sequence[int]
) -> tuple[Float[ndarray, "layer 1 query key"], Float[ndarray, "query vocab"]]:
    """Returns the weights and logits of the whole model, from the ids of the source and of what the decoder reads."""
    c, d = model.config, model.config.d_model
    w = {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
    target_vectors = w["source_tokens.weight" if c.tie_embeddings else "target_tokens.weight"]
    output = target_vectors if c.tie_output else w["projection.weight"]
    embedded = w["source_tokens.weight"][list(source)] * np.sqrt(d)
    states = embedded
    for layer in range(c.n_encoder_layers):
        apart = 2**layer if c.dilated else 1
        sees = [(i - c.kernel // 2) * apart for i in range(c.kernel)]
        states = (states + convolved(w, f"encoder.{layer}.convolution", states, sees)) / np.sqrt(2)
    asking = target_vectors[list(read)] * np.sqrt(d)
    written, found = asking, []
    for layer in range(c.n_decoder_layers):
        apart = 2**layer if c.dilated else 1
        sees = [(i + 1 - c.kernel) * apart for i in range(c.kernel)]
        h = convolved(w, f"decoder.{layer}.convolution", written, sees)
        queries = h @ w[f"decoder.{layer}.query.weight"].T + w[f"decoder.{layer}.query.bias"] + asking
        rows = [softmax_over(states @ q / np.sqrt(d), np.ones(len(states)) > 0) for q in queries]
        gathered = np.array([row @ (states + embedded) for row in rows])
        written = written / np.sqrt(2) + (h + gathered) / 2
        found.append(rows)
    return np.array(found)[:, None], (written @ w["combine.weight"].T + w["combine.bias"]) @ output.T


def convolved(w: Weights, name: str, x: Vectors, sees: Sequence[int]) -> Vectors:
    """Returns a convolution and its gate at each token; `sees` are the distances of the tokens in its window."""
    kernel = w.get(f"{name}.depthwise")
    matrix, n = w[f"{name}.mix.weight"], x.shape[1]
    rows = []
    for place in range(len(x)):
        total = w[f"{name}.mix.bias"].copy()
        for i, distance in enumerate(sees):
            if 0 <= place + distance < len(x):
                seen = x[place + distance]
                part = matrix[:, i * n : (i + 1) * n] @ seen if kernel is None else matrix @ (kernel[i] * seen)
                total += part
        rows.append(total[:n] / (1 + np.exp(-total[n:])))
    return np.array(rows)
