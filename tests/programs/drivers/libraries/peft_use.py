"""Adapters of peft on a small network: LoRA, IA3, merged again."""

import torch
from peft import IA3Config, LoraConfig, get_peft_model, get_peft_model_state_dict
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.second = nn.Linear(16, 3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


torch.manual_seed(1)
x, y = torch.randn(8, 6), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
for config in (
    LoraConfig(r=4, lora_alpha=8, target_modules=["first", "second"]),
    LoraConfig(r=2, target_modules=["first"], use_dora=True, modules_to_save=["second"]),
    IA3Config(target_modules=["first"], feedforward_modules=[]),
):
    torch.manual_seed(0)
    model = get_peft_model(Network(), config)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=0.05)
    for _ in range(4):
        loss = nn.functional.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    print(type(config).__name__, loss.item(), sum(p.numel() for p in trained))
    state = get_peft_model_state_dict(model)
    print(len(state), sum(v.abs().sum().item() for v in state.values()))
    before = model(x)
    merged = model.merge_and_unload()
    print((merged(x) - before).abs().max().item() < 1e-5, merged(x).sum().item())
