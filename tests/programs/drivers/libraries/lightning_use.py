"""A model of lightning trained, validated, kept and loaded again."""

import tempfile
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")


class Model(L.LightningModule):
    def __init__(self, width=16, rate=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3))

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val", nn.functional.cross_entropy(self.net(x), y), prog_bar=True)

    def predict_step(self, batch, index):
        return self.net(batch[0]).argmax(1)

    def configure_optimizers(self):
        optimiser = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
        return [optimiser], [torch.optim.lr_scheduler.StepLR(optimiser, 1, 0.5)]


L.seed_everything(3)
x = torch.randn(48, 4)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
data = TensorDataset(x, y)
with tempfile.TemporaryDirectory() as folder:
    keep = ModelCheckpoint(dirpath=folder, monitor="val")
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        callbacks=[keep, EarlyStopping("val")],
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=0.5,
        accumulate_grad_batches=2,
    )
    model = Model()
    trainer.fit(model, DataLoader(data, 8, shuffle=True), DataLoader(data, 16))
    print({k: v.item() for k, v in trainer.callback_metrics.items()})
    again = Model.load_from_checkpoint(keep.best_model_path)
    print(again.hparams, again.net(x).sum().item())
    print(torch.cat(trainer.predict(again, DataLoader(data, 16))).sum().item())
    print(trainer.validate(again, DataLoader(data, 16), verbose=False))
fabric = L.Fabric(accelerator="cpu", precision="bf16-mixed")
model = nn.Linear(4, 3)
model, optimiser = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.1))
loader = fabric.setup_dataloaders(DataLoader(data, 16))
for a, b in loader:
    loss = nn.functional.cross_entropy(model(a), b)
    optimiser.zero_grad()
    fabric.backward(loss)
    optimiser.step()
    print(loss.item())
