"""Generate bytes that repeat from record to record, and vary within a record, about like those of a topic."""

import numpy as np

from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_u8
from kfbench.kernels.workload.draws import STEP, mixed, stream_of

ONE, BITS_11 = np.uint64(1), np.uint64(11)
UNIT = 2.0**-53
WINDOW = 1_024  # at every record number that is a multiple of it, all words change
MOST_BITS = 52.0
CONSTANT = 1.01  # fewer symbols than this: the byte never changes


@leaf
def _unit(bits):
    """Return a number from 0 to 1 (exclusive)."""
    return np.float64(np.int64(bits >> BITS_11)) * UNIT


@leaf
def _changed(stream, number, word, share, state):
    bits = mixed(stream + (np.uint64(number) * np.uint64(64) + np.uint64(word) + ONE) * STEP)
    return mixed(bits) if number % WINDOW == 0 or _unit(bits) < share else state


@kernel
def fill(seed, purpose, first, ids, lengths, starts, words, bits, changes, symbols, shares, table, states, out):
    """Fill the items of records `first` and up.

    A word is a run of positions that change together. A profile has the first positions; later ones repeat its end.

    Args:
        first: the number of the first record.
        ids: int64[n], items with the same id are equal up to their length; int64[0]: a word changes by `changes`.
        lengths, starts: int32[n] and int64[n], the place of each item in `out`; length -1 is null.
        words: int64[positions], the number of the word of each position, below 32.
        bits: float64[words], log2 of how many different words there are.
        changes: float64[2 * words], how often a word changes from a record to the next, in the profile and after it.
        symbols: float64[2 * positions], how many different bytes there are, in the profile and after it.
        shares: float64[2], the share of words after the profile that never change; and 1.0 if these are all words of a
            repetition of the profile together, otherwise 0.0.
        table: uint8[512], 256 bytes of variable text, and 256 of constant text.
        states: uint64[2 * words], scratch.
        out: uint8[size].
    """
    stream, positions, back = stream_of(seed, purpose), len(words), len(words) // 4
    fixed = stream_of(purpose, 7)
    count, n = len(bits), len(lengths)
    warm = first if len(ids) else first - first % WINDOW
    for number in range(warm, first + n):
        i = number - first
        for part in range(2):
            for word in range(count):
                if len(ids):
                    key = np.uint64(ids[i]) * np.uint64(64) + np.uint64(32 * part + word)
                    states[part * count + word] = mixed(stream + (key + ONE) * STEP)
                else:
                    states[part * count + word] = _changed(
                        stream, number, 32 * part + word, changes[part * count + word], states[part * count + word]
                    )
        if i < 0 or lengths[i] <= 0:
            continue
        current, state = np.int64(-1), np.uint64(0)
        for at in range(lengths[i]):
            late = at >= positions
            tile = (at - positions) // (positions - back) if late else np.int64(0)
            place = back + (at - positions) % (positions - back) if late else at
            part = np.int64(late)
            word = words[place]
            run = (np.int64(late) + tile) * 64 + word
            if run != current:
                current = run
                state = states[part * count + word]
                if late:
                    state = mixed(state + np.uint64(tile) * STEP)
                    grain = tile if shares[1] else run
                    if _unit(mixed(fixed + np.uint64(grain) * STEP)) < shares[0]:
                        state = np.uint64(0)
                if bits[word] < MOST_BITS:
                    state = np.uint64(np.int64(_unit(state) * 2.0 ** bits[word]))
            if symbols[part * positions + place] < CONSTANT:
                drawn = mixed(fixed + np.uint64(at + 1) * STEP)
                out[starts[i] + at] = get_u8(table, 256 + np.int64(drawn >> np.uint64(56)))
            else:
                drawn = mixed(mixed(state + fixed) ^ np.uint64(at + 1) * STEP)
                out[starts[i] + at] = get_u8(table, np.int64(_unit(drawn) * symbols[part * positions + place]))
