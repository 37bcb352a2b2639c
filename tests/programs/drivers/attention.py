"""Four steps of jadore801120's Transformer on made-up sentences."""

import torch
import torch.nn.functional as F
from transformer.Models import Transformer
from transformer.Optim import ScheduledOptim

torch.manual_seed(0)
net = Transformer(
    n_src_vocab=20, n_trg_vocab=22, src_pad_idx=0, trg_pad_idx=0, d_word_vec=32, d_model=32,
    d_inner=64, n_layers=2, n_head=4, d_k=8, d_v=8, trg_emb_prj_weight_sharing=True,
    emb_src_trg_weight_sharing=False,
)  # fmt: skip
optimizer = ScheduledOptim(
    torch.optim.Adam(net.parameters(), betas=(0.9, 0.98), eps=1e-09), 2.0, 32, 10
)
source, target = torch.randint(0, 20, (4, 9)), torch.randint(0, 22, (4, 8))
for _ in range(4):
    optimizer.zero_grad()
    predicted = net(source, target[:, :-1])
    loss = F.cross_entropy(
        predicted, target[:, 1:].contiguous().view(-1), ignore_index=0, reduction="sum"
    )
    loss.backward()
    optimizer.step_and_update_lr()
    print(f"{loss.item():.4f}")
