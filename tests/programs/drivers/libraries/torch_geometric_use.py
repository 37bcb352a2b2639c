"""Graph networks of PyTorch Geometric on a small graph."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    global_max_pool,
    global_mean_pool,
)
from torch_geometric.utils import add_self_loops, degree, to_dense_adj

torch.manual_seed(0)
edges = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4, 4, 0], [1, 0, 2, 1, 3, 2, 4, 3, 0, 4]])
data = Data(x=torch.randn(5, 6), edge_index=edges, y=torch.tensor([0, 1, 0, 1, 1]))
print(data.num_nodes, data.is_undirected(), degree(edges[0]).tolist())
print(to_dense_adj(edges)[0].sum().item(), add_self_loops(edges)[0].shape[1])
for make in (
    lambda i, o: GCNConv(i, o),
    lambda i, o: GATConv(i, o, heads=2, concat=False),
    lambda i, o: SAGEConv(i, o),
    lambda i, o: GraphConv(i, o),
    lambda i, o: GINConv(torch.nn.Sequential(torch.nn.Linear(i, o), torch.nn.ReLU())),
):
    torch.manual_seed(1)
    first, second = make(6, 8), make(8, 2)
    parameters = [*first.parameters(), *second.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(4):
        found = second(F.relu(first(data.x, data.edge_index)), data.edge_index)
        loss = F.cross_entropy(found, data.y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    print(type(first).__name__, loss.item())
batch = Batch.from_data_list([data, data.clone()])
print(
    global_mean_pool(batch.x, batch.batch).sum().item(),
    global_max_pool(batch.x, batch.batch).sum().item(),
)
