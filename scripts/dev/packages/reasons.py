"""Why each red check is red, found by reading the package's code."""

REASONS = {
    ("performer-pytorch", "causality"): (
        "The features of keys subtract their largest logit over all positions, later ones too, before 1e-4 is added: one large "
        "key of the future pushes all earlier ones under that constant."
    ),
    ("performer-pytorch", "convexity"): (
        "The causal denominator adds 1e-6 to sums of features that can be as small, so that weights sum to less than 1."
    ),
    ("performer-pytorch", "gradients"): (
        "The subtracted maximum is detached, which is right only where it cancels; beside the constants 1e-4 and 1e-6 it does not."
    ),
    ("local-attention", "padding"): (
        "`autopad=True` appends zeros up to a whole window; without a mask, attention that is not causal reads them as keys. With a "
        "mask they are hidden, so that masking the end and leaving it away differ."
    ),
    ("local-attention", "convexity"): "The same zeros take a part of the weights.",
    ("reformer-pytorch", "causality"): (
        "Positions are sorted by bucket over the whole sequence and cut into chunks: a later position moves the cuts, and with them "
        "which earlier keys a query meets. Later values themselves stay hidden."
    ),
    ("reformer-pytorch", "padding"): "Padded positions are hashed and sorted too, and take places in the chunks.",
    ("reformer-pytorch", "convexity"): (
        "A query that sees its own key alone gets the logit -5e4, where neighbouring float32 numbers lie 0.004 apart, and its weights "
        "are exp of differences of such numbers."
    ),
    ("reformer-pytorch", "range"): "The same rounding: the weights sum to a little more than 1.",
    ("nystrom-attention", "padding"): (
        "The layer puts zeros in front, up to a multiple of the landmarks; without a mask they are keys and landmarks. With a mask "
        "they are hidden, so that masking the end and leaving it away differ."
    ),
    ("nystrom-attention", "batch"): (
        "The iteration for the pseudo-inverse is scaled by one maximum over all entries and heads (`torch.max(col) * torch.max(row)`), "
        "and has not converged after 6 steps."
    ),
    ("nystrom-attention", "heads"): "The same maximum is over all heads.",
    ("linear-attention-transformer", "padding"): (
        "Causal keys pass exp without subtracting a maximum. Padding is set to 0 after that, and 0 · inf of the backward pass is NaN."
    ),
    ("linear-attention-transformer", "range"): "The same exp overflows at logits of about 89 in float32.",
    ("routing-transformer", "causality"): (
        "Each cluster takes the positions nearest to its centroid out of the whole sequence: later positions push out earlier ones."
    ),
    ("routing-transformer", "padding"): (
        "Clusters choose their keys before the mask. Where all chosen keys are padding, equal mask values give a softmax that is uniform "
        "over padding."
    ),
    ("routing-transformer", "linearity"): "Causal attention adds one learned key and value to each cluster, a constant beside the values.",
    ("sinkhorn-transformer", "padding"): "Buckets are sorted by means of their queries and keys, padding included, before any mask.",
    ("sinkhorn-transformer", "linearity"): (
        "Attention that is not causal takes the values of the sorted bucket from its keys: `b_v_r = b_k_r.reshape(bh, buckets, -1, d_h)`. "
        "The causal class has `b_v_r` there."
    ),
    ("h-transformer-1d", "padding"): (
        "Each level subtracts the maximum of a row after the mask: a row whose keys of that level are all hidden becomes 0, and each "
        "hidden key gets the weight 1. The causal layer has no mask."
    ),
    ("h-transformer-1d", "convexity"): (
        "Each level subtracts a maximum of its own that is not put back when levels are added, and a coarse key counts once in the "
        "denominator while its values are summed."
    ),
    ("memory-compressed-attention", "padding"): (
        "The mask is `mask_q < mask_k`, which is False for a valid query and a valid key: with a mask, valid queries see the null key alone."
    ),
    ("memory-compressed-attention", "linearity"): "Values pass a convolution with a bias: outputs have a constant part.",
    ("x-transformers", "convexity"): (
        "Its softmax is computed in float32 whatever the inputs are (`partial(softmax_fn, dtype = torch.float32)`): in float64 everything "
        "has float32's rounding. In float32 it passes."
    ),
    ("x-transformers", "permutation"): "The same rounding in float64.",
    ("x-transformers", "gradients"): "Differences in float64 drown in the same rounding.",
    ("x-transformers", "exact"): "The same rounding in float64.",
}
