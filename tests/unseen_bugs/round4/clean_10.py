"""Poses of a camera: unit quaternions are composed, turned into matrices and interpolated, and
8 bit depth images become points in the world."""
import torch

CONFIG = {"focal": 20.0, "depth_scale": 0.05, "steps": 5}


def multiply(p, q):
    pw, pv, qw, qv = p[..., :1], p[..., 1:], q[..., :1], q[..., 1:]
    w = pw * qw - (pv * qv).sum(-1, keepdim=True)
    return torch.cat([w, pw * qv + qw * pv + torch.linalg.cross(pv, qv)], dim=-1)


def conjugate(q):
    return q * torch.tensor([1.0, -1.0, -1.0, -1.0], dtype=q.dtype)


def angle(q):
    return 2 * torch.atan2(q[..., 1:].norm(dim=-1), q[..., 0].abs())


def from_rotvec(v):
    theta = v.norm(dim=-1, keepdim=True)
    half = theta / 2
    scale = torch.where(theta > 1e-6, torch.sin(half) / theta.clamp(min=1e-6), torch.full_like(theta, 0.5))
    return torch.cat([torch.cos(half), scale * v], dim=-1)


def to_matrix(q):
    w, x, y, z = torch.nn.functional.normalize(q, dim=-1).unbind(-1)
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return torch.stack(rows, dim=-1).view(*q.shape[:-1], 3, 3)


def slerp(p, q, n):
    t = torch.linspace(0, 1, n, dtype=p.dtype)[:, None]
    dot = (p * q).sum()
    q = torch.where(dot < 0, -q, q)
    omega = torch.atan2((p - q).norm() / 2, (p + q).norm() / 2) * 2
    return (torch.sin((1 - t) * omega) * p + torch.sin(t * omega) * q) / torch.sin(omega)


def backproject(depth, config):
    h, w = depth.shape[-2:]
    v, u = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    z = depth.float() * config["depth_scale"]
    x = (u - (w - 1) / 2) / config["focal"] * z
    y = (v - (h - 1) / 2) / config["focal"] * z
    return torch.stack([x, y, z], dim=-1)


def main(rotvecs, depth):
    steps = from_rotvec(rotvecs)
    pose = torch.tensor([1.0, 0.0, 0.0, 0.0])
    poses = [pose]
    for step in steps:
        poses.append(torch.nn.functional.normalize(multiply(poses[-1], step), dim=-1))
    poses = torch.stack(poses)
    valid = depth > 0
    points = backproject(depth, CONFIG)[valid] @ to_matrix(poses[-1]).T
    turned = angle(multiply(conjugate(poses[:-1]), poses[1:]))
    return poses, turned, slerp(poses[0], poses[-1], CONFIG["steps"]), points, valid.sum()


def inputs():
    g = torch.Generator().manual_seed(3)
    rotvecs = torch.randn(4, 3, generator=g) * 0.3
    return rotvecs, torch.randint(0, 256, (4, 5), generator=g).to(torch.uint8)
