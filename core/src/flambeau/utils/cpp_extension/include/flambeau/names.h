// The operations by name.  Each takes what the function of its name in Python takes, in that order.
#pragma once

// Methods and functions that give a tensor.
#define FLAMBEAU_BOTH(_)                                                                        \
  _(abs) _(absolute) _(acos) _(acosh) _(adjoint) _(all) _(amax) _(amin) _(angle) _(any)         \
  _(arccos) _(arccosh) _(arcsin) _(arcsinh) _(arctan) _(arctan2) _(arctanh) _(argmax) _(argmin) \
  _(argwhere) _(as_strided) _(asin) _(asinh) _(atan) _(atan2) _(atanh) _(bernoulli) _(bincount) \
  _(bitwise_and) _(bitwise_left_shift) _(bitwise_not) _(bitwise_or) _(bitwise_right_shift)      \
  _(bitwise_xor) _(bmm) _(broadcast_to) _(ceil) _(cholesky) _(cholesky_inverse)                 \
  _(cholesky_solve) _(clamp) _(clamp_max) _(clamp_min) _(clip) _(clone) _(conj)                 \
  _(conj_physical) _(copysign) _(corrcoef) _(cos) _(cosh) _(count_nonzero) _(cross) _(cumprod)  \
  _(cumsum) _(deg2rad) _(det) _(detach) _(diag) _(diag_embed) _(diagflat) _(diagonal)           \
  _(diagonal_scatter) _(diff) _(digamma) _(dist) _(dot) _(eq) _(erf) _(erfc) _(erfinv) _(exp)   \
  _(exp2) _(expm1) _(fix) _(flatten) _(flip) _(fliplr) _(flipud) _(float_power) _(floor)        \
  _(floor_divide) _(fmax) _(fmin) _(fmod) _(frac) _(gcd) _(ge) _(ger) _(greater)                \
  _(greater_equal) _(gt) _(hardshrink) _(heaviside) _(histc) _(hypot) _(i0) _(igamma)           \
  _(igammac) _(imag) _(index_copy) _(index_fill) _(index_select) _(inner) _(inverse) _(isclose) \
  _(isfinite) _(isinf) _(isnan) _(isneginf) _(isposinf) _(isreal) _(istft) _(kron) _(lcm)       \
  _(ldexp) _(le) _(lerp) _(less) _(less_equal) _(lgamma) _(log) _(log10) _(log1p) _(log2)       \
  _(log_softmax) _(logaddexp) _(logaddexp2) _(logcumsumexp) _(logdet) _(logical_and)            \
  _(logical_not) _(logical_or) _(logical_xor) _(logit) _(logsumexp) _(lt) _(lu_solve)           \
  _(masked_fill) _(masked_scatter) _(masked_select) _(matmul) _(matrix_exp) _(matrix_power)     \
  _(maximum) _(mean) _(minimum) _(mm) _(moveaxis) _(movedim) _(msort) _(mul) _(multinomial)     \
  _(multiply) _(mv) _(mvlgamma) _(nan_to_num) _(nanmean) _(nansum) _(narrow) _(ne) _(neg)       \
  _(negative) _(nextafter) _(nonzero) _(norm) _(not_equal) _(orgqr) _(ormqr) _(outer)           \
  _(permute) _(pinverse) _(positive) _(pow) _(prelu) _(prod) _(put) _(rad2deg) _(ravel) _(real) \
  _(reciprocal) _(relu) _(remainder) _(renorm) _(reshape) _(resolve_conj) _(resolve_neg)        \
  _(roll) _(rot90) _(rsqrt) _(scatter_add) _(select) _(select_scatter) _(sgn) _(sigmoid)        \
  _(sign) _(signbit) _(sin) _(sinc) _(sinh) _(slice_scatter) _(smm) _(softmax) _(sqrt)          \
  _(square) _(squeeze) _(stft) _(sum) _(swapaxes) _(swapdims) _(t) _(take) _(take_along_dim)    \
  _(tan) _(tanh) _(tile) _(trace) _(transpose) _(tril) _(triu) _(true_divide) _(trunc)          \
  _(unflatten) _(unsqueeze) _(vdot) _(view_as_complex) _(view_as_real) _(xlogy)                

