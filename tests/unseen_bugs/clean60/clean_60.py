"""RMSNorm in float32 with a bfloat16 SwiGLU feed-forward and float32 loss."""
import torch
import torch.nn.functional as F


def rms_norm(x, weight, eps=1e-6):
    x32 = x.to(torch.float32)
    inv = torch.rsqrt(x32.pow(2).mean(dim=-1, keepdim=True) + eps)
    return (x32 * inv * weight).to(x.dtype)


def swiglu(x, w_gate, w_up, w_down):
    return F.linear(F.silu(F.linear(x, w_gate)) * F.linear(x, w_up), w_down)


def main(ids, labels, embed, norm_w, w_gate, w_up, w_down):
    # float32 master weights, bfloat16 copies for the products
    gate, up, down = (w.to(torch.bfloat16) for w in (w_gate, w_up, w_down))
    h = F.embedding(ids, embed).to(torch.bfloat16)
    h = h + swiglu(rms_norm(h, norm_w), gate, up, down)
    h = rms_norm(h, norm_w)
    logits = F.linear(h, embed.to(torch.bfloat16)).to(torch.float32)
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    return h, loss


def inputs():
    g = torch.Generator().manual_seed(22)
    vocab, d, f = 20, 8, 16
    ids = torch.randint(0, vocab, (2, 9), generator=g)
    return (ids[:, :-1], ids[:, 1:], torch.randn(vocab, d, generator=g), torch.ones(d),
            torch.randn(f, d, generator=g) / d ** 0.5,
            torch.randn(f, d, generator=g) / d ** 0.5,
            torch.randn(d, f, generator=g) / f ** 0.5)
