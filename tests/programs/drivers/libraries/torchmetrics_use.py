"""Metrics of classes, numbers, images and texts, by torchmetrics."""

import torch
import torchmetrics
from torchmetrics import MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassAveragePrecision,
    MulticlassCalibrationError,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.regression import (
    KendallRankCorrCoef,
    MeanSquaredError,
    PearsonCorrCoef,
    R2Score,
    SpearmanCorrCoef,
)
from torchmetrics.retrieval import RetrievalMAP
from torchmetrics.text import EditDistance, Perplexity, WordErrorRate

torch.manual_seed(0)
scores, labels = torch.randn(40, 5).softmax(1), torch.randint(5, (40,))
metrics = MetricCollection(
    [
        make(num_classes=5)
        for make in (
            MulticlassAccuracy,
            MulticlassAUROC,
            MulticlassAveragePrecision,
            MulticlassCalibrationError,
            MulticlassF1Score,
        )
    ]
)
for part in range(4):
    metrics.update(scores[part * 10 : part * 10 + 10], labels[part * 10 : part * 10 + 10])
for name, value in metrics.compute().items():
    print(name, value.item())
print(MulticlassConfusionMatrix(num_classes=5)(scores, labels).tolist())
x = torch.randn(30)
y = x + 0.3 * torch.randn(30)
for make in (MeanSquaredError, PearsonCorrCoef, SpearmanCorrCoef, R2Score, KendallRankCorrCoef):
    print(make.__name__, make()(x, y).item())
images = torch.rand(2, 3, 32, 32)
print(PeakSignalNoiseRatio(data_range=1.0)(images, images * 0.9).item())
print(StructuralSimilarityIndexMeasure(data_range=1.0)(images, images * 0.9).item())
print(
    RetrievalMAP()(torch.rand(10), torch.arange(10) % 3 == 0, indexes=torch.arange(10) // 5).item()
)
print(WordErrorRate()(["a b c"], ["a b d"]).item(), EditDistance()(["abc"], ["abd"]).item())
print(Perplexity()(torch.randn(2, 4, 5), torch.randint(5, (2, 4))).item())
tracker = torchmetrics.MetricTracker(MeanSquaredError(), maximize=False)
for scale in (2.0, 1.0):
    tracker.increment()
    tracker.update(x * scale, y)
print(tracker.best_metric())
