"""The whole programs as numba users write them: loops over rows in parallel, no fast math."""

import math

import numpy as np
from numba import njit, prange

F32 = np.float32


@njit(parallel=True)
def layer_norm(x, scale, shift):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        row, total = x[i], F32(0)
        for j in range(row.size):
            total += row[j]
        mean, power = total / F32(row.size), F32(0)
        for j in range(row.size):
            power += (row[j] - mean) * (row[j] - mean)
        inverse = F32(1) / np.sqrt(power / F32(row.size) + F32(1e-5))
        for j in range(row.size):
            out[i, j] = (row[j] - mean) * inverse * scale[j] + shift[j]
    return out


@njit(parallel=True)
def rms_norm(x, residual, scale):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        power = F32(0)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + residual[i, j]
            power += out[i, j] * out[i, j]
        inverse = F32(1) / np.sqrt(power / F32(x.shape[1]) + F32(1e-6))
        for j in range(x.shape[1]):
            out[i, j] = out[i, j] * inverse * scale[j]
    return out


@njit(parallel=True)
def softmax(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        peak, total = x[i, 0], F32(0)
        for j in range(x.shape[1]):
            peak = max(peak, x[i, j])
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - peak)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


@njit(parallel=True)
def cross_entropy(logits, targets):
    losses = np.empty(logits.shape[0], F32)
    for i in prange(logits.shape[0]):
        peak, total, hit = logits[i, 0], F32(0), F32(0)
        for j in range(logits.shape[1]):
            peak = max(peak, logits[i, j])
        for j in range(logits.shape[1]):
            total += np.exp(logits[i, j] - peak)
            hit += logits[i, j] * targets[i, j]
        losses[i] = np.log(total) + peak - hit
    return losses.mean()


@njit(parallel=True)
def attention(queries, keys, values):
    out = np.empty_like(queries)
    for h in prange(queries.shape[0]):
        scores = queries[h] @ keys[h].T * F32(0.125)
        for i in range(scores.shape[0]):
            weights = np.exp(scores[i] - scores[i].max())
            scores[i] = weights / weights.sum()
        out[h] = scores @ values[h]
    return out


@njit(parallel=True)
def causal_attention(queries, keys, values, mask):
    out = np.empty_like(queries)
    for h in prange(queries.shape[0]):
        scores = queries[h] @ keys[h].T * F32(0.125) + mask
        for i in range(scores.shape[0]):
            weights = np.exp(scores[i] - scores[i].max())
            scores[i] = weights / weights.sum()
        out[h] = scores @ values[h]
    return out


@njit
def relu_layers(x, w1, b1, w2, b2, w3, b3):
    x = np.maximum(x @ w1 + b1, F32(0))
    x = np.maximum(x @ w2 + b2, F32(0))
    return np.maximum(x @ w3 + b3, F32(0))


@njit
def residual_tanh_layers(x, w1, b1, w2, b2, w3, b3):
    x = x + np.tanh(x @ w1 + b1)
    x = x + np.tanh(x @ w2 + b2)
    return x + np.tanh(x @ w3 + b3)


@njit
def tiny_relu_layer(x, w, b):
    return np.maximum(x @ w + b, F32(0))


@njit
def tiny_gated_cell(x, h, w, u, b):
    gate = F32(1) / (F32(1) + np.exp(-(x @ w + h @ u + b)))
    return gate * h + (F32(1) - gate) * np.tanh(x)


@njit(parallel=True)
def squared_distances(a, b):
    out = np.empty((a.shape[0], b.shape[0]))
    for i in prange(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for k in range(a.shape[1]):
                total += (a[i, k] - b[j, k]) ** 2
            out[i, j] = total
    return out


@njit(parallel=True)
def n_body_forces(positions, masses):
    out = np.zeros_like(positions)
    for i in prange(positions.shape[0]):
        for j in range(positions.shape[0]):
            dx = positions[j, 0] - positions[i, 0]
            dy = positions[j, 1] - positions[i, 1]
            dz = positions[j, 2] - positions[i, 2]
            square = dx * dx + dy * dy + dz * dz + 1e-3
            pull = masses[j] / (square * math.sqrt(square))
            out[i, 0] += dx * pull
            out[i, 1] += dy * pull
            out[i, 2] += dz * pull
    return out


@njit(parallel=True)
def _blurred(image):
    out = np.empty((image.shape[0] - 2, image.shape[1] - 2), image.dtype)
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            vertical = image[i, j + 1] + image[i + 2, j + 1]
            horizontal = image[i + 1, j] + image[i + 1, j + 2]
            middle = F32(0.5) * image[i + 1, j + 1]
            out[i, j] = middle + F32(0.125) * (vertical + horizontal)
    return out


@njit
def blur_steps(image):
    for _ in range(5):
        image = _blurred(image)
    return image


@njit(parallel=True)
def _heat_step(field, out):
    for i in prange(1, field.shape[0] - 1):
        for j in range(1, field.shape[1] - 1):
            around = field[i - 1, j] + field[i + 1, j] + field[i, j - 1] + field[i, j + 1]
            out[i, j] = field[i, j] + F32(0.1) * (around - F32(4) * field[i, j])


@njit
def heat_steps(field):
    field, other = field.copy(), field.copy()
    for _ in range(8):
        _heat_step(field, other)
        field, other = other, field
    return field


@njit(parallel=True)
def normal_log_likelihood(x, mean, spread):
    total = 0.0
    for i in prange(x.size):
        z = (x[i] - mean[i]) / spread[i]
        total += -0.5 * z * z - math.log(spread[i]) - 0.9189385332046727
    return total


@njit(parallel=True)
def logistic_loss(margins, weights):
    total, mass = 0.0, 0.0
    for i in prange(margins.size):
        m = margins[i]
        total += (np.log1p(np.exp(-abs(m))) + max(-m, F32(0))) * weights[i]
        mass += weights[i]
    return total / mass


@njit(parallel=True)
def colour_matrix(image, matrix):
    out = np.empty_like(image)
    for i in prange(image.shape[0]):
        for j in range(image.shape[1]):
            for k in range(3):
                mixed = F32(0)
                for c in range(3):
                    mixed += F32(image[i, j, c]) * matrix[c, k]
                out[i, j, k] = np.uint8(min(max(np.rint(mixed), F32(0)), F32(255)))
    return out


@njit(parallel=True)
def tone_curve(image, gains):
    out = np.empty_like(image)
    for i in prange(image.shape[0]):
        for j in range(image.shape[1]):
            luma = F32(0)
            for c in range(3):
                luma += (F32(image[i, j, c]) / F32(255)) ** 2 * gains[c]
            for c in range(3):
                light = (F32(image[i, j, c]) / F32(255)) ** 2
                toned = light / (F32(1) + luma)
                out[i, j, c] = np.uint8(np.sqrt(toned) * F32(255) + F32(0.5))
    return out


@njit(parallel=True)
def _integer_product(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), np.int32)
    for i in prange(a.shape[0]):
        for k in range(a.shape[1]):
            factor = np.int32(a[i, k])
            for j in range(b.shape[1]):
                out[i, j] += factor * np.int32(b[k, j])
    return out


