"""Four steps of a language model of x-transformers."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
m = AutoregressiveWrapper(
    TransformerWrapper(
        num_tokens=32,
        max_seq_len=16,
        attn_layers=Decoder(
            dim=32, depth=2, heads=2, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True
        ),
    )
)
o = torch.optim.Adam(m.parameters(), 1e-3)
x = torch.randint(0, 32, (4, 17))
for _i in range(4):
    o.zero_grad()
    loss = m(x)
    loss.backward()
    o.step()
    print(loss.item())
