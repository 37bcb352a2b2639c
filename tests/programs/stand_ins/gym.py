"""The interface of gym before its version 0.26, in front of gymnasium, which followed it."""

import gymnasium

spaces = gymnasium.spaces
Wrapper = gymnasium.Wrapper


class _Old:
    """Answers `reset` with the state alone, and `step` with four values."""

    def __init__(self, env):
        self._env = env
        self._seed = 1

    def __getattr__(self, name):
        return getattr(self._env, name)

    def seed(self, seed):
        self._seed = seed

    def reset(self):
        state, _ = self._env.reset(seed=self._seed)
        self._seed = None
        return state

    def step(self, action):
        state, reward, terminated, truncated, said = self._env.step(action)
        return state, reward, terminated or truncated, said


class _New(_Old):
    """Answers as gym 0.26 did, with a seed at the first reset."""

    def reset(self, **options):
        options.setdefault("seed", self._seed)
        self._seed = None
        return self._env.reset(**options)

    def step(self, action):
        return self._env.step(action)


OLD = True
"""Set to False by programs that were written for 0.26 (an edit in the table)."""


def make(name, **options):
    options.pop("autoreset", None)
    env = gymnasium.make(name.replace("CartPole-v0", "CartPole-v1"), **options)
    return (_Old if OLD else _New)(env)