@njit
def int8_product(a, b):
    return _integer_product(a, b)


@njit
def int32_product(a, b):
    return _integer_product(a, b)


@njit(parallel=True)
def sorted_rows(x):
    out = x.copy()
    for i in prange(x.shape[0]):
        out[i].sort()
    return out


@njit(parallel=True)
def trimmed_means(x):
    out = np.empty(x.shape[0], x.dtype)
    cut = x.shape[1] // 10
    for i in prange(x.shape[0]):
        out[i] = np.sort(x[i])[cut:-cut].mean()
    return out


@njit(parallel=True)
def predicted_classes(logits):
    out = np.empty(logits.shape[0], np.int64)
    for i in prange(logits.shape[0]):
        out[i] = np.argmax(logits[i])
    return out


@njit(parallel=True)
def nearest_centres(scores, norms):
    out = np.empty(scores.shape[0], np.int64)
    for i in prange(scores.shape[0]):
        best, place = np.inf, 0
        for j in range(scores.shape[1]):
            value = norms[j] - 2 * scores[i, j]
            if value < best:
                best, place = value, j
        out[i] = place
    return out


@njit(parallel=True)
def adam_step(parameter, gradient, first, second):
    out = np.empty_like(parameter)
    for i in prange(parameter.size):
        g = gradient[i]
        m = F32(0.9) * first[i] + F32(0.1) * g
        v = F32(0.999) * second[i] + F32(0.001) * g * g
        out[i] = parameter[i] - F32(0.001) * m / (np.sqrt(v) + F32(1e-8))
    return out


@njit(parallel=True)
def momentum_step(parameter, gradient, velocity, decay):
    out = np.empty_like(parameter)
    for i in prange(parameter.size):
        v = F32(0.9) * velocity[i] + gradient[i] + decay[i] * parameter[i]
        out[i] = parameter[i] - F32(0.01) * (gradient[i] + F32(0.9) * v)
    return out


@njit(parallel=True)
def _column_moments(x):
    blocks = 16
    sums = np.zeros((blocks, x.shape[1]), np.float64)
    squares = np.zeros((blocks, x.shape[1]), np.float64)
    size = (x.shape[0] + blocks - 1) // blocks
    for b in prange(blocks):
        for i in range(b * size, min((b + 1) * size, x.shape[0])):
            for j in range(x.shape[1]):
                sums[b, j] += x[i, j]
                squares[b, j] += np.float64(x[i, j]) * x[i, j]
    mean = sums.sum(axis=0) / x.shape[0]
    return mean, squares.sum(axis=0) / x.shape[0] - mean * mean


@njit
def column_moments(x):
    mean, variance = _column_moments(x)
    return mean.astype(x.dtype), variance.astype(x.dtype)


@njit(parallel=True)
def standardized_columns(x):
    mean, variance = _column_moments(x)
    scale = (1 / (np.sqrt(variance) + 1e-6)).astype(x.dtype)
    mean, out = mean.astype(x.dtype), np.empty_like(x)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean[j]) * scale[j]
    return out


@njit
def _normal_cdf(z):
    t = 1 / (1 + 0.2316419 * abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * -1.821255978)))
    tail = math.exp(-0.5 * z * z) * 0.3989422804014327 * series
    return 1 - tail if z > 0 else tail


@njit(parallel=True)
def option_prices(spot, strike, years, volatility):
    out = np.empty_like(spot)
    for i in prange(spot.size):
        s, k, t, v = spot[i], strike[i], years[i], volatility[i]
        root = v * math.sqrt(t)
        d1 = (math.log(s / k) + (0.02 + 0.5 * v * v) * t) / root
        out[i] = s * _normal_cdf(d1) - k * math.exp(-0.02 * t) * _normal_cdf(d1 - root)
    return out


@njit(parallel=True)
def escape_times(re, im):
    out = np.zeros_like(re)
    for i in prange(re.shape[0]):
        for j in range(re.shape[1]):
            x = y = 0.0
            for _ in range(30):
                x, y = x * x - y * y + re[i, j], 2 * x * y + im[i, j]
                if x * x + y * y >= 4:
                    break
                out[i, j] += 1
    return out
