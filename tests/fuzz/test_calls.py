"""Hostile calls end in a result or in an error of ours: a sample of what ``make fuzz`` runs."""

from __future__ import annotations

import ast
import copy
import os
import pickle

import pytest

import calls_run
import flambeau as fb
import programs
import verdicts
import writes
from children import Child

COUNT = int(os.environ.get("FUZZ_CALLS", "1000"))

FOUND = r"""
fb.ones(3, dtype=fb.float16).histc(2**63, max=7)
fb.ones(3, dtype=fb.bfloat16) * 10**400
fb.gru(fb.ones(3, 2, 4), fb.zeros(0, 2, 3), [], False, 0, 0.0, False, False, False)
fb.promote_types(1, -float("inf"))
fb.ones(3).random_(0, 2**70)
fb.ones(3).resize_((3, 2**62))
fb.nn.functional.hardtanh_(fb.ones(3), min_val=np.array("x"))
fb.nn.functional.hardshrink(fb.ones(3), np.array("x"))
fb.isneginf(fb.ones(3).to_sparse(), out=fb.ones(3, dtype=fb.bool))
fb.nn.LSTM(3, 4)(fb.ones(2, 2, 3), (fb.zeros(1, 2, 4), None))
fb.nn.GRU(3, 4)("x")
fb.nn.GRU(5, 6, 2**63 - 1)
fb.nn.GRU(5, 6, 2**31)
fb.nn.Transformer(8, 2, 2**63, 1)
fb.nn.GroupNorm(0, 2)
fb.nn.RNNBase("reflect", 3, 3)
fb.nn.functional.interpolate(fb.ones(1, 1, 2, 2), scale_factor=(2**31 - 1, 1.5))
fb.nn.functional.interpolate(fb.ones(1, 1, 2, 2), scale_factor=10**400)
fb.nn.functional.fractional_max_pool3d(fb.ones(1, 3, 4, 5), 2, output_ratio=np.array("x"))
fb.nn.functional.fractional_max_pool3d(fb.ones(1, 3, 4, 5), 2, output_ratio=float("inf"))
fb.nn.functional.fractional_max_pool2d(fb.ones(1, 3, 3), 2, output_ratio=10**400)
fb.nn.functional.scaled_dot_product_attention(*[fb.ones(1, 2, 2)] * 3, scale=10**400)
fb.nn.functional.scaled_dot_product_attention(*[fb.ones(1, 2, 2)] * 3, scale="x")
fb.nn.LSTM(3, 2)(fb.ones(2, 3), {"a": 1})
fb.jit.CompilationUnit("def f(a: float):\\n    return a").f(10**400)
fb.jit.CompilationUnit("def f(a: List[complex]):\\n    return a").f([10**400])
fb.nn.functional.relu("x")
fb.nn.functional.pad(1, (2, 0), mode="reflect")
fb.nn.init.constant_(fb.int64, 0.5)
fb.nn.utils.prune.remove((0, 0), "mean")
fb.nn.utils.fuse_linear_bn_eval(fb.ones(3), fb.nn.Linear(3, 2))
fb.nn.Parameter("cpu")
fb.ones((1,) * 65)
fb.zeros(0).as_strided((0, 2**62), (1, 1))
fb.zeros(3, 1).expand(-1, 2**63 - 1)
fb.ones(3, 3, dtype=fb.complex64).fmod(2)
fb.ones(3, dtype=fb.complex64).fix()
fb.ones(3, 2).igamma(fb.ones(2, 3))
fb.logspace(0, 10**400, 3)
fb.utils.data.TensorDataset((1, 2))
fb.optim.Optimizer([fb.nn.Parameter(fb.ones(3))], fb.ones(3))
fb.ones(1, 1).__deepcopy__(fb.ones(2, 3))
fb.range(1, 3, dtype=fb.ones(3))
fb.logspace(0, 2, 3, out=0)
fb.randperm(1, out=1)
fb.arange(10**400)
fb.trapezoid(fb.ones(3), dx=10**400)
fb.eye(np.array("x"))
fb.feature_alpha_dropout(fb.ones(3, 3), np.array("x"), True)
fb.ones(4).as_strided((2**16, np.array("x")), (0, 1))
fb.arange(5).unfold(0, 3, 2**63)
fb.zeros(0).unsafe_chunk(2**62)
fb.masked_select(b"x", fb.tensor([True, False]))
fb.special.laguerre_polynomial_l(fb.tensor([0.5, 2.0]), 2**62)
fb.func.stack_module_state(fb.ones(2, 3))
fb.func.replace_all_batch_norm_modules_((True, False))
fb.func.debug_unwrap(1.0)
fb.accelerator.Stream()
fb.accelerator.namespace(1.5).device_count()
fb.autograd.grad(fb.ones(1, requires_grad=True) * 2, [None])
fb.compile(fb.nn.Linear(3, 2), options=object())
fb.distributions.OneHotCategorical(np.int8(-1))
fb.distributions.Dirichlet(1.0)
fb.distributions.MultivariateNormal(fb.zeros(2), precision_matrix=fb.complex64)
fb.distributions.AbsTransform()({"a": 1})
fb.distributions.CumulativeDistributionTransform(len)
fb.manual_seed(float("inf"))
fb.nn.AdaptiveLogSoftmaxWithLoss(0, -(2**31), (float("inf"), 2))
fb.nn.AlphaDropout(np.array("x"))
fb.nn.BatchNorm3d(3)(fb.uint8)
fb.nn.grad.conv1d_input((1, 1, 3), 1.5, fb.ones(1, 1, 2))
fb.nn.init.dirac_(fb.ones(1, 2, 3), groups=0)
fb.nn.init.kaiming_normal_(fb.ones(3, 2), a=1e300)
fb.nn.init.trunc_normal_(fb.ones(3), std=0.0)
fb.nn.parallel.replicate(fb.ones(3), fb.ones(3))
fb.nn.utils.clip_grads_with_norm_(fb.tensor(2.0), 3, 2**63 - 1)
fb.nn.utils.rnn.unpad_sequence(fb.ones(2, 2), fb.tensor([1e300, 1]), batch_first=True)
fb.nn.utils.summary([[1], [2, 3]], input_data=fb.ones(2))
fb.optim.lr_scheduler.CosineAnnealingWarmRestarts(fb.optim.SGD([fb.ones(3)]), T_0=10**400)
fb.optim.lr_scheduler.CyclicLR(fb.optim.SGD([fb.ones(3)]), 0.0, 1.0, step_size_up=0)
fb.smm(fb.eye(2).to_sparse(), fb.ones(2, 2), out=2)
fb.TypedStorage(dtype=(2, 1.5))
fb.normal(10**400, 1.0, (2, 3))
fb.zeros(2, fb.ones(2, 3).to_sparse(), 3)
fb.utils.checkpoint.set_device_states(fb.ones(2), fb.ones(2))
fb.distributions.ExponentialFamily.entropy(fb.ones(2))
fb.nn.functional.embedding_bag(fb.tensor([0, 1]), fb.ones(3, 1), (None, 1), mode="sum")
fb.sparse.addmm("", fb.eye(2).to_sparse(), fb.eye(2))
fb.sspaddmm(fb.ones(2, 2), fb.ones(2, 2), fb.ones(2, 2))
fb.nn.utils.prune.global_unstructured([], int)
fb.dsplit(fb.rand(1, 2, 3), np.array("x"))
fb.nn.functional.conv_transpose2d(fb.ones(1, 1, 2, 2), fb.ones(1, 1, 1, 1), stride=np.array("x"))
fb.nn.Conv1d(np.array("x"), 33, 3)
fb.margin_ranking_loss(fb.ones(2, 3), np.array([[1, 2], [3, 4]]), fb.ones(2))
fb.sparse_coo_tensor(fb.zeros(2**31, 0, dtype=fb.int64), fb.zeros(0), (2, 3))
fb.arange(6).resize_(2**62, 1)
fb.arange(6).resize_(2**58, 1)
fb.ones(3).__array__(dtype=fb.ones(2))
fb.histogram(fb.ones(3), bins=4, range=(0.0, 10**400))
fb.symeig("fro")
fb.renorm(fb.ones(2, 3), np.array("x"), 0, 1.0)
fb.arange(6).view(2, 3).dist(np.array([[1, 2], [3, 4]]), p=1)
fb.logspace(0, 2, 10**400)
fb.allclose(fb.ones(2), fb.ones(2), rtol=1.0, atol=np.array("x"))
fb.ones(2).bernoulli_(generator=fb.Generator(), p_tensor=np.array("x"))
fb.nn.CELU(10**400)(fb.ones(2))
fb.ones(3, 2).add_(b"x", -(2**70))
fb.utils.plot_graph(np.array([1, 2]))
fb.utils.checkpoint.set_device_states(fb.ones(3), fb.ones(2, 3), device_type="mean")
fb.func.debug_unwrap([], recurse=False)
fb.sspaddmm(fb.ones(2, 2), fb.eye(2).to_sparse(), fb.ones(2, 2), out=fb.eye(2).to_sparse())
fb.tensor(2.0).__array__(dtype=b"x")
fb.optim.swa_utils.get_swa_avg_fn()(np.array([1.0, 2.0]), fb.tensor(8.0), 3)
fb.optim.lr_scheduler.ChainedScheduler({"a": 1})
fb.nn.utils.prune.identity(fb.nn.Conv2d(3, 2, 1), "cpu")
fb.array_api.imag((True, False))
fb.array_api.linalg.solve((0, 2), (None,))
fb.distributed.ProcessGroup(fb.ones(2), "sum", fb.ones(3, 3), fb.uint8, fb.ones(3))
fb.distributed.is_backend_available(fb.contiguous_format)
fb.distributed.PrefixStore(fb.ones(70000), fb.distributed.HashStore()).check(fb.ones(70000))
fb.distributed.HashStore().wait(["a"], 2**31)
fb.fx.Proxy(fb.ones(3, 3))
fb.fx.Transformer(complex("nan"))
fb.fx.replace_pattern(fb.ones(3), fb.ones(3), (2, 3))
fb.jit.run_frozen_optimizations(fb.ones(3))
fb.jit.RecursiveScriptModule(fb.ones(3))(fb.zeros(0))
fb.jit.ScriptFunction("a", "b", graph=fb.ones(2))
fb.jit.CompilationUnit("def f(x, n: int):\n  return (f, x)").f(fb.ones(2), 1)
fb.jit.CompilationUnit("def f(x):\n  return " + "-" * 50000 + "x")
fb.jit.CompilationUnit("def f(x):\n  return [" + " + ".join(["x"] * 5000) + "]").f(fb.ones(2))
fb.jit.CompilationUnit("def f(x):\n  return x\0")
fb.jit.CompilationUnit("def f(x, y: bool = torch.jit.nothing):\n  return x")
fb.utils.cpp_extension.load_inline(fb.ones(2), "")
fb.utils.cpp_extension.check_compiler_abi_compatibility((2, 3))
fb.onnx.export(fb.nn.Linear(3, 2), (fb.ones(2, 3),), dynamic_axes=1.5)
fb.zeros(fb.device("meta", np.array("x")), 2, 2)
fb.utils.hooks.unserializable_hook(("a", "b"))
fb.tensor([0.0, fb.Tensor])
fb.tensor([0.0, np.float32])
fb.distributed.broadcast_multigpu("ii", 0)
fb.distributed.PrefixStore("a", fb.zeros(2, 0, 3)).set("x", "1")
fb.distributed.all_reduce_coalesced({})
fb.futures.collect_all((1,) * 65)
fb.jit.unused("")
fb.jit.Node("mean", inputs=fb.ones(2, 3))
fb.jit.export_opnames(fb.ones(3))
fb.jit.CompilationUnit("def f(n: int):\n  return torch.ones([[1, 2], [3, n]])").f(1j)
fb.nn.parallel.gather([fb.tensor([1, 2]), {}], "cpu")
fb.serialization.register_format(b"x")
fb.serialization.location_tag(3)
fb.save([1], "x", 0)
fb.optim.SGD([{}], lr=0.25)
fb.nn.RNNCellBase(0, [None, 1], False, 2**31)
fb.unbind(fb.ones(6).as_strided((2**31, 3), (0, 0)))
fb.range(1, 0, np.uint64(2**64 - 1))
fb.hamming_window(3, alpha=1.0, beta=10**400)
fb.rrelu(fb.ones(3), lower=1.0, upper=10**400)
fb.nn.Linear(2, fb.ones(2, 3).to_sparse())
fb.array_api.roll(fb.rand(2, 3), np.array("x"))
fb.distributions.Chi2(np.array("fro"))
fb.ones(3, dtype=fb.complex64).sub(1, alpha=np.array("x"))
fb.ones(3).__rtruediv__(np.array([None, 1], dtype=object))
fb.profiler.schedule(wait=1, warmup=1, active=2, repeat=np.array("x"))
fb.histc(fb.ones(3), bins=4, min=np.array("x"), max=3)
fb.roll(fb.ones(3, 3), (2, 3), dims=np.array([1, 2], dtype=">i4"))
fb.func.jacfwd(lambda x: fb.ones((1,) * 65) * x)(fb.ones(2))
fb.pca_lowrank(fb.ones(3, 2), q=np.array("x"))
fb.nn.functional.max_unpool1d(fb.ones(1, 1, 2), fb.zeros(1, 1, 2).long(), 2, np.array([1, 2]))
fb.overrides.offer_calls({})
fb.unflatten(fb.zeros(6, 2), 0, fb.ones(1).expand(2**17))
fb.triplet_margin_loss(*[fb.ones(1, 1)] * 3, np.array([1, 2], dtype=">i4"))
np.array([None]) + fb.ones(2)
fb.serialization.location_tag(np.array([1.0, 2.0]))
fb.convolution(fb.ones(1, 1, 3), fb.ones(1, 1, 2), None, [1], [2**70], [1], False, [0], 1)
fb.convolution(fb.ones(1, 1, 3), fb.ones(1, 1, 2), None, [1], [2**62], [1], False, [0], 1)
fb.nn.functional.triplet_margin_with_distance_loss(*[fb.ones(2)] * 3, margin=np.array("x"))
fb.ifft(fb.ones(2, 2), np.array("x"))
fb.stft(fb.ones(3), 1, hop_length=2, window=(2**62, 2**62))
fb.as_strided(fb.ones(6), (2, 3), (0, 0), np.array("x"))
fb.ones(6).as_strided((2, 3), (0, 0), np.array("x"))
fb.poisson_nll_loss(fb.rand(2, 3), fb.tensor([1, -1]), False, "", np.array([1, 2], dtype=">i4"), 1)
fb.quantile(fb.ones(3), np.array("x"))
fb.utils.hooks.unserializable_hook(len)
fb.optim.ASGD([fb.ones(2, requires_grad=True)], lambd=10**400)
fb.optim.SGD([{"params": [fb.ones(2, requires_grad=True)], "lr": 10**400}])
fb.jit.CompilationUnit("def f(x: Dict['a->b', int]) -> int:\n  return 1").f({})
fb.jit.CompilationUnit("def f(x: '('):\n  return x").f(1)
fb.jit.CompilationUnit("def f(x):\n  # type: (int) -> ->\n  return x").f(1)
fb.jit.CompilationUnit("def f(x):\n  # type: (int) if 1 else (int)\n  return x").f(1)
fb.jit.CompilationUnit("def f(x):\n  y = x # type: a b\n  return y").f(1)
fb.distributed.init_process_group("gloo", store=fb.distributed.HashStore(), rank=0.0, world_size=1)
fb.distributed.init_process_group("gloo", store=fb.distributed.HashStore(), rank=0, world_size=1e9)
fb.nn.functional.softshrink(fb.rand(2), lambd=np.array("x"))
fb.channel_shuffle(fb.rand(2, 4, 3), np.array("x"))
fb.lstm_cell(fb.zeros(2, 4), (fb.zeros(2, 3), "x"), fb.ones(12, 4), fb.ones(12, 3))
fb.linalg.matrix_norm(fb.eye(2), 10**400)
fb.diagflat(fb.ones(2, 1), 10**400)
fb.nn.utils.clip_grad_value_(fb.ones(2), 10**400)
fb.fft.rfftfreq(np.array("x"))
fb.lstm(fb.zeros(5, 2, 4), [fb.zeros(1, 2, 3)] * 2, [], False, np.array("x"), 0.0, *[False] * 3)
fb.sparse.softmax(fb.eye(2).to_sparse(), np.array("x"))
fb.tensor([]).set_(fb.FloatStorage(4), np.array("x"), (2,), (2,))
fb.tensor([]).set_(fb.FloatStorage(4), 1, (2,), (np.array("x"),))
fb.fft.irfft(fb.fft.rfft(fb.ones(3)), np.array("x"))
fb.nn.functional.dropout(fb.ones(2), np.array("x"), training=False)
fb.nn.functional.group_norm(fb.ones(1, 4), np.array("x"))
fb.nn.functional.pad(fb.ones(1, 3), (np.array("x"), 0), mode="reflect")
fb.tril_indices(np.array("x"), 2)
fb.topk(fb.ones(3), np.array("x"))
fb.unravel_index(fb.tensor([1, 5]), (np.array("x"), 3))
fb.dropout(fb.ones(2), np.array("x"), train=False)
fb.group_norm(fb.ones(1, 4), np.array("x"))
fb.batch_norm(fb.ones(2, 1), None, None, None, None, True, 0.1, np.array("x"), False)
fb.linalg.vander(fb.ones(2), N=np.array("x"))
fb.nn.ConvTranspose2d(4, 6, 3, stride=2)(fb.ones(2, 4, 5, 5), [np.array("x"), 9])
fb.lerp(fb.ones(1), fb.ones(1), np.array("x"))
fb.randint_like(fb.zeros(2, 3), np.array("x"))
fb.multinomial(fb.ones(2), np.array("x"), replacement=True)
fb.broadcast_shapes((np.array("x"), 1), (3,), 1)
fb.narrow(fb.arange(5), 0, 1, np.array("x"))
fb.arange(5).unfold(0, np.array("x"), 2)
fb.repeat_interleave(fb.tensor([1, 2]), np.array("x"))
fb.nn.PixelShuffle(np.array("x"))(fb.ones(1, 9, 4, 4))
fb.nn.Conv1d(4, 6, 3, stride=(np.array("x"),))(fb.ones(2, 4, 7))
fb.convolution(fb.ones(1, 1, 3), fb.ones(1, 1, 2), None, [1], [0], [1], False, [0], np.array("x"))
fb.resample(fb.ones(1, 1, 2), [np.array("x")], "linear")
fb.utils.data.random_split(range(10), [10**400, 0.33])
fb.utils.data.random_split(range(10), [-(10**400), 0.33])
fb.utils.data.random_split(range(10), [np.array("x"), 0.33])
fb.utils.cpp_extension.load_inline("a", "\ud800")
fb.utils.cpp_extension.load_inline("a", "", functions="\ud800")
fb.utils.cpp_extension.load_inline("a", "", cuda_sources="\ud800")
fb.utils.cpp_extension.load_inline("a", "", extra_cflags=["\ud800"])
fb.utils.cpp_extension.load_inline("a", "", extra_include_paths=["\ud800"])
fb.utils.cpp_extension.load_inline("a", "", build_directory="\ud800")
fb.onnx.export(fb.nn.Linear(3, 2), (fb.ones(2, 3),), io.BytesIO(), input_names=["\ud800"])
fb.onnx.load("\ud800")
fb.jit.save(fb.jit.script(fb.nn.Linear(3, 2)), io.BytesIO(), {"\ud800": "a"})
fb.jit.save(fb.jit.script(fb.nn.Linear(3, 2)), io.BytesIO(), {"a": "\ud800"})
fb.save([1], "\ud800")
fb.UntypedStorage(2**70)
fb.UntypedStorage(2**70, device="meta")
fb.UntypedStorage(2**70, device="ref")
fb.UntypedStorage(2**60, device="ref")
fb.TypedStorage(2**62, dtype=fb.float32)
fb.UntypedStorage(3, device="meta").resize_(2**70)
fb.nn.utils.fuse_conv_bn_weights(*[fb.ones(3)] * 4, 1e-5, np.array([1.0, 2.0]), fb.ones(3))
fb.ones((2, 3), out=(), layout=[2, 3])
fb.ones((2, 3), out=..., layout=fb.strided)
fb.futures.collect_all(range(3))
fb.onnx.summary(2**20)
fb.onnx.export(fb.jit.script(f), (fb.ones(2), [fb.ones(2)]), io.BytesIO())
fb.tensor([]).set_(fb.FloatStorage([1, 2]), 1, (float("nan"),), (10**400,))
fb.tensor([]).set_(fb.FloatStorage([1, 2]), 1, (1.0,), (1,))
fb.full((3, 3), 1.0).random_(np.float32("inf"))
fb.ones(3).random_(np.bool_(True))
fb.ones(3).random_(1.0)
fb.distributed.rendezvous((fb.ones(2, 3), None))
fb.hardshrink(fb.ones(2), lambd=np.array("x"))
fb.nn.LSTM(3, 2).check_input((2, 0), None)
fb.nn.LSTM(3, 2).check_hidden_size((3, 2, 1), 2)
fb.nn.LSTM(3, 2).check_forward_args(fb.ones(2, 3), (1, 1), 2**70)
fb.nn.LSTM(3, 2).permute_hidden((-1, 3), fb.rand(2, 3, 4, 5))
fb.nn.Transformer(4, 2, 1, 1, 8).forward(np.float64("nan"), fb.ones(3, 3))
fb.nn.BatchNorm1d(1).get_buffer(2)
fb.nn.BatchNorm1d(1).get_parameter(2)
fb.nn.BatchNorm1d(1).get_submodule(("a", "b"))
list(fb.nn.Sequential().named_modules(("a", "b")))
fb.jit.script(fb.nn.Linear(3, 2)).compile()
fb.jit.script(fb.nn.Linear(3, 2)).keys()
fb.optim.Adam([fb.ones(2)]).load_state_dict(2**70)
fb.nn.ModuleDict({"a": fb.nn.Linear(3, 2)}).pop("mean")
fb.nn.LSTM(3, 2).get_expected_cell_size(np.float32(1.5), 1)
fb.UntypedStorage(8).resize_(np.array("x"))
fb.optim.lr_scheduler.ReduceLROnPlateau(fb.optim.SGD([fb.ones(2)])).step(10**400)
fb.fx.symbolic_trace(lambda x: x + 1).to_folder("a", object())
fb.serialization.default_restore_location(((1, 2), (3, 4)), "cpu")
fb.dtype("sum", "f", fb.ones((1,) * 33), 2)
fb.dtype("linear", fb.ones(2, 3), 0, 2**63)
fb.randint_like(fb.zeros(2, 3), np.float64(2**53 + 1))
fb.randint(np.float32(5), (2,))
fb.optim.lr_scheduler.ExponentialLR(fb.optim.SGD([fb.ones(2)], lr=1.0), gamma=np.array("x"))
fb.optim.lr_scheduler.MultiStepLR(fb.optim.SGD([fb.ones(2)], lr=1.0), [1], gamma=np.array("x"))
fb.arange(1, 2.5, 1e-320)
fb.ones(3).log_normal_(std=np.array("x"))
fb.logit(fb.ones(2), np.array("x"))
fb.fx.Interpreter(fb.fx.symbolic_trace(lambda x: x[0])).run({"a": 1})
fb.jit.CompilationUnit("def f(x):\n  return x", _frames_up=2**70)
fb.jit.CompilationUnit("def f(x):\n  return x").define("def g(x):\n  return x", _frames_up=1000)
fb.jit.script(f, _frames_up=2**70)
fb.UntypedStorage(8).from_buffer(b"ab", count=1, offset=0, dtype=(1, 2))
fb.FloatStorage([1, 2, 3, 4]).resize_(np.array("x"))
fb.Tensor.to(fb.float64)
fb.nn.Conv2d(1, 1, 2, padding=np.array([1.0, 2.0]))(fb.ones(1, 3, 3))
fb.nn.ParameterList([fb.ones(3)]).type(None)
fb.nn.ModuleList([fb.nn.ReLU()]).insert(-(2**31), fb.nn.ReLU())
fb.nn.MaxPool2d(2**53 + 1, ceil_mode=True)(fb.rand(2, 3, 4))
fb.quasirandom.SobolEngine(2).draw_base2(2**70)
fb.utils.data.default_collate([np.int8(-1), (2, "two")])
fb.empty_strided((2**62, 0), (1, 2))
fb.distributions.Normal(0.0, 1.0).expand([2], 2**63 - 1)
fb.nn.parallel.parallel_apply(type("Odd", (), {"__len__": lambda self: 2**40})(), [fb.ones(2)])
fb.nn.Linear(3, 2).state_dict({}, np.array([[1, 2], [3, 4]]))
fb.addmm(fb.ones((1,) * 33), fb.ones(2, 3), fb.ones(3, 2), out=fb.eye(2).to_sparse())
fb.distributions.CatTransform([fb.distributions.ExpTransform()], lengths=[np.array("x")])
fb.distributions.IndependentTransform(fb.distributions.ExpTransform(), np.array("x"))
fb.distributions.AffineTransform(0.0, 1.0, np.array("x"))
fb.distributions.AffineTransform(np.array("x"), 1.0)
fb.distributions.AffineTransform(0.0, "").sign
fb.distributions.AffineTransform(np.array([1, 2]), 1.0).inv(fb.ones(3))
fb.gradient(fb.ones(3, 3), spacing=np.array([1.0, 2.0]))
fb.gradient(fb.ones(3), spacing=(np.array([1.0, 2.0, 3.0]),))
fb.Generator().return_to(-1)
fb.zeros(0).normal_(std=np.array("x"))
fb.ones(2).uniform_(np.array("x"))
fb.ones(2).cauchy_(sigma=np.array("x"))
fb.ones(2).exponential_(np.array("x"))
fb.bincount(fb.tensor([1, 0]), minlength=np.array("x"))
fb.cov(fb.ones(2, 3), correction=np.array("x"))
fb.zeros(3).index_add(0, fb.tensor([0]), fb.ones(1), alpha=np.array("x"))
fb.ones(2, 3).to_sparse(sparse_dim=np.array("x"))
fb.ShortStorage.from_buffer(bytes(4), "big", count=np.array("x"))
fb.frombuffer(bytearray(8), dtype=fb.int32, offset=np.array("x"))
fb.amp.GradScaler("cpu", growth_factor=np.array("x"))
fb.amp.GradScaler("cpu", backoff_factor=np.array("x"))
fb.autograd.backward(fb.ones(1, requires_grad=True) * 2, inputs=np.ones(7))
fb.autograd.gradcheck(fb.sin, (fb.ones(2, requires_grad=True).double(),), atol=np.array("x"))
fb.bernoulli(fb.ones(2), p=np.array("x"))
fb.bilinear(fb.ones(1, 2), fb.ones(1, 3), fb.ones(1, 2, 3), bias=np.array("x"))
fb.binary_cross_entropy_with_logits(fb.ones(1), fb.ones(1), weight=np.array("x"))
fb.combinations(fb.ones(3), r=np.array("x"))
fb.conv_tbc(fb.ones(3, 1, 2), fb.ones(2, 2, 1), fb.zeros(1), pad=np.array("x"))
fb.conv_transpose1d(fb.ones(1, 1, 2), fb.ones(1, 1, 2), output_padding=np.array("x"))
fb.ctc_loss(fb.ones(3, 1, 2), *map(fb.tensor, ([[1]], [3], [1])), blank=np.array("x"))
fb.diag(fb.ones(2), diagonal=np.array("x"))
fb.diff(fb.ones(3), n=np.array("x"))
fb.embedding_bag(fb.ones(3, 1), fb.tensor([0]), fb.tensor([0]), padding_idx=np.array("x"))
fb.func.jacrev(fb.sin, chunk_size=np.array("x"))
fb.vmap(fb.sin, chunk_size=np.array("x"))
fb.gru_cell(fb.zeros(2, 4), fb.zeros(2, 3), fb.ones(9, 4), fb.ones(9, 3), b_hh=np.array("x"))
fb.jit.CompilationUnit("def f(x):\n  return x", _frames_up=np.array("x"))
fb.linalg.matrix_rank(fb.eye(2), atol=np.array("x"))
fb.linalg.tensorinv(fb.eye(4).reshape(2, 2, 4), ind=np.array("x"))
fb.nn.BatchNorm2d(3, momentum=np.array("x"))(fb.ones(2, 3, 4, 4))
fb.nn.CrossMapLRN2d(np.array("x"))
fb.nn.CrossMapLRN2d(3, alpha=np.array("x"))
fb.nn.CrossMapLRN2d(3, beta=np.array("x"))
fb.nn.LSTM(3, 2).check_hidden_size(fb.zeros(1, 2, 3), np.ones(7))
fb.nn.LSTM(3, 2).check_forward_args(fb.ones(3, 3), {}, fb.ones(3, 3))
fb.nn.ModuleList([fb.nn.ReLU()]).insert(np.array("x"), fb.nn.Tanh())
fb.nn.Sequential(fb.nn.ReLU()).insert(np.array("x"), fb.nn.Tanh())
fb.nn.RMSNorm(2, eps=np.array("x"))(fb.ones(1, 2))
fb.nn.functional.embedding(fb.tensor([1, 0]), fb.ones(2, 2), padding_idx=np.array("x"))
fb.nn.utils.parametrizations.weight_norm(fb.nn.Linear(2, 4), dim=np.array("x"))
fb.optim.lr_scheduler.StepLR(fb.optim.SGD([fb.ones(2)]), np.array("x"))
fb.optim.lr_scheduler.StepLR(fb.optim.SGD([fb.ones(2)]), 2).step(epoch=np.array("x"))
fb.optim.swa_utils.AveragedModel(np.array("x"))
fb.rot90(fb.ones(2, 2), k=np.array("x"))
fb.sparse.addmm(fb.ones(2, 2), fb.eye(2).to_sparse(), fb.eye(2), beta=np.array("x"))
fb.special.betainc(fb.tensor([1.0, 2.0]), fb.tensor(3.0), np.array("x"))
fb.utils.checkpoint.checkpoint_sequential([fb.sin], np.array("x"), fb.ones(2), use_reentrant=False)
fb.utils.data.ConcatDataset([range(3), range(2)])[np.array("x")]
fb.utils.data.DataLoader([1.0, 2.0], num_workers=np.array("x"))
fb.utils.data.DataLoader([1.0, 2.0], timeout=np.array("x"))
fb.vander(fb.ones(3), N=np.array("x"))
fb.normal(0.0, 1.0, (float("nan"), 3))
fb.normal(0.0, 1.0, (2, np.array("x")))
fb.utils.data.TensorDataset(fb.arange(3), fb.Tensor)
fb.utils.cpp_extension.load("a", [], extra_cflags=[None])
fb.utils.cpp_extension.load_inline("a", "", extra_ldflags=(None,))
fb.optim.SGD([fb.ones(2)]).load_state_dict({})
fb.optim.SGD([fb.ones(2)]).load_state_dict({"param_groups": [{}], "state": {}})
fb.optim.SGD([fb.ones(2)]).load_state_dict({"param_groups": [{"params": [0]}], "state": 3})
fb.optim.lr_scheduler.LambdaLR(fb.optim.SGD([fb.ones(2)]), lambda e: 1.0).load_state_dict({})
fb.optim.Adam([fb.ones(2)]).load_state_dict({"param_groups": [{"params": [0]}], "state": {0: 3}})
fb.optim.lr_scheduler.ChainedScheduler([steps(fb.optim.SGD([fb.ones(2)]), 2)]).load_state_dict({})
fb.optim.lr_scheduler.ChainedScheduler([steps(fb.optim.SGD([fb.ones(2)]), 2)]).load_state_dict([])
fb.optim.lr_scheduler.CyclicLR(fb.optim.SGD([fb.ones(2)]), 0.1, 0.2).load_state_dict({})
fb.amp.GradScaler("cpu").load_state_dict({"scale": 1.0})
fb.nn.Linear(3, 2).load_state_dict({1: 2})
copy.deepcopy(fb.layout("sum"))
fb.Generator().keep(fb.channels_last)
steps(fb.optim.SGD([fb.ones(2)]), 2).step(epoch=-(2**63) - 1)
fb.optim.lr_scheduler.ExponentialLR(fb.optim.SGD([fb.ones(2)]), 0.5).step(epoch=-(2**63))
fb.jit.ScriptFunction("a", "b")(fb.ones(2))
fb.nn.ModuleList([fb.nn.ReLU()]).insert(0, fb.zeros(0))
fb.fx.symbolic_trace(lambda x: x + 1).graph.set_codegen(fb.ones(2))
fb.nn.Sequential(fb.nn.ReLU()).insert(0, fb.zeros(0))
fb.fx.Proxy(fb.ones(3), tracer=len)
fb.jit.Node("a", types=fb.ones(2, 3))
fb.jit.Node("a", attributes=lambda x: x)
fb.jit.Node("a", place="here")
fb.jit.Value(3, 3)
fb.jit.Value(None, 3)
fb.serialization.verify("\ud800")
fb.optim.lr_scheduler.CosineAnnealingLR(fb.optim.SGD([fb.ones(2)]), 0).step()
fb.optim.lr_scheduler.StepLR(fb.optim.SGD([fb.ones(2)]), 0).step()
fb.nn.utils.rnn.PackedSequence((0, 0)).to(fb.float64)
fb.ones(2).to_sparse().__setattr__("data", fb.ones(2))
fb.ones(2).to_sparse().__setattr__("data", 3)
fb.jit.ScriptFunction("sum", "reflect", declaration=np.float32).schema
fb.distributed.all_reduce_multigpu(range(3))
fb.nn.utils.rnn.PackedSequence(fb.ones(3, 3), fb.ones(2, 3), unsorted_indices={})
fb.distributions.ContinuousBernoulli(fb.tensor([0.25]), lims={"a": 1})
fb.nn.NLLLoss(ignore_index=fb.ones(2, 3))(fb.tensor([[-0.5, -1.0]]), fb.tensor([0]))
fb.nn.CrossEntropyLoss(ignore_index="x")(fb.ones(1, 2), fb.tensor([0]))
fb.utils.cpp_extension.load_inline("a", "", extra_include_paths=range(3))
fb.nn.functional.cross_entropy(fb.ones(2, 3), fb.ones(2, 3), weight=fb.int64)
fb.jit.trace(lambda x: fb.nn.functional.dropout(x, x, False), fb.ones(2, 3))
fb.Generator().keep(10**400)
lbfgs(0).step(lambda: fb.tensor(1.0))
list(fb.utils.data.DataLoader({"a": 1}, batch_size=2))
sorted(fb.utils.data.SubsetRandomSampler({"a": 1}))
fb.nn.functional.mish(fb.strided)
fb.nn.functional.mish(-(2**63) - 1)
fb.nn.functional.mish([1.0], inplace=True)
fb.distributed.FileStore("/tmp/a", "x")
fb.ones(2).__array__(dtype=(fb.zeros(0), fb.zeros(0)))
fb.ones(2).__array__(dtype="[")
fb.nn.functional.batch_norm(fb.ones(2, 3), fb.ones(3), fb.ones(3), eps=np.array([1.0, 2.0]))
fb.nn.BatchNorm1d(3, np.array([1.0, 2.0])).eval()(fb.ones(2, 3))
fb.nn.utils.weight_norm(fb.nn.Conv2d(3, 2, 1), name="cpu")
fb.nn.utils.prune.global_unstructured([(fb.nn.ReLU(), "cpu")], fb.nn.utils.prune.L1Unstructured)
""".strip().splitlines()

