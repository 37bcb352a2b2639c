"""A classifier of skorch with callbacks, and a grid search of scikit-learn's."""

import pickle

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping, EpochScoring, LRScheduler

torch.manual_seed(0)
np.random.seed(0)
X, y = make_classification(80, 6, random_state=0)
X = X.astype("f")


class M(torch.nn.Module):
    def __init__(self, h=8):
        super().__init__()
        self.a = torch.nn.Linear(6, h)
        self.b = torch.nn.Linear(h, 2)

    def forward(self, x):
        return torch.softmax(self.b(torch.relu(self.a(x))), -1)


n = NeuralNetClassifier(
    M,
    max_epochs=4,
    lr=0.1,
    verbose=0,
    callbacks=[EarlyStopping(), LRScheduler(policy="StepLR", step_size=2), EpochScoring("roc_auc")],
)
n.fit(X, y)
print(n.history[:, "train_loss"], n.history[:, "valid_loss"], n.score(X, y))
print(n.predict_proba(X[:2]).tolist())
g = GridSearchCV(
    NeuralNetClassifier(M, max_epochs=2, verbose=0, train_split=None), {"module__h": [4, 8]}, cv=2
)
g.fit(X, y)
print(g.best_score_)

print(pickle.loads(pickle.dumps(n)).score(X, y))
