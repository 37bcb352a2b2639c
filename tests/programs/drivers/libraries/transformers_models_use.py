"""Models of transformers: BERT, T5, ViT, Llama and a Trainer."""

import tempfile

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
    get_linear_schedule_with_warmup,
)


def train(model, steps=3, **inputs):
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = get_linear_schedule_with_warmup(optimiser, 1, 5)
    for _ in range(steps):
        loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        print(type(model).__name__, loss.item())


torch.manual_seed(0)
ids = torch.randint(1, 60, (3, 10))
mask = torch.ones_like(ids)
mask[1, 6:] = 0
small = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
bert = BertForSequenceClassification(
    BertConfig(vocab_size=64, num_labels=3, max_position_embeddings=16, **small)
)
train(bert, input_ids=ids, attention_mask=mask, labels=torch.tensor([0, 1, 2]))
with tempfile.TemporaryDirectory() as folder:
    bert.save_pretrained(folder)
    again = BertForSequenceClassification.from_pretrained(folder).eval()
    bert.eval()
    print((again(ids, mask).logits - bert(ids, mask).logits).abs().max().item())
llama = LlamaForCausalLM(
    LlamaConfig(vocab_size=64, max_position_embeddings=32, num_key_value_heads=1, **small)
)
train(llama, input_ids=ids, labels=ids)
llama.eval()
print(llama.generate(ids[:2, :4], max_new_tokens=5, do_sample=False, pad_token_id=0).tolist())
print(
    llama.generate(
        ids[:1, :4], max_new_tokens=5, num_beams=3, do_sample=False, pad_token_id=0
    ).tolist()
)
t5 = T5ForConditionalGeneration(
    T5Config(
        vocab_size=64,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
)
train(t5, input_ids=ids, labels=ids[:, :5].contiguous())
print(t5.eval().generate(ids[:1], max_new_tokens=5).tolist())
vit = ViTForImageClassification(ViTConfig(image_size=16, patch_size=8, num_labels=2, **small))
train(vit, pixel_values=torch.randn(2, 3, 16, 16), labels=torch.tensor([0, 1]))
out = vit(torch.ones(1, 3, 16, 16), output_attentions=True, output_hidden_states=True)
print(len(out.hidden_states), out.hidden_states[1].mean().item())
