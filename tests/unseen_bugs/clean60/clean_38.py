"""A small flax CNN on uint8 images, normalised inside the model."""
import flax.linen as nn
import jax
import jax.numpy as jnp

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def preprocess(images):
    x = images.astype(jnp.float32) / 255.0
    mean = jnp.asarray(MEAN, dtype=jnp.float32)
    std = jnp.asarray(STD, dtype=jnp.float32)
    return (x - mean) / std


class CNN(nn.Module):
    @nn.compact
    def __call__(self, images):
        x = preprocess(images)
        x = nn.Conv(8, (3, 3))(x)
        x = nn.GroupNorm(num_groups=4)(x)
        x = nn.relu(x)
        x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = nn.Conv(16, (3, 3))(x)
        x = nn.relu(x)
        x = x.mean(axis=(1, 2))
        return nn.Dense(5)(x)


model = CNN()


def main(key, images):
    params = model.init(key, images)
    logits = model.apply(params, images)
    return logits, jax.nn.softmax(logits), jnp.argmax(logits, axis=-1)


def inputs():
    imgs = jax.random.randint(jax.random.PRNGKey(17), (4, 12, 12, 3), 0, 256)
    return jax.random.PRNGKey(18), imgs.astype(jnp.uint8)
