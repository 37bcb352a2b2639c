"""Updates of ikostrikov's A2C, PPO and ACKTR, whose program wants simulators of robots."""

import sys
from types import SimpleNamespace

import torch

# The module of its worlds, which wants packages that are gone.
sys.modules["a2c_ppo_acktr.envs"] = SimpleNamespace(VecNormalize=None)  # type: ignore[assignment]

from a2c_ppo_acktr.algo import A2C_ACKTR, PPO  # noqa: E402  as the line above comes first
from a2c_ppo_acktr.model import Policy  # noqa: E402
from a2c_ppo_acktr.storage import RolloutStorage  # noqa: E402

STEPS, PLACES = 8, 4


class Box:
    """Actions of several numbers."""

    shape = (3,)


class Discrete:
    """Actions that are one of four."""

    n = 4


def train(name, agent_of, shape, space, recurrent=False):
    """Print the losses of three updates in a world that moves by chance."""
    torch.manual_seed(1)
    policy = Policy(shape, space, base_kwargs={"recurrent": recurrent})
    agent = agent_of(policy)
    kept = RolloutStorage(STEPS, PLACES, shape, space, policy.recurrent_hidden_state_size)
    kept.obs[0].copy_(torch.rand(PLACES, *shape))
    for _ in range(3):
        for step in range(STEPS):
            with torch.no_grad():
                value, action, chance, hidden = policy.act(
                    kept.obs[step], kept.recurrent_hidden_states[step], kept.masks[step]
                )
            seen = torch.rand(PLACES, *shape)
            reward = seen.flatten(1).mean(1, keepdim=True)
            masks = (torch.rand(PLACES, 1) > 0.2).float()
            good = torch.ones(PLACES, 1)
            kept.insert(seen, hidden, action, chance, value, reward, masks, good)
        with torch.no_grad():
            last = policy.get_value(kept.obs[-1], kept.recurrent_hidden_states[-1], kept.masks[-1])
        kept.compute_returns(last.detach(), True, 0.99, 0.95, False)
        print(name, *(f"{loss:.5f}" for loss in agent.update(kept)))
        kept.after_update()
    total = sum(p.detach().double().abs().sum() for p in policy.parameters())
    print(name, f"{total:.4f}")


def a2c(policy):
    """RMSprop."""
    return A2C_ACKTR(policy, 0.5, 0.01, lr=7e-4, eps=1e-5, alpha=0.99, max_grad_norm=0.5)


def ppo(policy):
    """Adam, two passes over two parts."""
    return PPO(policy, 0.2, 2, 2, 0.5, 0.01, lr=3e-4, eps=1e-5, max_grad_norm=0.5)


def acktr(policy):
    """Natural gradients by Kronecker factors."""
    return A2C_ACKTR(policy, 0.5, 0.01, acktr=True)


for space in (Box(), Discrete()):
    kind = type(space).__name__
    train(f"a2c {kind}", a2c, (6,), space)
    train(f"a2c recurrent {kind}", a2c, (6,), space, recurrent=True)
    train(f"ppo {kind}", ppo, (6,), space)
    train(f"ppo recurrent {kind}", ppo, (6,), space, recurrent=True)
    train(f"acktr {kind}", acktr, (6,), space)
train("ppo pictures", ppo, (1, 84, 84), Discrete())
