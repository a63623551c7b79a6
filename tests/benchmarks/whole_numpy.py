"""The whole programs as NumPy users write them; graphir runs these, jitted.

Each has the name that `tests.benchmarks.whole_programs` lists with its class and inputs.
"""

import numpy as np

# -- normalisation of rows


def layer_norm(x, scale, shift):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * scale + shift


def rms_norm(x, residual, scale):
    hidden = x + residual
    power = np.mean(np.square(hidden), axis=-1, keepdims=True)
    return hidden / np.sqrt(power + 1e-6) * scale


# -- softmax, log-sum-exp of rows


def softmax(x):
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def cross_entropy(logits, targets):
    peak = logits.max(axis=-1, keepdims=True)
    total = np.log(np.exp(logits - peak).sum(axis=-1)) + peak[:, 0]
    return (total - (logits * targets).sum(axis=-1)).mean()


# -- attention


def attention(queries, keys, values):
    scores = queries @ keys.swapaxes(-1, -2) * 0.125
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ values


def causal_attention(queries, keys, values, mask):
    scores = queries @ keys.swapaxes(-1, -2) * 0.125 + mask
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights @ values) / weights.sum(axis=-1, keepdims=True)


# -- layers, three in a row


def relu_layers(x, w1, b1, w2, b2, w3, b3):
    x = np.maximum(x @ w1 + b1, 0)
    x = np.maximum(x @ w2 + b2, 0)
    return np.maximum(x @ w3 + b3, 0)


def residual_tanh_layers(x, w1, b1, w2, b2, w3, b3):
    x = x + np.tanh(x @ w1 + b1)
    x = x + np.tanh(x @ w2 + b2)
    return x + np.tanh(x @ w3 + b3)


# -- one tiny layer


def tiny_relu_layer(x, w, b):
    return np.maximum(x @ w + b, 0)


def tiny_gated_cell(x, h, w, u, b):
    gate = 1 / (1 + np.exp(-(x @ w + h @ u + b)))
    return gate * h + (1 - gate) * np.tanh(x)


# -- reductions over a short axis after a broadcast


def squared_distances(a, b):
    return np.sum((a[:, None] - b[None]) ** 2, axis=-1)


def n_body_forces(positions, masses):
    offsets = positions[None] - positions[:, None]
    squares = np.sum(offsets * offsets, axis=-1) + 1e-3
    pull = masses / (squares * np.sqrt(squares))
    return np.sum(offsets * pull[..., None], axis=1)


# -- stencils by slices, several steps


def blur_steps(image):
    for _ in range(5):
        vertical = image[:-2, 1:-1] + image[2:, 1:-1]
        horizontal = image[1:-1, :-2] + image[1:-1, 2:]
        image = 0.5 * image[1:-1, 1:-1] + 0.125 * (vertical + horizontal)
    return image


def heat_steps(field):
    field = field.copy()
    for _ in range(8):
        around = field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
        field[1:-1, 1:-1] += 0.1 * (around - 4 * field[1:-1, 1:-1])
    return field


# -- sums of functions over everything


def normal_log_likelihood(x, mean, spread):
    z = (x - mean) / spread
    return np.sum(-0.5 * z * z - np.log(spread) - 0.9189385332046727)


def logistic_loss(margins, weights):
    losses = np.log1p(np.exp(-np.abs(margins))) + np.maximum(-margins, 0)
    return np.sum(losses * weights) / np.sum(weights)


# -- uint8 images


def colour_matrix(image, matrix):
    mixed = image.astype(np.float32) @ matrix
    return np.clip(np.rint(mixed), 0, 255).astype(np.uint8)


def tone_curve(image, gains):
    light = (image.astype(np.float32) / 255) ** 2
    luma = light @ gains
    toned = light / (1 + luma[..., None])
    return (np.sqrt(toned) * 255 + 0.5).astype(np.uint8)


# -- integer products


def int8_product(a, b):
    return a.astype(np.int32) @ b.astype(np.int32)


def int32_product(a, b):
    return a @ b


# -- sort of rows


def sorted_rows(x):
    return np.sort(x, axis=-1)


def trimmed_means(x):
    ordered = np.sort(x, axis=-1)
    cut = x.shape[-1] // 10
    return ordered[:, cut:-cut].mean(axis=-1)


# -- argmax of rows


def predicted_classes(logits):
    return np.argmax(logits, axis=-1)


def nearest_centres(scores, norms):
    return np.argmin(norms - 2 * scores, axis=-1)


# -- update rules


def adam_step(parameter, gradient, first, second):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    return parameter - 0.001 * first / (np.sqrt(second) + 1e-8)


def momentum_step(parameter, gradient, velocity, decay):
    velocity = 0.9 * velocity + gradient + decay * parameter
    return parameter - 0.01 * (gradient + 0.9 * velocity)


# -- columns


def column_moments(x):
    mean = x.mean(axis=0)
    return mean, np.square(x - mean).mean(axis=0)


def standardized_columns(x):
    mean = x.mean(axis=0)
    spread = np.sqrt(np.square(x - mean).mean(axis=0))
    return (x - mean) / (spread + 1e-6)


# -- option pricing, escape-time loops


def _normal_cdf(z):
    t = 1 / (1 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * -1.821255978)))
    tail = np.exp(-0.5 * z * z) * 0.3989422804014327 * series
    return np.where(z > 0, 1 - tail, tail)


def option_prices(spot, strike, years, volatility):
    root = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (0.02 + 0.5 * volatility * volatility) * years) / root
    discounted = strike * np.exp(-0.02 * years)
    return spot * _normal_cdf(d1) - discounted * _normal_cdf(d1 - root)


def escape_times(re, im):
    x, y = re * 0, im * 0
    count = re * 0
    for _ in range(30):
        x, y = x * x - y * y + re, 2 * x * y + im
        inside = x * x + y * y < 4
        count = count + inside
        x, y = np.where(inside, x, 2), np.where(inside, y, 2)
    return count
