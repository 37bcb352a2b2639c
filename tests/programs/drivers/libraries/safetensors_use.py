"""Files of safetensors: whole, in part, with shared tensors and other dtypes."""

import os
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

torch.manual_seed(0)
tensors = {
    "a": torch.randn(3, 4),
    "b": torch.arange(6),
    "h": torch.ones(2, dtype=torch.bfloat16),
    "e": torch.zeros(0, 3),
    "f": torch.tensor(True),
    "i": torch.tensor([1, 2], dtype=torch.uint8),
    "8": torch.ones(3).to(torch.float8_e4m3fn),
}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "m.safetensors")
    save_file(tensors, path, metadata={"of": "test"})
    back = load_file(path)
    print(
        sorted((k, str(v.dtype), tuple(v.shape), v.double().sum().item()) for k, v in back.items())
    )
    with safe_open(path, framework="pt", device="cpu") as file:
        print(
            file.metadata(),
            sorted(file.keys()),
            file.get_slice("a")[1:3].sum().item(),
            file.get_slice("a").get_shape(),
        )
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    save_model(model, path)
    other = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    other[1].weight = other[0].weight
    print(load_model(other, path), other(torch.ones(1, 3)).sum().item())
    try:
        save_file(model.state_dict(), path)
    except RuntimeError as error:
        print("shared" in str(error))
    try:
        save_file({"x": torch.ones(4, 4).t()[:, :2]}, path)
    except ValueError as error:
        print("contiguous" in str(error))
data = save(tensors)
print(len(data), load(data)["b"].tolist())
