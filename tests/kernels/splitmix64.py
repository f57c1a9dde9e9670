"""The random number generator splitmix64 in plain Python, as the kernels in `kernels.workload.draws` use it."""

MASK = 2**64 - 1


def mixed(bits: int) -> int:
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
    return bits ^ bits >> 31


def word(stream: int, number: int) -> int:
    return mixed(stream + (number + 1) * 0x9E3779B97F4A7C15 & MASK)


def stream_of(seed: int, purpose: int) -> int:
    return word(mixed(seed), purpose)
