"""A Kalman filter for several robots in torch, in double precision on purpose because long tracks
make covariances nearly singular; only what goes to the controller is float32."""
import torch

CONFIG = {"accel": 0.4, "gps": 1.5, "odometry": 0.1, "gate": 9.0}


class ConstantVelocity:
    def __init__(self, config, dtype=torch.float64):
        self.config, self.dtype = config, dtype
        self.h_position = torch.eye(4, dtype=dtype)[:2]
        self.h_velocity = torch.eye(4, dtype=dtype)[2:]

    def transition(self, dt):
        f = torch.eye(4, dtype=self.dtype).repeat(len(dt), 1, 1)
        f[:, 0, 2] = f[:, 1, 3] = dt
        g = torch.zeros(len(dt), 4, 2, dtype=self.dtype)
        g[:, 0, 0] = g[:, 1, 1] = 0.5 * dt ** 2
        g[:, 2, 0] = g[:, 3, 1] = dt
        return f, self.config["accel"] ** 2 * g @ g.mT


class Filter:
    def __init__(self, model, start):
        self.model = model
        n = start.shape[0]
        self.x = torch.cat([start, torch.zeros(n, 2)], dim=1).to(model.dtype)
        self.p = torch.diag(torch.tensor([4.0, 4.0, 1.0, 1.0], dtype=model.dtype)).repeat(n, 1, 1)
        self.rejected = torch.zeros(n, dtype=torch.int64)

    def predict(self, dt):
        f, q = self.model.transition(dt)
        self.x = (f @ self.x[..., None])[..., 0]
        self.p = f @ self.p @ f.mT + q

    def update(self, z, h, sigma):
        z = z.to(self.x.dtype)
        innovation = z - self.x @ h.mT
        s = h @ self.p @ h.mT + sigma ** 2 * torch.eye(len(h), dtype=self.x.dtype)
        distance = (innovation[:, None] @ torch.linalg.solve(s, innovation[..., None]))[:, 0, 0]
        ok = distance < self.model.config["gate"]
        self.rejected += ~ok
        gain = torch.linalg.solve(s, h @ self.p).mT * ok[:, None, None]
        self.x = self.x + (gain @ innovation[..., None])[..., 0]
        left = torch.eye(4, dtype=self.x.dtype) - gain @ h
        self.p = left @ self.p @ left.mT + sigma ** 2 * gain @ gain.mT


def main(times, gps, odometry):
    model = ConstantVelocity(CONFIG)
    f = Filter(model, gps[0])
    commands, sigmas = [], []
    for i in range(1, len(times)):
        f.predict((times[i] - times[i - 1]).expand(gps.shape[1]))
        f.update(odometry[i], model.h_velocity, CONFIG["odometry"])
        if i % 3 == 0:
            f.update(gps[i], model.h_position, CONFIG["gps"])
        commands.append((-0.5 * f.x[:, 2:]).to(torch.float32))
        sigmas.append(f.p.diagonal(dim1=1, dim2=2).sqrt())
    return torch.stack(commands), f.x, torch.stack(sigmas)[-1], f.rejected


def inputs():
    g = torch.Generator().manual_seed(4)
    times = 1.7e9 + torch.arange(30, dtype=torch.float64) * 0.1
    velocity = torch.tensor([[1.0, 0.2], [-0.5, 0.8], [0.1, -1.2]])
    track = velocity * (times - times[0]).float()[:, None, None]
    gps = track + 1.5 * torch.randn(30, 3, 2, generator=g)
    gps[12, 1] += 40
    return times, gps, velocity + 0.1 * torch.randn(30, 3, 2, generator=g)
