"""Q-learning from a buffer of 8 bit frames: frames are scaled when a batch is drawn, actions are
integer indices and the end of an episode masks the target."""
import torch
from torch import nn
import torch.nn.functional as F

CONFIG = {"actions": 4, "capacity": 32, "batch": 8, "gamma": 0.95, "lr": 0.05, "tau": 0.1, "steps": 3}


class FrameBuffer:
    def __init__(self, capacity, shape):
        self.frames = torch.zeros((capacity,) + shape, dtype=torch.uint8)
        self.following = torch.zeros((capacity,) + shape, dtype=torch.uint8)
        self.actions = torch.zeros(capacity, dtype=torch.int64)
        self.rewards = torch.zeros(capacity, dtype=torch.float32)
        self.dones = torch.zeros(capacity, dtype=torch.bool)
        self.size = 0

    def extend(self, frames, following, actions, rewards, dones):
        rows = slice(self.size, self.size + len(frames))
        for store, new in ((self.frames, frames), (self.following, following),
                           (self.actions, actions), (self.rewards, rewards), (self.dones, dones)):
            store[rows] = new
        self.size += len(frames)

    @staticmethod
    def scale(frames):
        return frames.to(torch.float32) / 255.0

    def sample(self, n, generator):
        index = torch.randint(0, self.size, (n,), generator=generator)
        return (self.scale(self.frames[index]), self.actions[index], self.rewards[index],
                self.scale(self.following[index]), self.dones[index])


class QNet(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2)
        self.head = nn.Linear(4 * 3 * 3, actions)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).flatten(1))


def td_loss(net, target, batch, gamma):
    frames, actions, rewards, following, dones = batch
    q = net(frames).gather(1, actions[:, None]).squeeze(1)
    with torch.no_grad():
        best = target(following).amax(dim=1)
        goal = rewards + gamma * best * (~dones)
    return F.smooth_l1_loss(q, goal)


def main(frames, following, actions, rewards, dones):
    torch.manual_seed(2)
    net, target = QNet(CONFIG["actions"]), QNet(CONFIG["actions"])
    target.load_state_dict(net.state_dict())
    buffer = FrameBuffer(CONFIG["capacity"], frames.shape[1:])
    buffer.extend(frames, following, actions, rewards, dones)
    generator, losses = torch.Generator().manual_seed(3), []
    for _ in range(CONFIG["steps"]):
        loss = td_loss(net, target, buffer.sample(CONFIG["batch"], generator), CONFIG["gamma"])
        grads = torch.autograd.grad(loss, list(net.parameters()))
        with torch.no_grad():
            for p, t, g in zip(net.parameters(), target.parameters(), grads):
                p -= CONFIG["lr"] * g
                t.lerp_(p, CONFIG["tau"])
        losses.append(loss.detach())
    with torch.no_grad():
        greedy = net(buffer.scale(frames)).argmax(dim=1)
    return torch.stack(losses), greedy, torch.bincount(greedy, minlength=CONFIG["actions"])


def inputs():
    g = torch.Generator().manual_seed(4)
    frames = torch.randint(0, 256, (2, 24, 1, 8, 8), generator=g, dtype=torch.uint8)
    return (frames[0], frames[1], torch.randint(0, 4, (24,), generator=g),
            torch.randn(24, generator=g), torch.rand(24, generator=g) < 0.2)
