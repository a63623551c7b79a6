"""Double-DQN loss with gather, bool done flags and gradients by autograd."""
import torch
import torch.nn.functional as F

GAMMA = 0.99


def q_values(w, b, obs):
    return F.linear(obs, w, b)


def td_target(reward, done, next_obs, online, target):
    best = q_values(*online, next_obs).argmax(dim=1, keepdim=True)
    next_q = q_values(*target, next_obs).gather(1, best).squeeze(1)
    return reward + GAMMA * next_q.masked_fill(done, 0.0)


def main(obs, action, reward, next_obs, done, w, b, w_target, b_target):
    w = w.detach().requires_grad_(True)
    b = b.detach().requires_grad_(True)
    with torch.no_grad():
        y = td_target(reward, done, next_obs, (w, b), (w_target, b_target))
    q = q_values(w, b, obs).gather(1, action.unsqueeze(1)).squeeze(1)
    loss = F.smooth_l1_loss(q, y)
    gw, gb = torch.autograd.grad(loss, (w, b))
    td_error = (y - q).detach().abs()
    priority = (td_error + 1e-5) ** 0.6
    return loss.detach(), gw, gb, priority / priority.sum()


def inputs():
    g = torch.Generator().manual_seed(19)
    n, d, a = 12, 5, 3
    w = torch.randn(a, d, generator=g)
    return (torch.randn(n, d, generator=g), torch.randint(0, a, (n,), generator=g),
            torch.randn(n, generator=g), torch.randn(n, d, generator=g),
            torch.rand(n, generator=g) < 0.2, w, torch.zeros(a),
            w + 0.05 * torch.randn(a, d, generator=g), torch.zeros(a))
