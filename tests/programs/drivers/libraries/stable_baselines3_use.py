"""Agents of stable-baselines3 learn for a few steps on a cart with a pole."""

import tempfile

import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

torch.set_num_threads(1)
env = make_vec_env("CartPole-v1", n_envs=2, seed=0)
for kind, options in (
    (PPO, {"n_steps": 32, "batch_size": 16, "n_epochs": 2}),
    (A2C, {}),
    (DQN, {"learning_starts": 20, "buffer_size": 200}),
):
    model = kind(
        "MlpPolicy", env, seed=1, device="cpu", policy_kwargs={"net_arch": [16]}, **options
    )
    model.learn(128)
    print(kind.__name__, sum(p.abs().sum().item() for p in model.policy.parameters()))
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        model.save(file.name)
        again = kind.load(file.name, env=env, device="cpu")
    print(evaluate_policy(again, env, n_eval_episodes=2))
env = make_vec_env("Pendulum-v1", n_envs=1, seed=0)
for kind in (SAC, TD3):
    model = kind(
        "MlpPolicy",
        env,
        seed=1,
        device="cpu",
        learning_starts=20,
        buffer_size=200,
        batch_size=16,
        policy_kwargs={"net_arch": [16]},
    )
    model.learn(60)
    print(kind.__name__, sum(p.abs().sum().item() for p in model.policy.parameters()))