// Methods and functions that change the tensor.
#define FLAMBEAU_WRITES(_)                                                                      \
  _(abs_) _(absolute_) _(acos_) _(acosh_) _(arctan_) _(as_strided_) _(asin_) _(asinh_)          \
  _(atan2_) _(atan_) _(atanh_) _(bernoulli_) _(bitwise_and_) _(bitwise_not_) _(bitwise_or_)     \
  _(bitwise_xor_) _(cauchy_) _(ceil_) _(clamp_) _(clamp_max_) _(clamp_min_) _(clip_)            \
  _(copysign_) _(cos_) _(cosh_) _(cumprod_) _(cumsum_) _(deg2rad_) _(detach_) _(digamma_)       \
  _(eq_) _(erf_) _(erfc_) _(erfinv_) _(exp2_) _(exp_) _(expm1_) _(exponential_) _(fill_)        \
  _(fill_diagonal_) _(fix_) _(float_power_) _(floor_) _(floor_divide_) _(fmod_) _(frac_) _(ge_) \
  _(geometric_) _(gt_) _(hypot_) _(i0_) _(index_copy_) _(index_fill_) _(le_) _(lerp_)           \
  _(lgamma_) _(log10_) _(log1p_) _(log2_) _(log_) _(log_normal_) _(logical_and_)                \
  _(logical_not_) _(logical_or_) _(logical_xor_) _(logit_) _(lt_) _(masked_fill_)               \
  _(masked_scatter_) _(mul_) _(multiply_) _(nan_to_num_) _(ne_) _(neg_) _(negative_) _(normal_) \
  _(pow_) _(put_) _(rad2deg_) _(random_) _(reciprocal_) _(relu_) _(remainder_) _(renorm_)       \
  _(rsqrt_) _(scatter_add_) _(sgn_) _(sigmoid_) _(sign_) _(sin_) _(sinc_) _(sinh_) _(sqrt_)     \
  _(square_) _(squeeze_) _(swapaxes_) _(t_) _(tan_) _(tanh_) _(transpose_) _(tril_) _(triu_)    \
  _(true_divide_) _(trunc_) _(uniform_) _(unsqueeze_) _(xlogy_) _(zero_)                       

#define FLAMBEAU_METHODS(_)                                                                   \
  _(__and__) _(__lshift__) _(__or__) _(__rshift__) _(__xor__) _(coalesce) _(contiguous)       \
  _(cpu) _(cuda) _(expand) _(expand_as) _(indices) _(mH) _(mT) _(new_empty) _(new_full)       \
  _(new_ones) _(new_zeros) _(pin_memory) _(repeat) _(reshape_as) _(sum_to_size) _(to_dense)   \
  _(to_sparse) _(type_as) _(unfold) _(values) _(view) _(view_as)

#define FLAMBEAU_METHOD_WRITES(_)                                                             \
  _(__iand__) _(__ilshift__) _(__ior__) _(__irshift__) _(__ixor__) _(copy_) _(requires_grad_) \
  _(resize_) _(resize_as_) _(set_)

#define FLAMBEAU_FUNCTIONS(_)                                                                   \
  _(adaptive_avg_pool1d) _(adaptive_avg_pool2d) _(adaptive_avg_pool3d) _(adaptive_max_pool2d)   \
  _(alpha_dropout) _(avg_pool1d) _(avg_pool2d) _(avg_pool3d) _(batch_norm) _(bilinear)          \
  _(binary_cross_entropy) _(binary_cross_entropy_with_logits) _(binomial) _(cdist) _(celu)      \
  _(channel_shuffle) _(col2im) _(combinations) _(complex) _(constant_pad_nd) _(conv1d)          \
  _(conv2d) _(conv3d) _(conv_transpose1d) _(conv_transpose2d) _(conv_transpose3d)               \
  _(convolution) _(cosine_embedding_loss) _(cosine_similarity) _(ctc_loss) _(dropout) _(elu)    \
  _(embedding) _(empty_like) _(feature_dropout) _(frobenius_norm) _(full_like) _(gelu) _(glu)   \
  _(grid_sampler) _(grid_sampler_2d) _(grid_sampler_3d) _(group_norm) _(hardsigmoid)            \
  _(hardswish) _(hardtanh) _(hinge_embedding_loss) _(im2col) _(instance_norm) _(layer_norm)     \
  _(leaky_relu) _(linear) _(log_sigmoid) _(max_pool1d) _(max_pool2d) _(max_pool3d) _(mse_loss)  \
  _(nll_loss) _(nuclear_norm) _(one_hot) _(ones_like) _(pairwise_distance) _(pdist)             \
  _(pixel_shuffle) _(pixel_unshuffle) _(poisson) _(polar) _(rand_like) _(randint_like)          \
  _(randn_like) _(rms_norm) _(rrelu) _(selu) _(silu) _(smooth_l1_loss) _(softplus)              \
  _(softshrink) _(tensordot) _(threshold) _(trapz) _(triplet_margin_loss)                       \
  _(upsample_bilinear2d) _(upsample_nearest2d) _(vander) _(zeros_like)

