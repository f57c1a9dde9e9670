package kfbench;

/**
 * What LogValidator does to a batch of v2 whose codec is the topic's: check it, and assign offsets in place. Topics have create time.
 *
 * <p>A maximum timestamp other than the records' own is refused. For v2, LogValidator replaces it.
 */
final class Validation {
    /** Return the largest timestamp. Times may be at most `before` ms earlier than `now`, and `after` ms later. */
    static long validate(Batch batch, Wire.Codec codec, long now, long before, long after, long firstOffset, int leaderEpoch) {
        int count = batch.count();
        if (count <= 0 || batch.lastOffsetDelta() != count - 1) throw Batch.refused("the offset range and count " + count);
        if (batch.has(Batch.CONTROL)) throw Batch.refused("clients may not write control records");
        if (batch.has(Batch.APPEND_TIME)) throw Batch.refused("a producer may not set the append time");
        if (batch.producerId() > -1 && batch.baseSequence() < 0) throw Batch.refused("sequence " + batch.baseSequence());
        long earliest = now - before, latest = after > Long.MAX_VALUE - now ? Long.MAX_VALUE : now + after;
        long largest = batch.checkRecords(codec, earliest, latest);
        if (largest != batch.maxTimestamp()) throw Batch.refused("maximum timestamp " + batch.maxTimestamp() + ", not " + largest);
        batch.setLastOffset(firstOffset + count - 1);
        batch.setLeaderEpoch(leaderEpoch);
        return largest;
    }

    private Validation() { }
}
