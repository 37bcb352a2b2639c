"""More families of transformers: experts in groups, state spaces, speech, pictures with words."""

import torch
from transformers import (
    CLIPConfig,
    CLIPModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    SegformerConfig,
    SegformerForSemanticSegmentation,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

torch.manual_seed(0)
size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
text = {**size, "intermediate_size": 32, "vocab_size": 64, "max_position_embeddings": 32}
ids = torch.randint(1, 60, (2, 9))
for model in (
    Qwen2ForCausalLM(Qwen2Config(num_key_value_heads=1, **text)),
    GPTNeoXForCausalLM(GPTNeoXConfig(**text)),
    MixtralForCausalLM(MixtralConfig(num_key_value_heads=1, num_local_experts=3, **text)),
    MambaForCausalLM(MambaConfig(vocab_size=64, hidden_size=16, num_hidden_layers=2, state_size=4)),
):
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        print(type(model).__name__, loss.item())
    model.eval()
    print(model.generate(ids[:, :4], max_new_tokens=4, do_sample=False, pad_token_id=0).tolist())
side = {
    f"{part}_{name}": value
    for part in ("encoder", "decoder")
    for name, value in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
}
special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
speech = WhisperForConditionalGeneration(
    WhisperConfig(
        vocab_size=64, num_mel_bins=8, d_model=16, max_source_positions=10, **side, **special
    )
)
loss = speech(input_features=torch.randn(1, 8, 20), labels=ids[:1]).loss
loss.backward()
print(
    loss.item(), sum(p.grad.abs().sum().item() for p in speech.parameters() if p.grad is not None)
)
vision = {**size, "intermediate_size": 32, "image_size": 16, "patch_size": 8}
clip = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))
print(clip(input_ids=ids, pixel_values=torch.randn(2, 3, 16, 16), return_loss=True).loss.item())
places = SegformerForSemanticSegmentation(
    SegformerConfig(depths=[1] * 4, hidden_sizes=[8] * 4, decoder_hidden_size=8, num_labels=2)
)
labels = torch.zeros(1, 32, 32, dtype=torch.long)
print(places(torch.randn(1, 3, 32, 32), labels=labels).loss.item())