#define FLAMBEAU_FUNCTION_WRITES(_)                                                         \
  _(celu_) _(dropout_) _(elu_) _(hardtanh_) _(leaky_relu_) _(rrelu_) _(selu_) _(threshold_)

// How many arguments follow the tensor by position, and the names of those that Python takes by name only.
#define FLAMBEAU_NAMED(_)                  \
  _(add, 1, "alpha")                       \
  _(addbmm, 2, "beta", "alpha")            \
  _(addcdiv, 2, "value")                   \
  _(addcmul, 2, "value")                   \
  _(addmm, 2, "beta", "alpha")             \
  _(addmv, 2, "beta", "alpha")             \
  _(addr, 2, "beta", "alpha")              \
  _(argsort, 2, "stable")                  \
  _(baddbmm, 2, "beta", "alpha")           \
  _(bucketize, 1, "out_int32", "right")    \
  _(div, 1, "rounding_mode")               \
  _(divide, 1, "rounding_mode")            \
  _(gather, 2, "sparse_grad")              \
  _(index_add, 3, "alpha")                 \
  _(isin, 1, "assume_unique", "invert")    \
  _(quantile, 3, "interpolation")          \
  _(repeat_interleave, 2, "output_size")   \
  _(round, 0, "decimals")                  \
  _(rsub, 1, "alpha")                      \
  _(scatter, 3, "reduce")                  \
  _(scatter_reduce, 4, "include_self")     \
  _(searchsorted, 1, "out_int32", "right") \
  _(sub, 1, "alpha")                       \
  _(subtract, 1, "alpha")                 

#define FLAMBEAU_NAMED_WRITES(_)        \
  _(add_, 1, "alpha")                   \
  _(addbmm_, 2, "beta", "alpha")        \
  _(addcdiv_, 2, "value")               \
  _(addcmul_, 2, "value")               \
  _(addmm_, 2, "beta", "alpha")         \
  _(addmv_, 2, "beta", "alpha")         \
  _(addr_, 2, "beta", "alpha")          \
  _(baddbmm_, 2, "beta", "alpha")       \
  _(div_, 1, "rounding_mode")           \
  _(divide_, 1, "rounding_mode")        \
  _(index_add_, 3, "alpha")             \
  _(round_, 0, "decimals")              \
  _(scatter_, 3, "reduce")              \
  _(scatter_reduce_, 4, "include_self") \
  _(sub_, 1, "alpha")                   \
  _(subtract_, 1, "alpha")             

// Methods and functions that give two or three tensors, or a list.
#define FLAMBEAU_PAIRS(_)                                                                       \
  _(aminmax) _(cummax) _(cummin) _(eig) _(frexp) _(geqrf) _(kthvalue) _(lstsq) _(mode) _(qr)    \
  _(slogdet) _(solve) _(sort) _(std_mean) _(symeig) _(topk) _(triangular_solve) _(var_mean)

#define FLAMBEAU_TRIPLES(_) \
  _(svd)

#define FLAMBEAU_LISTS(_)                                                                       \
  _(chunk) _(dsplit) _(hsplit) _(split) _(split_with_sizes) _(tensor_split) _(unbind) _(vsplit)
