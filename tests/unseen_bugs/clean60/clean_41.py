"""Graph convolution by segment_sum with mean aggregation and a global readout."""
import jax
import jax.numpy as jnp


def mean_aggregate(nodes, senders, receivers):
    n = nodes.shape[0]
    messages = nodes[senders]
    total = jax.ops.segment_sum(messages, receivers, num_segments=n)
    degree = jax.ops.segment_sum(jnp.ones(receivers.shape, nodes.dtype), receivers,
                                 num_segments=n)
    return total / jnp.maximum(degree, 1.0)[:, None]


def layer(nodes, senders, receivers, w_self, w_nbr):
    agg = mean_aggregate(nodes, senders, receivers)
    return jax.nn.relu(nodes @ w_self + agg @ w_nbr)


@jax.jit
def main(nodes, senders, receivers, graph_id, w_self, w_nbr):
    h = layer(nodes, senders, receivers, w_self, w_nbr)
    h = layer(h, senders, receivers, w_self, w_nbr)
    readout = jax.ops.segment_max(h, graph_id, num_segments=2)
    return h, readout


def inputs():
    k = jax.random.split(jax.random.PRNGKey(21), 3)
    nodes = jax.random.normal(k[0], (7, 6))
    senders = jnp.array([0, 1, 1, 2, 3, 4, 5, 6], dtype=jnp.int32)
    receivers = jnp.array([1, 0, 2, 1, 4, 3, 6, 5], dtype=jnp.int32)
    graph_id = jnp.array([0, 0, 0, 1, 1, 1, 1], dtype=jnp.int32)
    return (nodes, senders, receivers, graph_id,
            0.4 * jax.random.normal(k[1], (6, 6)), 0.4 * jax.random.normal(k[2], (6, 6)))
