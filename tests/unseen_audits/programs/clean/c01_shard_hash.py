"""Distribution of host names over shards by a 32-bit FNV-1a hash."""
import numpy as np

PRIME = np.uint32(16777619)
OFFSET = np.uint32(2166136261)


def make_inputs():
    hosts = [f"{kind}{i:02d}.{site}.example" for kind in ("web", "db", "cache")
             for i in range(8) for site in ("ams", "fra")]
    return np.array(hosts), 16


def fnv1a(names):
    width = names.dtype.itemsize // 4
    codes = names.astype(f"S{width}").view(np.uint8).reshape(len(names), width)
    h = np.full(len(names), OFFSET, dtype=np.uint32)
    for column in codes.T:
        live = column != 0
        # arithmetic modulo 2**32, as the hash is defined
        h[live] = (h[live] ^ column[live]) * PRIME
    return h


def run(hosts, n_shards):
    digest = fnv1a(hosts)
    shard = digest % np.uint32(n_shards)
    lengths = np.char.str_len(hosts)
    load = np.bincount(shard, minlength=n_shards)
    print("heaviest shard holds %d of %d hosts" % (load.max(), len(hosts)))
    return {
        "digest": digest,
        "name_length": lengths,
        "n_hosts": int(load.sum()),
        "mean_length": lengths.mean(),
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "name_length": {"differ": 0},
        "n_hosts": {"differ": 0},
        "mean_length": {"differ": 0},
    },
    "why": "the uint32 wrap is the definition of the hash; the listed outputs do not depend on it",
}