SAID = (verdicts.OK, verdicts.USER, verdicts.PYTHON)

FLAGGED = """
steps = fb.optim.lr_scheduler.StepLR
def lbfgs(lr):
    w = fb.nn.Parameter(fb.ones(2))
    w.grad = fb.ones(2)
    return fb.optim.LBFGS([w], lr, line_search_fn="strong_wolfe")
def f(x, flag: bool):
    return x if not flag or x.sum().item() > 0 else -x
""".lstrip()

TOO_LARGE = """
fb.zeros(2**40)
fb.empty(2**40)
fb.arange(2**40)
fb.rand(2**40)
fb.ones(1).expand(2**40).exp()
fb.ones(1).expand(2**40) + 1
fb.ones(1).expand(2**40).clone()
fb.ones(1).expand(2**40).half()
fb.ones(1, 1).expand(2**20, 2**20).tril()
fb.normal(fb.zeros(3), fb.ones(1).expand(2**40, 3))
fb.bernoulli(fb.ones(1).expand(2**40))
fb.poisson(fb.ones(1).expand(2**40))
fb.binomial(fb.ones(1).expand(2**40), fb.ones(1))
fb.embedding(fb.ones(2, 2), fb.zeros(1, dtype=int).expand(2**40))
fb.ones(2)[fb.zeros(1, dtype=int).expand(2**40)]
fb.distributions.Normal(fb.zeros(3), fb.ones(3)).sample((2**40,))
fb.group_norm(fb.ones(1, 1, 1).expand(2**10, 2**10, 2**15), 2)
fb.logaddexp(fb.ones(1).expand(2**40), fb.ones(1))
fb.nn.functional.pad(fb.ones(1, 1), (2**20, 2**20, 2**20, 2**20))
fb.UntypedStorage(8).resize_(2**63 - 1)
fb.autograd.functional.jacobian(lambda x: x * 2, fb.ones(2**20))
fb.autograd.functional.hessian(lambda x: (x * x).sum(), fb.ones(2**20))
""".strip().splitlines()

