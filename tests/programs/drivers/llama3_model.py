"""Answers and a gradient of a small model of llama3, whose layers are those of fairscale."""

import sys
from pathlib import Path

import fairscale.nn.model_parallel.initialize as model_parallel
import torch

sys.path.insert(0, str(Path("llama").resolve()))
import model


def normal(net: torch.nn.Module) -> torch.nn.Module:
    """Numbers for parameters that are to be read from a file."""
    for parameter in net.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.1)
    return net


torch.manual_seed(0)
torch.Tensor.cuda = lambda self: self  # its caches are for GPUs
store = Path("store")
store.unlink(missing_ok=True)
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{store.resolve()}", rank=0, world_size=1
)
model_parallel.initialize_model_parallel(1)
sizes = model.ModelArgs(
    dim=64, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=97, multiple_of=16, max_batch_size=2,
    max_seq_len=32,
)  # fmt: skip
net = normal(model.Transformer(sizes))
print(sum(p.numel() for p in net.parameters()), *[p.sum().item() for p in net.parameters()])
tokens = torch.randint(0, 97, (2, 12))
print(*net(tokens, 0)[0, -1, :8].tolist())
print(*net(tokens[:, :1], 12)[1, 0, :8].tolist())
layer = normal(model.Transformer(sizes)).layers[0]
hidden = torch.randn(2, 5, 64, requires_grad=True)
layer.feed_forward(layer.attention_norm(hidden)).sum().backward()
print(hidden.grad.sum().item(), *[p.grad.norm().item() for p in layer.feed_forward.parameters()])
