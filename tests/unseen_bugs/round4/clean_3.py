"""Levels of 16 bit recordings: peak, root mean square and loudness of each block, in decibels."""
import numpy as np

CONFIG = {"rate": 8000, "block": 400, "hop": 200, "floor": -96.0}
FULL_SCALE = 32768


def frames(samples, block, hop):
    count = 1 + (len(samples) - block) // hop
    index = hop * np.arange(count)[:, None] + np.arange(block)
    return samples[index]


def decibels(ratio, floor):
    level = np.full(ratio.shape, floor)
    np.log10(ratio, out=level, where=ratio > 0)
    return np.where(ratio > 0, np.maximum(20 * level, floor), floor)


def levels(samples, config):
    blocks = frames(samples.astype(np.int64), config["block"], config["hop"])
    energy = (blocks * blocks).sum(axis=1)
    rms = np.sqrt(energy / config["block"]) / FULL_SCALE
    peak = np.abs(blocks).max(axis=1) / FULL_SCALE
    return decibels(rms, config["floor"]), decibels(peak, config["floor"])


def zero_crossings(samples, config):
    blocks = frames(samples, config["block"], config["hop"])
    negative = blocks < 0
    changes = negative[:, 1:] != negative[:, :-1]
    return np.count_nonzero(changes, axis=1) / (config["block"] / config["rate"])


def main(samples):
    rms, peak = levels(samples, CONFIG)
    rates = zero_crossings(samples, CONFIG)
    quiet = rms < -40
    order = np.argsort(rms, kind="stable")
    summary = np.array([rms.mean(), np.median(peak), np.percentile(rms, 95)])
    return rms, peak, rates, order, np.array([np.count_nonzero(quiet), quiet.size]), summary


def inputs():
    t = np.arange(4000) / CONFIG["rate"]
    wave = 30000 * np.sin(2 * np.pi * 440 * t) * np.exp(-3 * t)
    wave[:300] = 0
    return (np.rint(wave).astype(np.int16),)