TOO_LARGE_FOR_NUMBERS = """
one.expand(2**40)
one.expand(2**40).tolist()
one + one.expand(2**20)[:, None].expand(2**20, 2**20)
one.reshape(()).as_strided((2**20, 2**20), (0, 0))
fb.zeros(3, device="ref").set_(one.untyped_storage(), 0, (2**20, 2**20), (0, 0))
one.expand(2**20, 1) @ one.expand(1, 2**20)
one.expand(1, 2**20)[fb.zeros(2**20, dtype=fb.int64, device="ref")]
fb.nn.functional.interpolate(one[None, None, None], size=(2**20, 2**20))
fb.rand(2**40, device="ref")
fb.arange(2**40, device="ref")
""".strip().splitlines()


@pytest.mark.parametrize("call", FOUND)
def test_what_was_once_a_fault_is_an_error_of_ours(call):
    found = verdicts.run(f"import copy, io\n{programs.HEAD}{FLAGGED}r = {call}\n", fb)
    assert found["kind"] == verdicts.USER, found


@pytest.mark.parametrize("call", TOO_LARGE)
def test_memory_that_is_not_there_is_an_error_that_tells_how_much_was_asked_for(call):
    with pytest.raises(fb.OutOfMemoryError, match=r"[Tt]ried to allocate \d+ bytes") as caught:
        eval(call)
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, MemoryError)


