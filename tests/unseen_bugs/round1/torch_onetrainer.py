"""Prepares a text encoder for the training of a new token embedding: sets the dtypes of
its parts from a config, and encodes the initial words to start the embedding from.

https://github.com/Nerogar/OneTrainer/issues/752
"""
import torch
from torch import nn

CONFIG = {
    "text_encoder": {"weight_dtype": torch.float16, "train": False},
    "embedding": {"weight_dtype": torch.float32, "is_output_embedding": True, "token_count": 3},
    "hidden": 16, "heads": 2, "layers": 2, "vocab": 40, "positions": 12,
}


class CLIPTextEmbeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.token_embedding = nn.Embedding(config["vocab"], config["hidden"])
        self.position_embedding = nn.Embedding(config["positions"], config["hidden"])
        self.register_buffer("position_ids", torch.arange(config["positions"])[None],
                             persistent=False)

    def forward(self, tokens):
        position_ids = self.position_ids[:, :tokens.shape[1]]
        inputs_embeds = self.token_embedding(tokens)
        return inputs_embeds + self.position_embedding(position_ids)


class CLIPEncoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden"]
        self.heads = config["heads"]
        self.layer_norm1 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out_proj = nn.Linear(hidden, hidden)
        self.layer_norm2 = nn.LayerNorm(hidden)
        self.mlp = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, hidden))

    def forward(self, h):
        b, t, c = h.shape
        x = self.layer_norm1(h)
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        w = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, dim=-1)
        h = h + self.out_proj((w @ v).transpose(1, 2).reshape(b, t, c))
        return h + self.mlp(self.layer_norm2(h))


class CLIPTextModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embeddings = CLIPTextEmbeddings(config)
        self.layers = nn.ModuleList(CLIPEncoderLayer(config) for _ in range(config["layers"]))

    def forward(self, tokens):
        hidden_states = self.embeddings(tokens)
        all_states = [hidden_states]
        for layer in self.layers:
            hidden_states = layer(hidden_states)
            all_states.append(hidden_states)
        return all_states


def create_new_embedding(model, tokens, config):
    if config["embedding"]["is_output_embedding"]:
        with torch.no_grad():
            vector = model(tokens)[-2][0]
    else:
        vector = model.embeddings.token_embedding.weight[tokens[0]]
    vector = vector[:config["embedding"]["token_count"]]
    return vector.to(dtype=config["embedding"]["weight_dtype"])


def setup_model(config):
    torch.manual_seed(0)
    model = CLIPTextModel(config)
    model.requires_grad_(config["text_encoder"]["train"])
    model.to(dtype=config["text_encoder"]["weight_dtype"])
    model.embeddings.token_embedding.to(dtype=config["embedding"]["weight_dtype"])
    return model


def main(tokens):
    model = setup_model(CONFIG)
    return create_new_embedding(model, tokens, CONFIG)


def inputs():
    return (torch.tensor([[3, 17, 5, 22, 9, 1]]),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
