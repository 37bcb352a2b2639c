"""Two processes that learn to read digits together, as one process with twice the batch would.

The images are those of examples/digits.py. Each process takes half of every batch; gradients are
averaged. It is an ordinary PyTorch program, and runs on PyTorch after changing the lines that
import flambeau below.

    python digits_in_parts.py --processes 2 --steps 60
    python digits_in_parts.py --processes 1 --steps 60      # the same losses
"""

import argparse
import socket

from sklearn.datasets import load_digits

import flambeau as torch
import flambeau.distributed as dist
import flambeau.multiprocessing as mp

nn = torch.nn

BATCH_SIZE = 64


def network():
    """Convolutions without batch statistics, which would depend on how a batch is divided."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )


def train(rank, processes, port, steps, backend, told=None):
    """What each process does; rank 0 prints the losses of whole batches."""
    dist.init_process_group(
        backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=processes
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    model = network()
    if processes > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        batch = torch.randperm(len(images))[:BATCH_SIZE]  # the same in all processes: one seed
        mine = batch[rank::processes]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[mine]), labels[mine])
        loss.backward()
        optimizer.step()
        whole = loss.detach() / processes
        dist.all_reduce(whole)
        losses.append(whole.item())
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1:3d}  loss {losses[-1]:.4f}", flush=True)
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    if rank == 0:
        print(f"{right:.1%} of the digits are read after {steps} steps", flush=True)
        if told is not None:
            told.put(losses)
    dist.destroy_process_group()


def main(arguments=None, train=train, description=__doc__):
    """Start the processes, each of which calls `train`; the losses of rank 0."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--backend", default="gloo")
    options = parser.parse_args(arguments)
    with socket.socket() as sock:  # a port that nobody uses
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    told = mp.get_context("spawn").SimpleQueue()
    values = options.processes, port, options.steps, options.backend, told
    running = mp.spawn(train, values, options.processes, join=False)
    while not running.join():  # raises what a process raised
        pass
    return told.get()


if __name__ == "__main__":
    main()