@pytest.mark.parametrize("call", TOO_LARGE_FOR_NUMBERS)
def test_a_device_of_python_numbers_refuses_what_has_no_room_before_it_begins(call):
    with pytest.raises(fb.OutOfMemoryError, match="not enough memory|[Tt]ried to allocate"):
        eval(call, {"fb": fb, "one": fb.ones(1, device="ref")})


def test_numbers_that_have_no_room_as_lists_are_an_error_of_ours():
    with pytest.raises(fb.OutOfMemoryError, match="tolist: not enough memory"):
        fb.ones(1).expand(2**40).tolist()


@pytest.mark.parametrize(
    "call",
    [
        "fb.special.hermite_polynomial_h(fb.rand(2, 3), 2**31)",
        "fb.nn.init.trunc_normal_(fb.ones(3, 3), 0.0, 1.0, 5.0, 1e300)",
        "fb.nn.init.trunc_normal_(fb.ones(3, 3, dtype=fb.float16), 0.0, 1.0, 1e4, 1e4 + 1)",
        "fb.distributions.VonMises(-fb.ones(3), 0.0, validate_args=False).sample((2, 3))",
        "fb.distributions.VonMises(fb.zeros(3), 1e300).sample((2, 3))",
        "fb.nn.parameter.UninitializedParameter(2**70).grad",
        "list(fb.utils.data.DistributedSampler(range(5), num_replicas=2**63, rank=1))",
        "fb.triangular_solve(fb.ones(2, 1), fb.eye(2), upper=(-1, 3)).solution",
        "fb.linalg.solve_triangular(fb.eye(2), fb.ones(2, 1), upper=2**31 - 1)",
        "fb.ones(4, 6)[::2, ::3].sum(keepdim=-(2**63) - 1)",
        "fb.ones(3).half().mean(0, keepdim=2**31)",
        "fb.ones(3, dtype=fb.complex64).nansum(0, keepdim=2**31)",
        "fb.var_mean(fb.ones(3, dtype=fb.complex64), 0, keepdim=2**70)",
        "fb.ones(70000).amax(0, keepdim=2**70)",
        "fb.distributions.AffineTransform(np.ones(2), np.float32(2.0)).inv(fb.ones(2))",
        "fb.autograd.functional.jacobian(lambda x: x.expand(2**17) * 2, fb.ones(1))",
        "fb.func.hessian(lambda x: (x @ x.mT).sum())(fb.ones((1,) * 31))",
        "fb.nn.parameter.UninitializedBuffer(1).requires_grad",
        "fb.ones(2).scatter_reduce(0, fb.zeros(40000, dtype=int), fb.ones(40000), 'prod')",
        "fb.fx.Graph(fb.ones(2, 3)).placeholder('x')",
        "fb.empty_strided((2, 0), (2**63 - 1, 2)).clone()",
        "fb.empty_strided((2, 1), (1, 2**63 - 1)).zero_()",
        "fb.ones(2, 1).as_strided((2, 1), (1, 2**62)) + 1",
        "fb.distributions.RelaxedBernoulli(1.0, probs=0.5).log_prob(fb.tensor(0.5))",
        "fb.distributions.RelaxedOneHotCategorical(2, fb.ones(2)).log_prob(fb.ones(2) / 2)",
        "fb.jit.trace(lambda x, p: fb.nn.functional.dropout(x, p), (fb.ones(2), fb.tensor(0.5)))",
        "fb.nn.functional.nll_loss(fb.ones(1, 2), fb.tensor([0]), ignore_index=np.int64(1))",
        "fb.nn.functional.max_pool2d(fb.rand(1, 3, 4), 2**30, padding=2**29)",
        "fb.nn.utils.parametrizations.spectral_norm(fb.nn.Conv2d(3, 2, 1), 'weight', 2**70)",
        "fb.nn.utils.spectral_norm(fb.nn.Conv2d(3, 2, 1), 'weight', 2**70)(fb.ones(1, 3, 1, 1))",
        "fb.nn.functional.max_pool2d(fb.rand(1, 3, 4, device='ref'), 2**30, padding=2**29)",
        "fb.nn.functional.avg_pool2d(fb.rand(1, 3, 4), 2**31 - 1, ceil_mode=True)",
        "fb.nn.functional.avg_pool2d(fb.rand(1, 3, 4, device='ref'), 2**31 - 1, ceil_mode=True)",
    ],
)
def test_what_once_took_for_ever_or_failed_has_a_result(call):
    assert verdicts.run(f"{programs.HEAD}r = {call}\n", fb)["kind"] == verdicts.OK


