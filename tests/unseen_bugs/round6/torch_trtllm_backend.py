"""The model of an inference server: requests come with adapters as arrays, they become arguments
of the executor, which keeps the adapters in a cache and adds them to the layers of an engine.

https://github.com/triton-inference-server/tensorrtllm_backend/issues/671
"""
import json

import numpy as np
import torch
from torch.nn import functional as F

ENGINE = json.dumps({"precision": "bfloat16", "layers": 2, "hidden": 8, "vocab": 15,
                     "lora_config": {"lora_dtype": "bfloat16", "rank": 2}})


class InferenceRequest:
    def __init__(self, **tensors):
        self.tensors = tensors

    def get(self, name):
        return self.tensors.get(name)


def from_numpy(x):
    return torch.from_numpy(np.ascontiguousarray(x))


def get_input_tensor_by_name(request, name):
    tensor = request.get(name)
    return None if tensor is None else np.asarray(tensor)


def get_lora_config_from_request(request):
    kwargs = {}
    task_id = get_input_tensor_by_name(request, "lora_task_id")
    if task_id is None:
        return None
    kwargs["task_id"] = int(task_id.squeeze())
    weights = get_input_tensor_by_name(request, "lora_weights")
    if weights is not None:
        kwargs["weights"] = from_numpy(weights).squeeze(0)
    config = get_input_tensor_by_name(request, "lora_config")
    if config is not None:
        kwargs["config"] = from_numpy(config).squeeze(0)
    return kwargs


class PeftCache:
    def __init__(self):
        self.tasks = {}

    def add(self, task_id, weights, config, hidden):
        modules = {}
        for row, (layer, rank) in zip(weights, config.tolist()):
            a, b = row[:rank * hidden], row[rank * hidden:2 * rank * hidden]
            modules[layer] = a.view(rank, hidden), b.view(hidden, rank)
        self.tasks[task_id] = modules


class Executor:
    def __init__(self, engine):
        self.config = json.loads(engine)
        dtype, hidden = getattr(torch, self.config["precision"]), self.config["hidden"]
        g = torch.Generator().manual_seed(1)
        self.embedding = torch.randn(self.config["vocab"], hidden, generator=g).to(dtype)
        self.layers = [torch.randn(hidden, hidden, generator=g).to(dtype) / 4
                       for _ in range(self.config["layers"])]
        self.cache = PeftCache()

    def forward(self, ids, task_id):
        x = self.embedding[ids]
        adapters = self.cache.tasks.get(task_id, {})
        for i, weight in enumerate(self.layers):
            update = F.linear(x, weight)
            if i in adapters:
                a, b = adapters[i]
                update = update + F.linear(F.linear(x, a), b)
            x = x + torch.tanh(update)
        return x @ self.embedding.T

    def enqueue_request(self, input_ids, lora=None):
        if lora is not None and "weights" in lora:
            self.cache.add(lora["task_id"], lora["weights"], lora["config"], self.config["hidden"])
        return self.forward(input_ids, lora and lora["task_id"]).float()


class TritonPythonModel:
    def initialize(self, engine):
        self.executor = Executor(engine)

    def execute(self, requests):
        return [self.executor.enqueue_request(from_numpy(get_input_tensor_by_name(r, "input_ids")).squeeze(0),
                                              get_lora_config_from_request(r)) for r in requests]


def main(input_ids, lora_weights, lora_config):
    model = TritonPythonModel()
    model.initialize(ENGINE)
    ids = input_ids[None]
    return tuple(model.execute([
        InferenceRequest(input_ids=ids),
        InferenceRequest(input_ids=ids, lora_task_id=[[7]], lora_weights=lora_weights[None],
                         lora_config=lora_config[None]),
        InferenceRequest(input_ids=ids[:, ::-1], lora_task_id=[[7]])]))


def inputs():
    rng = np.random.default_rng(0)
    return np.array([3, 9, 1, 14]), rng.normal(0, 0.5, size=(2, 32)).astype(np.float16), np.array([[0, 2], [1, 2]])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
