"""Trains a tiny model for a few steps, as one of as many processes as torchrun started, and saves what it became."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import torch
from tiny_runs import MODEL, corpus, settings, state, tokenizer

from transformer.checkpoints.store import save_tensors
from transformer.training.distributed import assembled
from transformer.training.events import Evaluated, StepDone
from transformer.training.loop import train_steps
from transformer.training.state import weights_of


def main(folder: Path, accumulate: int, leave_at: int) -> None:
    torch.set_num_threads(1)
    config = settings(max_steps=12, evaluate_every=6, accumulate=accumulate, batch_tokens=128, optimizer="muon")
    model = replace(MODEL, dropout=0.0, embedding_dropout=0.0)
    with assembled() as team:
        start = state(config, model)
        losses, evaluated = [], 0
        events = train_steps(start, config, corpus(), tokenizer(), team=team)
        for event in events:
            evaluated += isinstance(event, Evaluated)
            if isinstance(event, StepDone):
                losses.append(event.loss)
                if team.leads and event.step == leave_at:
                    break
        events.close()
        report = {"losses": losses, "evaluated": evaluated, "size": team.size, "step": start.step}
        save_tensors(folder / f"{team.rank}.safetensors", weights_of(start.model), {"report": json.dumps(report)})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
