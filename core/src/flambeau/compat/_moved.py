"""Classes of `flambeau.nn` that PyTorch keeps in another file, under whose path programs import."""

from __future__ import annotations

import importlib
from typing import Any

_ALL = "*"
"""What a module says that it has."""
_LAZY = "flambeau.nn.modules.lazy_layers"
_PIPES = "flambeau.compat._torch.utils.data.datapipes"
_STEPS = "flambeau.compat._torch.optim._functional"
_FUNCTIONAL = "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd".split()

MOVED = {
    "_linalg_utils": {"flambeau": "matmul"},
    "_lowrank": {"flambeau": "svd_lowrank pca_lowrank"},
    "autograd.anomaly_mode": {"flambeau.autograd": "detect_anomaly set_detect_anomaly"},
    "autograd.grad_mode": {
        "flambeau.autograd": "no_grad enable_grad set_grad_enabled inference_mode"
    },
    "autograd.profiler_util": {
        "flambeau.autograd._events": """EventList FunctionEvent FunctionEventAvg Interval
            format_time""",
    },
    "cuda.graphs": {
        "flambeau.cuda": """CUDAGraph graph graph_pool_handle is_current_stream_capturing
            make_graphed_callables""",
    },
    "cuda.memory": {
        "flambeau.cuda": """empty_cache max_memory_allocated max_memory_cached max_memory_reserved
            mem_get_info memory_allocated memory_cached memory_reserved memory_stats memory_summary
            reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats""",
    },
    "cuda.random": {
        "flambeau.cuda": """get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all
            seed seed_all set_rng_state set_rng_state_all""",
    },
    "cuda.streams": {"flambeau.cuda": "Event Stream"},
    "distributed.constants": {"flambeau.distributed": "default_pg_timeout"},
    "distributed.distributed_c10d": {
        "flambeau.distributed": _ALL,
        "flambeau.compat._torch.distributed": """_all_gather_base _get_global_rank
            _rank_not_in_group _reduce_scatter_base""",
        "flambeau.distributed._init": "_get_default_group _get_default_store",
    },
    "distributed.rendezvous": {
        "flambeau.distributed._rendezvous": "register_rendezvous_handler rendezvous"
    },
    "distributed.optim": {"flambeau.optim.zero_redundancy": "ZeroRedundancyOptimizer"},
    "distributed.optim.zero_redundancy_optimizer": {
        "flambeau.optim.zero_redundancy": "ZeroRedundancyOptimizer"
    },
    "distributions.transforms": {
        "flambeau.distributions.transforms._elementwise": "_clipped_sigmoid"
    },
    "multiprocessing.pool": {"flambeau.multiprocessing": "Pool"},
    "multiprocessing.queue": {"flambeau.multiprocessing": "Queue SimpleQueue"},
    "multiprocessing.spawn": {
        "flambeau.multiprocessing": """ProcessContext ProcessExitedException ProcessRaisedException
            SpawnContext spawn start_processes""",
    },
    "nn.modules.batchnorm": {_LAZY: "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d"},
    "nn.modules.instancenorm": {
        _LAZY: "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
    },
    "nn.modules.linear": {_LAZY: "LazyLinear"},
    "onnx.errors": {"flambeau.onnx": "UnsupportedOperatorError"},
    "onnx.utils": {
        "flambeau.onnx": """export export_to_pretty_string is_in_onnx_export
            register_custom_op_symbolic select_model_mode_for_export
            unregister_custom_op_symbolic""",
    },
    "optim._multi_tensor": {
        "flambeau.optim": "Adadelta Adagrad Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop SGD"
    },
    **{f"optim.{name}": {_STEPS: name} for name in _FUNCTIONAL},
    "testing._creation": {"flambeau.testing": "make_tensor"},
    **{
        f"utils.data.datapipes.{path}": {f"{_PIPES}.{home}": names}
        for path, home, names in (
            ("iter.callable", "_iter_pipes", "CollatorIterDataPipe MapperIterDataPipe"),
            ("iter.combinatorics", "_iter_pipes", "SamplerIterDataPipe ShufflerIterDataPipe"),
            ("iter.combining", "_iter_several", _ALL),
            ("iter.filelister", "_iter_sources", "FileListerIterDataPipe"),
            ("iter.fileopener", "_iter_sources", "FileOpenerIterDataPipe"),
            (
                "iter.grouping",
                "_iter_pipes",
                "BatcherIterDataPipe GrouperIterDataPipe UnBatcherIterDataPipe",
            ),
            ("iter.selecting", "_iter_pipes", "FilterIterDataPipe"),
            ("iter.sharding", "_iter_sources", "SHARDING_PRIORITIES ShardingFilterIterDataPipe"),
            ("iter.streamreader", "_iter_sources", "StreamReaderIterDataPipe"),
            ("iter.utils", "_iter_pipes", "IterableWrapperIterDataPipe"),
            ("map.callable", "_map_pipes", "MapperMapDataPipe default_fn"),
            ("map.combinatorics", "_map_pipes", "ShufflerIterDataPipe"),
            ("map.combining", "_map_pipes", "ConcaterMapDataPipe ZipperMapDataPipe"),
            ("map.grouping", "_map_pipes", "BatcherMapDataPipe"),
            ("map.utils", "_map_pipes", "SequenceWrapperMapDataPipe"),
        )
    },
    "utils.data._utils.pin_memory": {"flambeau.utils.data._utils.pin": "pin_memory"},
    "utils.tensorboard.writer": {"flambeau.utils.tensorboard": "FileWriter SummaryWriter"},
}
"""Paths below ``torch``, and what is found there, by the module that has it."""

