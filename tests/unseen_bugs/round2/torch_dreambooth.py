"""Fine-tunes a small network and keeps an exponential moving average of its weights, which is
what is evaluated at the end.

https://github.com/d8ahazard/sd_dreambooth_extension/pull/1415
"""
import copy

import torch
from torch import nn

CONFIG = {"mixed_precision": "bf16", "lr": 0.05, "steps": 200, "ema_power": 0.75,
          "ema_max_value": 0.9999, "resume_step": 300000, "use_ema": True}
DTYPES = {"no": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class EMAModel:
    def __init__(self, model, update_after_step=0, inv_gamma=1.0, power=2 / 3, min_value=0.0,
                 max_value=0.9999, optimization_step=0):
        self.averaged_model = copy.deepcopy(model).eval()
        self.averaged_model.requires_grad_(False)
        self.update_after_step, self.inv_gamma, self.power = update_after_step, inv_gamma, power
        self.min_value, self.max_value = min_value, max_value
        self.decay, self.optimization_step = 0.0, optimization_step

    def get_decay(self, optimization_step):
        step = max(0, optimization_step - self.update_after_step - 1)
        if step <= 0:
            return 0.0
        value = 1 - (1 + step / self.inv_gamma) ** -self.power
        return max(self.min_value, min(value, self.max_value))

    @torch.no_grad()
    def step(self, new_model):
        self.decay = self.get_decay(self.optimization_step)
        for module, ema_module in zip(new_model.modules(), self.averaged_model.modules()):
            for param, ema_param in zip(module.parameters(recurse=False),
                                        ema_module.parameters(recurse=False)):
                if not param.requires_grad:
                    ema_param.copy_(param.to(dtype=ema_param.dtype).data)
                else:
                    ema_param.mul_(self.decay)
                    ema_param.add_(param.data.to(dtype=ema_param.dtype), alpha=1 - self.decay)
        self.optimization_step += 1


class Denoiser(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down, self.up = nn.Linear(4, width), nn.Linear(width, 4)

    def forward(self, latents):
        return self.up(torch.nn.functional.silu(self.down(latents)))


def train(model, ema, latents, target, config):
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    for _ in range(config["steps"]):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(latents).float(), target.float())
        loss.backward()
        optimizer.step()
        if ema is not None:
            ema.step(model)


def main(latents, target):
    torch.manual_seed(0)
    weight_dtype = DTYPES[CONFIG["mixed_precision"]]
    model = Denoiser().to(weight_dtype)
    start = model.up.bias.detach().clone()
    ema = EMAModel(model, power=CONFIG["ema_power"], max_value=CONFIG["ema_max_value"],
                   optimization_step=CONFIG["resume_step"])
    train(model, ema if CONFIG["use_ema"] else None, latents.to(weight_dtype), target, CONFIG)
    return start, model.up.bias.detach(), ema.averaged_model.up.bias


def inputs():
    g = torch.Generator().manual_seed(6)
    return torch.randn(16, 4, generator=g), torch.randn(16, 4, generator=g) + 2


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
