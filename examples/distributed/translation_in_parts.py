"""Two processes that learn to translate together, as one process with twice the batch would.

The sentences and the network are those of examples/translation.py, without dropout, which would
differ between the processes. Sentences have different numbers of words, so the average of the
processes' averages is not that of the whole batch: each process divides the sum of its losses by
the number of all words. It is an ordinary PyTorch program, and runs on PyTorch after changing the
lines that import flambeau, below and in the two programs it stands on.

    python translation_in_parts.py --processes 2 --steps 60
    python translation_in_parts.py --processes 1 --steps 60      # the same losses
"""

import sys
from pathlib import Path

import digits_in_parts

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from translation import (
    PAD,
    SMOOTHING,
    Sentences,
    Translator,
    collate,
    load_data,
)

import flambeau as torch
import flambeau.distributed as dist

nn = torch.nn

BATCH_SIZE = 64
LEARNING_RATE = 2e-4  # at ten times this, rounding that differs is seen after twenty steps


def train(rank, processes, port, steps, backend, told=None):
    """What each process does; rank 0 prints the losses of whole batches."""
    dist.init_process_group(
        backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=processes
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sentences = Sentences(load_data()[0])
    model = Translator(dropout=0.0)
    if processes > 1:
        model = nn.parallel.DistributedDataParallel(model)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING, reduction="sum")
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98))
    losses = []
    for step in range(steps):
        batch = torch.randperm(len(sentences))[:BATCH_SIZE]  # the same in all processes: one seed
        source, target = collate([sentences[i] for i in batch[rank::processes].tolist()])
        words = (target[:, 1:] != PAD).sum()
        dist.all_reduce(words)
        optimizer.zero_grad()
        logits = model(source, target[:, :-1])
        loss = criterion(logits.flatten(0, 1), target[:, 1:].flatten()) / words
        (processes * loss).backward()  # gradients are averaged, and it is their sum that counts
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        whole = loss.detach()
        dist.all_reduce(whole)
        losses.append(whole.item())
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1:3d}  loss {losses[-1]:.4f}", flush=True)
    if rank == 0 and told is not None:
        told.put(losses)
    dist.destroy_process_group()


if __name__ == "__main__":
    digits_in_parts.main(train=train, description=__doc__)
