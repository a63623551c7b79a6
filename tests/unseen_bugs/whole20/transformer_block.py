"""One pre-norm causal transformer block (multi-head attention and GELU MLP) in float32.

Application: GPT-2-style inference on the CPU (prompt processing of one layer).
Public code with such a loop: picoGPT (https://github.com/jaymody/picoGPT), nanoGPT, numpy ports of llama.
"""
import numpy as np

TOLERANCE = 2e-4


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def layer_norm(x, g, b, eps=1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    return g * (x - mean) / np.sqrt(variance + eps) + b


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(q, k, v, mask):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1])) + mask) @ v


def mha(x, w_qkv, b_qkv, w_proj, b_proj, heads):
    t, d = x.shape
    qkv = (x @ w_qkv + b_qkv).reshape(t, 3, heads, d // heads).transpose(1, 2, 0, 3)
    mask = (1 - np.tri(t, dtype=np.float32)) * np.float32(-1e10)
    out = attention(qkv[0], qkv[1], qkv[2], mask)
    return out.transpose(1, 0, 2).reshape(t, d) @ w_proj + b_proj


def main(x, g1, b1, w_qkv, b_qkv, w_proj, b_proj, g2, b2, w_fc, b_fc, w_out, b_out, heads=8):
    x = x + mha(layer_norm(x, g1, b1), w_qkv, b_qkv, w_proj, b_proj, heads)
    h = gelu(layer_norm(x, g2, b2) @ w_fc + b_fc)
    return x + h @ w_out + b_out


def inputs(rng):
    t, d = 128, 256

    def mat(*shape):
        return (0.05 * rng.standard_normal(shape)).astype(np.float32)

    return (rng.standard_normal((t, d)).astype(np.float32), 1 + mat(d), mat(d), mat(d, 3 * d), mat(3 * d), mat(d, d),
            mat(d), 1 + mat(d), mat(d), mat(d, 4 * d), mat(4 * d), mat(4 * d, d), mat(d))


try:
    import jax
    import jax.numpy as jnp
except ImportError:
    pass


def jax_main(x, g1, b1, w_qkv, b_qkv, w_proj, b_proj, g2, b2, w_fc, b_fc, w_out, b_out, heads=8):
    def norm(x, g, b):
        return g * jax.nn.standardize(x, axis=-1, epsilon=1e-5) + b

    t, d = x.shape
    qkv = (norm(x, g1, b1) @ w_qkv + b_qkv).reshape(t, 3, heads, d // heads)
    att = jax.nn.dot_product_attention(qkv[:, 0], qkv[:, 1], qkv[:, 2], is_causal=True)
    x = x + att.reshape(t, d) @ w_proj + b_proj
    return x + jax.nn.gelu(norm(x, g2, b2) @ w_fc + b_fc, approximate=True) @ w_out + b_out


try:
    import torch
    import torch.nn.functional as F
except ImportError:
    pass


def torch_main(x, g1, b1, w_qkv, b_qkv, w_proj, b_proj, g2, b2, w_fc, b_fc, w_out, b_out, heads=8):
    t, d = x.shape
    h = F.layer_norm(x, (d,), g1, b1, 1e-5)
    q, k, v = (h @ w_qkv + b_qkv).view(t, 3, heads, d // heads).permute(1, 2, 0, 3).unbind(0)
    att = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    x = x + att.transpose(0, 1).reshape(t, d) @ w_proj + b_proj
    h = F.layer_norm(x, (d,), g2, b2, 1e-5)
    return x + F.gelu(h @ w_fc + b_fc, approximate="tanh") @ w_out + b_out


numba_main = None  # almost all of it is BLAS: nobody would write it in numba