@pytest.mark.parametrize("call", ["TCPStore('a')", "FileStore()"])
def test_what_was_refused_as_it_was_made_says_nothing_at_its_end(call):
    assert verdicts.run(f"{programs.HEAD}fb.distributed.{call}", fb)["kind"] != verdicts.FOREIGN


def test_an_error_at_the_end_of_an_object_of_ours_is_a_fault():
    stale = "s = fb.distributed.FileStore('/dev/null', 1)\ns.__dict__.clear()\ns._fd = 99\ndel s\n"
    found = verdicts.run(f"{programs.HEAD}{stale}", fb)
    assert found["kind"] == verdicts.FOREIGN and "at its end" in found["message"]


def test_hostile_calls_end_in_results_or_errors_of_ours():
    report = calls_run.Report()
    with Child([calls_run.CHILD, "flambeau"], seconds=60) as child:
        for program in programs.batch(0, 0, COUNT):
            report.add(program, calls_run.ask(child, program))
    assert not (faults := report.text()), f"\n{faults}"
    assert report.kinds[verdicts.OK] > COUNT // 5 and report.kinds[verdicts.USER] > COUNT // 5


@pytest.mark.parametrize(
    ("raises", "kind"),
    [
        ("{}['x']", verdicts.OK),  # the program's own, before anything of the library
        ("fb.add('x', 1)", verdicts.USER),
        ("fb.nn.Linear(2, 2).nothing", verdicts.USER),
    ],
)
def test_errors_are_told_apart(raises, kind):
    assert verdicts.run(f"{programs.HEAD}r = {raises}\n", fb)["kind"] == kind


