"""The arrays of a decoding in a capsule: probabilities, attention and ids, as one safetensors file."""

from collections.abc import Mapping

import numpy as np
from numpy import ndarray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from transformer.capsules.contents import CapsuleError
from transformer.inspection.inspection import Inspection
from transformer.model.kinds import AttentionKind

SOURCE_IDS, TARGET_IDS, LOG_PROBS = "source_ids", "target_ids", "log_probs"


def weights_name(kind: AttentionKind) -> str:
    """Returns the name of the weights of a kind of attention."""
    return f"weights.{kind}"


def mask_name(kind: AttentionKind) -> str:
    """Returns the name of the masks of a kind of attention."""
    return f"mask.{kind}"


def arrays_of(seen: Inspection) -> dict[str, ndarray]:
    """Returns the arrays of a decoding that a capsule carries, by their names."""
    found = {
        SOURCE_IDS: np.array(seen.source_ids, dtype=np.int64),
        TARGET_IDS: np.array(seen.target_ids, dtype=np.int64),
        LOG_PROBS: seen.log_probs,
    }
    for kind, attention in seen.attentions.items():
        found |= {weights_name(kind): attention.weights, mask_name(kind): attention.mask}
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def pack_arrays(arrays: Mapping[str, ndarray]) -> bytes:
    """Returns the arrays as a safetensors file."""
    return save(dict(arrays))


def read_arrays(content: bytes) -> dict[str, ndarray]:
    """Returns the arrays of a safetensors file; CapsuleError where it is damaged or holds anything but numbers."""
    try:
        return load(content)
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError, MemoryError, RecursionError) as error:
        raise CapsuleError(f"its results are damaged: {' '.join(str(error).split())[:120]}") from error
