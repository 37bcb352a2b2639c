"""Twenty steps of a small GPT-2 of transformers, and what it writes then."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
m = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2))
o = torch.optim.AdamW(m.parameters(), 1e-3)
x = torch.randint(0, 64, (4, 16))
for _i in range(20):
    o.zero_grad()
    loss = m(x, labels=x).loss
    loss.backward()
    o.step()
    print(repr(loss.item()))
m.eval()
print(m.generate(x[:1, :4], max_new_tokens=6, do_sample=False, pad_token_id=0).tolist())