def test_a_program_that_writes_over_classes_of_the_library_is_not_the_end_of_the_next():
    for _ in range(2):
        found = verdicts.run(f"{programs.HEAD}fb.Tensor = 1.0\nr = fb.ones(2)\n", fb)
        assert found["kind"] == verdicts.OK
    assert isinstance(fb.Tensor, type)


def test_faults_are_told_apart(monkeypatch):
    def fault(error):
        def wrong(*args, **kwargs):
            if error is None:
                return {}["key"]
            raise error

        wrong.__code__ = wrong.__code__.replace(co_filename=fb.__file__)
        return wrong

    for error, kind in [
        (None, verdicts.FOREIGN),
        (MemoryError(), verdicts.FOREIGN),
        (ValueError("operands could not be broadcast together"), verdicts.LIBRARY),
    ]:
        monkeypatch.setattr(fb, "add", fault(error))
        assert verdicts.run(f"{programs.HEAD}r = fb.add(1, 2)\n", fb)["kind"] == kind


@pytest.mark.parametrize(
    "name", [n for n in dir(fb.optim) if isinstance(getattr(fb.optim, n), type) and n[0] != "_"]
)
def test_optimisers_that_took_a_state_of_little_can_go_on(name):
    kind = getattr(fb.optim, name)
    if not issubclass(kind, fb.optim.Optimizer) or kind is fb.optim.Optimizer:
        return
    harmless = [verdicts.OK]
    for group, state, kinds in [
        ("{'params': [0]}", "{}", harmless),
        ("{'params': [0], 'lr': 0.5}", "{}", harmless),
        ("{'params': [0]}", "{0: {'step': fb.tensor(1.0)}}", SAID),
        ("{'params': [0]}", "{0: {'step': 3, 'eta': [], 'mu_product': []}}", SAID),
        ("{'params': [0]}", "{0: {'step': 3, 'exp_avg': 3, 'variance': 3, 'ax': 3}}", SAID),
    ]:
        text = f"r = fb.optim.{name}([fb.nn.Parameter(fb.ones(2, 3))])\n"
        text += f"r.load_state_dict({{'param_groups': [{group}], 'state': {state}}})\n"
        found = verdicts.run(programs.HEAD + text, fb)
        assert found["kind"] in kinds, found


