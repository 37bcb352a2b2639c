"""Variational inference, enumeration and NUTS with pyro."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta, AutoMultivariateNormal, AutoNormal
from pyro.optim import Adam

pyro.set_rng_seed(0)
data = torch.randn(50) * 2 + 3


def model(d):
    m = pyro.sample("m", dist.Normal(0.0, 10.0))
    s = pyro.sample("s", dist.LogNormal(0.0, 1.0))
    with pyro.plate("d", len(d)):
        pyro.sample("o", dist.Normal(m, s), obs=d)


for G in (AutoNormal, AutoMultivariateNormal, AutoDelta):
    pyro.clear_param_store()
    pyro.set_rng_seed(1)
    g = G(model)
    svi = SVI(model, g, Adam({"lr": 0.05}), Trace_ELBO())
    for _i in range(8):
        print(svi.step(data))
pyro.clear_param_store()


@config_enumerate
def gmm(d):
    w = pyro.sample("w", dist.Dirichlet(0.5 * torch.ones(2)))
    with pyro.plate("c", 2):
        loc = pyro.sample("l", dist.Normal(0.0, 10.0))
    with pyro.plate("d", len(d)):
        z = pyro.sample("z", dist.Categorical(w))
        pyro.sample("o", dist.Normal(loc[z], 1.0), obs=d)


pyro.set_rng_seed(2)
g = AutoDelta(pyro.poutine.block(gmm, expose=["w", "l"]))
svi = SVI(gmm, g, Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
for _i in range(6):
    print(svi.step(data))
pyro.set_rng_seed(3)
mc = MCMC(NUTS(model), num_samples=8, warmup_steps=8, disable_progbar=True)
mc.run(data)
print(mc.get_samples()["m"].tolist())
print(Predictive(model, mc.get_samples())(data)["o"].sum().item())
