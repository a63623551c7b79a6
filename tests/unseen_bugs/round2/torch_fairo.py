"""The loop of a robot's controller: messages from the robot are put into buffers, a policy
estimates the velocity by differences and returns the torques.

https://github.com/facebookresearch/fairo/pull/537
"""
import torch
from torch import nn

CONFIG = {"kp": [40.0, 30.0, 50.0], "kd": [4.0, 3.0, 5.0], "alpha": 0.5}


class PD(nn.Module):
    def __init__(self, kp, kd):
        super().__init__()
        self.register_buffer("kp", torch.diag(torch.tensor(kp)))
        self.register_buffer("kd", torch.diag(torch.tensor(kd)))

    def forward(self, position, velocity, position_desired):
        return self.kp @ (position_desired - position) - self.kd @ velocity


class VelocityFilter(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha
        self.last_position, self.last_timestamp, self.velocity = None, None, None

    def forward(self, position, timestamp):
        if self.last_timestamp is None:
            self.velocity = torch.zeros_like(position)
        else:
            dt = (timestamp - self.last_timestamp).to(torch.float32)
            raw = (position - self.last_position) / torch.clamp(dt, min=1e-6)
            self.velocity = self.alpha * raw + (1 - self.alpha) * self.velocity
        self.last_position, self.last_timestamp = position.clone(), timestamp.clone()
        return self.velocity


class Policy(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.feedback = PD(config["kp"], config["kd"])
        self.filter = VelocityFilter(config["alpha"])

    def forward(self, state, position_desired):
        velocity = self.filter(state["joint_positions"], state["timestamp"])
        torque = self.feedback(state["joint_positions"], velocity, position_desired)
        return {"joint_torques": torque, "velocity": velocity}


class ControllerServer:
    def __init__(self, num_dofs, policy):
        self.rs_timestamp = torch.zeros(1)
        self.rs_joint_positions = torch.zeros(num_dofs)
        self.rs_motor_torques = torch.zeros(num_dofs)
        self.robot_state = {"timestamp": self.rs_timestamp,
                            "joint_positions": self.rs_joint_positions,
                            "motor_torques_measured": self.rs_motor_torques}
        self.policy = policy

    def control_update(self, seconds, nanos, positions, desired):
        self.rs_timestamp[0] = int(seconds) + 1e-9 * int(nanos)
        self.rs_joint_positions.copy_(positions)
        command = self.policy(self.robot_state, desired)
        self.rs_motor_torques.copy_(command["joint_torques"])
        return command


def main(seconds, nanos, positions, desired):
    server = ControllerServer(positions.shape[1], Policy(CONFIG))
    commands = [server.control_update(s, n, q, desired)
                for s, n, q in zip(seconds, nanos, positions)]
    return (torch.stack([c["joint_torques"] for c in commands]),
            torch.stack([c["velocity"] for c in commands]))


def inputs():
    ticks = torch.arange(8) * 1_000_000 + 996_500_000
    seconds, nanos = 1625000000 + ticks // 10 ** 9, ticks % 10 ** 9
    rate = torch.tensor([0.5, -0.25, 1.0])
    return seconds, nanos, torch.arange(8)[:, None] * 1e-3 * rate, torch.tensor([0.1, 0.2, 0.3])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