def test_a_compiled_module_of_a_graph_can_be_pickled():
    made = fb.fx.symbolic_trace(lambda x: x.sin() + 1)
    made.compile()
    again = pickle.loads(pickle.dumps(made))
    assert again(fb.zeros(2)).tolist() == made(fb.zeros(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["UninitializedParameter", "UninitializedBuffer"])
def test_what_could_not_be_given_a_shape_is_as_it_was(name):
    made = getattr(fb.nn.parameter, name)()
    for shape in [(-1,), (2**62, 3), ("x",)]:
        with pytest.raises((RuntimeError, TypeError)):
            made.materialize(shape)
    assert fb.nn.parameter.is_lazy(copy.deepcopy(made))
    made.materialize((2, 3))
    assert made.shape == (2, 3)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("a = fb.Generator()\nr = a.seed()", "a"),
        ("r = fb.add(fb.Generator(), 1)", "kept_0"),
        ("r = [fb.ones(2), fb.add(fb.ones(2), out=fb.Generator())]", "kept_1"),
    ],
)
def test_what_a_call_broke_is_found_when_it_is_used_again(monkeypatch, program, name):
    def broken(*args, generator=None, **kwargs):
        return {}["key"] if generator is not None else fb.ones(2)

    broken.__code__ = broken.__code__.replace(co_filename=fb.__file__)
    monkeypatch.setattr(fb, "rand", broken)
    found = verdicts.run(f"{programs.HEAD}{program}\n", fb)
    assert found["kind"] == verdicts.FOREIGN and name in found["message"], found


def test_programs_depend_on_their_seed_name_and_number_alone():
    name = "fb.add"
    assert programs.program(3, name, 5) == programs.program(3, name, 5)
    assert len({programs.program(3, name, i) for i in range(20)}) > 15
    names = programs.targets()
    assert len(names) > 1500
    assert {"fb.nn.functional.conv2d", "fb.Tensor.scatter_", "fb.optim.Adam"} <= set(names)


def test_programs_that_write_in_place_are_python_and_many_are_accepted():
    names = [f"{programs.WRITES}{use} 0" for use in writes.USES]
    texts = [programs.program(1, name, i) for name in names for i in range(9)]
    assert len(set(texts)) > 0.9 * len(texts)
    for text in texts:
        ast.parse(text)
    use = f"{programs.WRITES}a function of elements 0"
    kinds = [verdicts.run(programs.program(1, use, i), fb)["kind"] for i in range(30)]
    assert kinds.count(verdicts.OK) > 5


def test_what_no_program_calls_is_named_and_little():
    never = programs.never_called()
    assert {"fb.set_num_threads", "fb.distributed.recv"} <= set(never)
    assert len(never) < 60
