"""A batch of small board games in JAX: boards of int8, legal moves as masks, a random policy, and
the planes a network would see as float32."""
from typing import NamedTuple

import jax
import jax.numpy as jnp

SIZE, WIN = 5, 4


class State(NamedTuple):
    board: jax.Array
    player: jax.Array
    winner: jax.Array
    moves: jax.Array


def reset():
    return State(jnp.zeros((SIZE, SIZE), jnp.int8), jnp.int8(1), jnp.int8(0), jnp.int32(0))


def legal(state):
    return (state.board == 0).ravel() & (state.winner == 0)


def lines(stones):
    """Whether a row, a column or a diagonal has WIN stones in sequence."""
    def run(dy, dx):
        height, width = SIZE - dy * (WIN - 1), SIZE - abs(dx) * (WIN - 1)
        start = (WIN - 1) if dx < 0 else 0
        parts = [jax.lax.dynamic_slice(stones, (dy * i, start + dx * i), (height, width)) for i in range(WIN)]
        return jnp.all(jnp.stack(parts), axis=0).any()
    return run(0, 1) | run(1, 0) | run(1, 1) | run(1, -1)


def step(state, action):
    allowed = legal(state)[action]
    row, column = action // SIZE, action % SIZE
    placed = state.board.at[row, column].set(state.player)
    board = jnp.where(allowed, placed, state.board)
    won = allowed & lines(board == state.player)
    winner = jnp.where(won, state.player, state.winner)
    player = jnp.where(allowed, -state.player, state.player)
    return State(board, player, winner, state.moves + allowed.astype(jnp.int32))


def observe(state):
    mine = state.board == state.player
    theirs = state.board == -state.player
    turn = jnp.full((SIZE, SIZE), state.player == 1)
    return jnp.stack([mine, theirs, turn], axis=-1).astype(jnp.float32)


def sample(key, mask):
    logits = jnp.where(mask, 0.0, jnp.finfo(jnp.float32).min)
    return jax.random.categorical(key, logits)


def play(key):
    def body(state, key):
        mask = legal(state)
        action = sample(key, mask)
        return step(state, action), (observe(state), jnp.where(mask.any(), action, -1))

    final, (planes, actions) = jax.lax.scan(body, reset(), jax.random.split(key, SIZE * SIZE))
    return final, planes, actions


def main(keys):
    final, planes, actions = jax.vmap(play)(keys)
    visits = jax.nn.one_hot(actions, SIZE * SIZE).sum(axis=(0, 1))
    score = final.winner.astype(jnp.float32).mean()
    return planes.mean(axis=(0, 1)), final.moves, final.winner, visits / visits.sum(), score


def inputs():
    return (jax.random.split(jax.random.PRNGKey(5), 12),)
