"""Settings of the making of code: they can be set and read, and have no effect."""

from __future__ import annotations

from types import SimpleNamespace

from flambeau.compat._torch._dynamo.config import patched

triton = SimpleNamespace(cudagraphs=False, unique_kernel_names=True, max_tiles=2)
cpp = SimpleNamespace(threads=-1, simdlen=None)
cuda = SimpleNamespace()
trace = SimpleNamespace(enabled=False)
debug = False
freezing = False
max_autotune = max_autotune_gemm = max_autotune_pointwise = False
coordinate_descent_tuning = coordinate_descent_check_all_directions = False
force_fuse_int_mm_with_mul = use_mixed_mm = False
epilogue_fusion = True
fx_graph_cache = True
fallback_random = False
deterministic = emulate_precision_casts = False
cpp_wrapper = False
graph_partition = True
compile_threads = 1
pre_grad_fusion_options: dict[str, object] = {}
post_grad_fusion_options: dict[str, object] = {}
pre_grad_custom_pass = post_grad_custom_pre_pass = post_grad_custom_post_pass = None

patch = patched(globals())