_BESIDE = {
    "flambeau.distributions": "Distribution ExponentialFamily Independent TransformedDistribution",
    "flambeau.distributions.utils": """_standard_normal _sum_rightmost broadcast_all lazy_property
        logits_to_probs probs_to_logits""",
}
"""What PyTorch's files of distributions import, and programs import from any of them."""

IMPORTED = {
    "autograd.function": "functools inspect itertools warnings",
    "distributions.kl": "math warnings",
    "distributions.transforms": "functools math operator",
    "hub": "hashlib json os re shutil sys tempfile uuid warnings zipfile",
    "nn.functional": "importlib math warnings",
    "nn.init": "math warnings",
    "nn.modules.activation": "warnings",
    "nn.modules.conv": "math",
    "nn.modules.loss": "math",
    "nn.modules.module": "functools inspect itertools warnings weakref",
    "nn.modules.rnn": "math numbers warnings weakref",
    "nn.modules.transformer": "copy warnings",
    "nn.modules.utils": "collections",
    "nn.parallel.data_parallel": "operator warnings",
    "nn.parallel.distributed": "copy inspect itertools logging os sys warnings weakref",
    "nn.utils.rnn": "warnings",
    "optim.lr_scheduler": "math types warnings",
    "optim.optimizer": "functools warnings",
    "optim.swa_utils": "itertools math warnings",
    "overrides": "collections contextlib functools sys types warnings",
    "random": "contextlib warnings",
    "serialization": """copyreg functools io os pickle re shutil struct sys tarfile tempfile
        threading warnings""",
    "utils.checkpoint": "contextlib itertools platform uuid warnings",
    "utils.data.dataloader": """contextlib functools itertools logging os queue threading warnings
        weakref""",
}
"""Python's own modules that PyTorch's files import, and programs take from there: an argument's
default is ``torch.serialization.pickle``."""


def moved(below: str) -> dict[str, Any]:
    """The names of a path below ``torch`` that other modules of flambeau have."""
    homes = MOVED.get(below, {})
    if below.startswith("distributions."):
        homes = {**_BESIDE, **homes}
    found: dict[str, Any] = {}
    for home, names in homes.items():
        module = importlib.import_module(home)
        listed = module.__all__ if names == _ALL else names.split()
        found.update((name, getattr(module, name)) for name in listed)
    for name in IMPORTED.get(below, "").split():
        found[name] = importlib.import_module(name)
    return found
