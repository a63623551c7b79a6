"""Channels of a recorder: a gain and a baseline each."""

import numpy as np


class Recorder:
    def __init__(self, gains, baselines):
        self.gains = np.asarray(gains, np.float32)
        self.baselines = np.asarray(baselines, np.int64)

    def centred(self, digital, channel):
        """The int16 samples of a channel about its baseline."""
        return digital - int(self.baselines[channel])

    def physical(self, digital, channel):
        return self.centred(digital, channel).astype(np.float32) / self.gains[channel]
