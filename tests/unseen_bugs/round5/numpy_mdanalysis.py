"""A trajectory held in memory, with the distances between two groups of atoms over its frames.

https://github.com/MDAnalysis/mdanalysis/issues/1065
"""
import numpy as np


class Timestep:
    def __init__(self, n_atoms):
        self.n_atoms = n_atoms
        self.frame = -1
        self._pos = np.zeros((n_atoms, 3), dtype=np.float32)

    @property
    def positions(self):
        return self._pos

    @positions.setter
    def positions(self, new):
        self._pos = new


class MemoryReader:
    """Frames of a coordinate array whose axes are named by a format: f, a and c."""

    def __init__(self, coordinate_array, format="afc"):
        self.coordinate_array = np.asarray(coordinate_array)
        self.stored_format = format
        self.n_frames = self.coordinate_array.shape[format.find("f")]
        self.n_atoms = self.coordinate_array.shape[format.find("a")]
        self.ts = Timestep(self.n_atoms)

    def __iter__(self):
        basic_slice = [slice(None)] * 3
        axis = self.stored_format.find("f")
        for i in range(self.n_frames):
            basic_slice[axis] = i
            self.ts.frame = i
            self.ts.positions = self.coordinate_array[tuple(basic_slice)]
            yield self.ts


class AtomGroup:
    def __init__(self, reader, indices):
        self.reader, self.indices = reader, np.asarray(indices)

    @property
    def positions(self):
        return self.reader.ts.positions[self.indices]


def check_array(coords, desc):
    if coords.ndim != 2 or coords.shape[1] != 3:
        raise ValueError("%s must be a sequence of 3 dimensional coordinates" % desc)
    if coords.dtype != np.float32:
        raise TypeError("%s must be of type float32" % desc)


def distance_array(reference, configuration):
    check_array(reference, "reference")
    check_array(configuration, "configuration")
    d = reference[:, None, :] - configuration[None, :, :]
    return np.sqrt((d * d).sum(axis=-1, dtype=np.float64))


def main(coordinates):
    reader = MemoryReader(coordinates, format="fac")
    hydrogens, protein = AtomGroup(reader, [0, 2, 4]), AtomGroup(reader, [1, 3, 5, 6])
    contacts = [distance_array(hydrogens.positions, protein.positions) for ts in reader]
    contacts = np.array(contacts)
    return contacts.min(axis=(1, 2)), contacts.mean(axis=0)


def inputs():
    rng = np.random.default_rng(1)
    return (rng.normal(size=(5, 7, 3)) * 4,)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
