"""A few steps of an optimizer with Shampoo's preconditioners in Adam's place, for a model that
is kept in bfloat16.

https://github.com/HomebrewML/HeavyBall/issues/2
"""
import torch
from torch import nn


def decay_to_zero(step, beta):
    return 1 - (1 - beta) / (1 - beta ** step)


class PaLMForeachSOAP(torch.optim.Optimizer):
    def __init__(self, params, lr=3e-3, beta=0.9, shampoo_beta=0.9, eps=1e-8,
                 max_precond_dim=64, precondition_frequency=2):
        super().__init__(params, dict(
            lr=lr, beta=beta, shampoo_beta=shampoo_beta, eps=eps,
            max_precond_dim=max_precond_dim, precondition_frequency=precondition_frequency))

    def init_preconditioner(self, grad, state, max_precond_dim):
        state["GG"], state["Q"] = [], None
        for size in grad.shape:
            if size > max_precond_dim or grad.dim() == 1:
                state["GG"].append(None)
            else:
                state["GG"].append(torch.zeros(size, size, device=grad.device))
        state["exp_avg"] = torch.zeros(grad.shape, device=grad.device)
        state["exp_avg_sq"] = torch.zeros(grad.shape, device=grad.device)
        state["step"] = 0

    def update_preconditioner(self, grad, state, group):
        for idx, gg in enumerate(state["GG"]):
            if gg is None:
                continue
            other = [i for i in range(grad.dim()) if i != idx]
            outer_product = torch.tensordot(grad, grad, dims=(other, other))
            gg.lerp_(outer_product, 1 - group["shampoo_beta"])
        if state["Q"] is None or state["step"] % group["precondition_frequency"] == 0:
            state["Q"] = [None if gg is None else torch.linalg.eigh(gg)[1] for gg in state["GG"]]

    def project(self, x, state, back=False):
        for q in state["Q"]:
            if q is None:
                x = x.movedim(0, -1)
            else:
                x = torch.tensordot(x, q, dims=([0], [1 if back else 0]))
        return x

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad
                state = self.state[p]
                if not state:
                    self.init_preconditioner(grad, state, group["max_precond_dim"])
                state["step"] += 1
                self.update_preconditioner(grad, state, group)
                projected = self.project(grad, state)
                beta = decay_to_zero(state["step"], group["beta"])
                state["exp_avg"].lerp_(grad, 1 - beta)
                state["exp_avg_sq"].lerp_(projected.square(), 1 - beta)
                update = self.project(state["exp_avg"], state)
                update = update / (state["exp_avg_sq"].sqrt() + group["eps"])
                p.add_(self.project(update, state, back=True).to(p.dtype), alpha=-group["lr"])


def main(x, y):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3)).to(torch.bfloat16)
    optimizer = PaLMForeachSOAP(model.parameters())
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to(torch.bfloat16)).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def inputs():
    g = torch.Generator().manual_seed(5)
    return torch.randn(32, 6, generator=g), torch.randint(0, 3, (32,), generator=g)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
