"""Three epochs with handlers and metrics of ignite."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import (
    CosineAnnealingScheduler,
    EMAHandler,
    TerminateOnNan,
)
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, Precision, Recall, RunningAverage

torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
o = torch.optim.Adam(m.parameters(), 0.01)
ds = torch.utils.data.TensorDataset(torch.randn(48, 4), torch.randint(0, 3, (48,)))
dl = torch.utils.data.DataLoader(ds, 8, shuffle=True)
t = create_supervised_trainer(m, o, torch.nn.CrossEntropyLoss())
e = create_supervised_evaluator(
    m,
    {
        "a": Accuracy(),
        "l": Loss(torch.nn.CrossEntropyLoss()),
        "p": Precision(average=True),
        "r": Recall(average=True),
        "c": ConfusionMatrix(3),
    },
)
RunningAverage(output_transform=lambda x: x).attach(t, "ra")
t.add_event_handler(Events.ITERATION_STARTED, CosineAnnealingScheduler(o, "lr", 0.01, 0.001, 20))
t.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
EMAHandler(m, 0.1).attach(t)


@t.on(Events.EPOCH_COMPLETED)
def _(en):
    e.run(dl)
    print(
        en.state.metrics["ra"],
        {k: (v.tolist() if hasattr(v, "tolist") else v) for k, v in e.state.metrics.items()},
    )


t.run(dl, 3)
