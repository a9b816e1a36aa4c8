"""Whose kernels compute an operator: patterns of kinds that ATen's compute in other modes too."""

from __future__ import annotations

CONVOLUTIONS = tuple(
    f"aten.{name}"
    for name in """conv1d conv2d conv3d conv1d.* conv2d.* conv3d.* conv_transpose*
    convolution _convolution""".split()
)
# Matrix products, convolutions and what is built of them: every mode calls the same ones.
_PRODUCTS = CONVOLUTIONS + tuple(
    f"aten.{name}"
    for name in """linear matmul mm bmm addmm addmv addbmm baddbmm mv dot einsum bilinear
    scaled_dot_product_attention _scaled_dot_product* multi_head_attention_forward lstm.* gru.*
    rnn_tanh.* rnn_relu.* embedding_bag _embedding_bag* sort* topk cumsum cumprod
    _fft_* fft_* linalg_* nonzero* unique* rand* normal* dropout bernoulli*""".split()
)
# What core ATen keeps whole, so that decompositions end in it.
_KEPT_WHOLE = tuple(
    f"aten.{name}"
    for name in """_cdist_* cdist _local_scalar_dense _log_softmax log_softmax* _native_batch_norm*
    batch_norm instance_norm _pdist_* _softmax softmax* _to_copy alias constant_pad_nd pad
    convolution_backward diagonal elu grid_sampler* hardtanh* masked_scatter native_dropout
    native_group_norm group_norm native_layer_norm layer_norm scalar_tensor
    _adaptive_avg_pool* adaptive_avg_pool* avg_pool* max_pool* *_pool2d_with_indices
    abs acos acosh add.* amax amin any* arange* argmax argmin as_strided asin asinh atan* bitwise_*
    cat ceil clamp* clone contiguous copy cos cosh cumsum div.* embedding empty* eq.* erf exp expand
    expm1 fill* flip floor fmod* full* gather ge.* gelu gt.* index.Tensor index_put index_select
    isinf isnan le.* leaky_relu log log10 log1p log2 logical_* lt.* max.* maximum mean* min.*
    minimum mul.* ne.* neg permute pow* prod* reciprocal relu relu_ remainder* repeat round rsqrt
    scatter* select* sigmoid sign sin sinh slice* split* sqrt squeeze* sub.* sum* sym_* tan tanh
    to.* to transpose* trunc unsqueeze upsample_* var* view where*""".split()
)
BORROWED_BY_INDUCTOR = _PRODUCTS
BORROWED_BY_DECOMPOSITIONS = (*_PRODUCTS, *_KEPT_WHOLE)
