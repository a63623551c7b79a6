"""Settings of the plant; everything numeric the pipeline needs is kept here."""
from dataclasses import dataclass, field

import numpy as np

DTYPE = np.float32


@dataclass(frozen=True)
class Machine:
    name: str
    sensitivity: float          # volts per g
    offset: float               # volts
    limit: float                # g, above this a sample counts as a shock


@dataclass(frozen=True)
class Settings:
    rate: int = 1000            # samples per second
    seconds: int = 2
    warmup: int = 50
    bands: tuple = ((5, 50), (50, 150), (150, 400))
    machines: tuple = field(default_factory=lambda: (
        Machine("pump", 0.102, 1.65, 1.8),
        Machine("fan", 0.098, 1.66, 0.9),
        Machine("mill", 0.100, 1.64, 2.5),
    ))

    @property
    def samples(self):
        return self.rate * self.seconds

    def column(self, attribute):
        """One number per machine, as a column that broadcasts over the samples."""
        return np.array([getattr(m, attribute) for m in self.machines], dtype=DTYPE)[:, None]
