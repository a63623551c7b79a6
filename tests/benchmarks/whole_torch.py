"""The whole programs as PyTorch users write them."""

import torch
from torch.nn import functional


def layer_norm(x, scale, shift):
    return functional.layer_norm(x, x.shape[-1:], scale, shift, 1e-5)


def rms_norm(x, residual, scale):
    return functional.rms_norm(x + residual, x.shape[-1:], scale, 1e-6)


def softmax(x):
    return torch.softmax(x, dim=-1)


def cross_entropy(logits, targets):
    return (torch.logsumexp(logits, dim=-1) - (logits * targets).sum(-1)).mean()


def attention(queries, keys, values):
    return functional.scaled_dot_product_attention(queries, keys, values, scale=0.125)


def causal_attention(queries, keys, values, mask):
    return functional.scaled_dot_product_attention(queries, keys, values, mask, scale=0.125)


def relu_layers(x, w1, b1, w2, b2, w3, b3):
    x = torch.relu(torch.addmm(b1, x, w1))
    x = torch.relu(torch.addmm(b2, x, w2))
    return torch.relu(torch.addmm(b3, x, w3))


def residual_tanh_layers(x, w1, b1, w2, b2, w3, b3):
    x = x + torch.tanh(torch.addmm(b1, x, w1))
    x = x + torch.tanh(torch.addmm(b2, x, w2))
    return x + torch.tanh(torch.addmm(b3, x, w3))


def tiny_relu_layer(x, w, b):
    return torch.relu(x @ w + b)


def tiny_gated_cell(x, h, w, u, b):
    gate = torch.sigmoid(x @ w + h @ u + b)
    return gate * h + (1 - gate) * torch.tanh(x)


def squared_distances(a, b):
    return ((a[:, None] - b[None]) ** 2).sum(-1)


def n_body_forces(positions, masses):
    offsets = positions[None] - positions[:, None]
    squares = (offsets * offsets).sum(-1) + 1e-3
    pull = masses / (squares * torch.sqrt(squares))
    return (offsets * pull[..., None]).sum(1)


def blur_steps(image):
    for _ in range(5):
        vertical = image[:-2, 1:-1] + image[2:, 1:-1]
        horizontal = image[1:-1, :-2] + image[1:-1, 2:]
        image = 0.5 * image[1:-1, 1:-1] + 0.125 * (vertical + horizontal)
    return image


@torch.compile(dynamic=False)
def _heat_step(field):
    around = field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
    return field + functional.pad(0.1 * (around - 4 * field[1:-1, 1:-1]), (1, 1, 1, 1))


@torch.compiler.disable(recursive=False)  # eight steps in one graph: no code after 100 s
def heat_steps(field):
    for _ in range(8):
        field = _heat_step(field)
    return field


def normal_log_likelihood(x, mean, spread):
    z = (x - mean) / spread
    return (-0.5 * z * z - torch.log(spread) - 0.9189385332046727).sum()


def logistic_loss(margins, weights):
    return (functional.softplus(-margins) * weights).sum() / weights.sum()


def colour_matrix(image, matrix):
    mixed = image.to(torch.float32) @ matrix
    return mixed.round().clamp(0, 255).to(torch.uint8)


def tone_curve(image, gains):
    light = (image.to(torch.float32) / 255) ** 2
    toned = light / (1 + (light @ gains)[..., None])
    return (torch.sqrt(toned) * 255 + 0.5).to(torch.uint8)


def int8_product(a, b):
    return torch._int_mm(a, b)


def int32_product(a, b):
    return a @ b


def sorted_rows(x):
    return torch.sort(x, dim=-1).values


def trimmed_means(x):
    cut = x.shape[-1] // 10
    return torch.sort(x, dim=-1).values[:, cut:-cut].mean(-1)


def predicted_classes(logits):
    return torch.argmax(logits, dim=-1)


def nearest_centres(scores, norms):
    return torch.argmin(norms - 2 * scores, dim=-1)


def adam_step(parameter, gradient, first, second):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    return parameter - 0.001 * first / (torch.sqrt(second) + 1e-8)


def momentum_step(parameter, gradient, velocity, decay):
    velocity = 0.9 * velocity + gradient + decay * parameter
    return parameter - 0.01 * (gradient + 0.9 * velocity)


def column_moments(x):
    variance, mean = torch.var_mean(x, dim=0, correction=0)
    return mean, variance


def standardized_columns(x):
    variance, mean = torch.var_mean(x, dim=0, correction=0)
    return (x - mean) / (torch.sqrt(variance) + 1e-6)


def _normal_cdf(z):
    t = 1 / (1 + 0.2316419 * torch.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * -1.821255978)))
    tail = torch.exp(-0.5 * z * z) * 0.3989422804014327 * series
    return torch.where(z > 0, 1 - tail, tail)


def option_prices(spot, strike, years, volatility):
    root = volatility * torch.sqrt(years)
    d1 = (torch.log(spot / strike) + (0.02 + 0.5 * volatility * volatility) * years) / root
    discounted = strike * torch.exp(-0.02 * years)
    return spot * _normal_cdf(d1) - discounted * _normal_cdf(d1 - root)


def escape_times(re, im):
    x, y, count = torch.zeros_like(re), torch.zeros_like(im), torch.zeros_like(re)
    for _ in range(30):
        x, y = x * x - y * y + re, 2 * x * y + im
        inside = x * x + y * y < 4
        count = count + inside
        x, y = torch.where(inside, x, 2), torch.where(inside, y, 2)
    return count
