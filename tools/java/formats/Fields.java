package kfbench;

/**
 * Header fields that a writer may set. Null means: compute it from the records. An append time is also the maximum
 * timestamp, unless that is set too.
 */
record Fields(int codec, boolean transactional, boolean control, long producerId, short producerEpoch, int baseSequence,
        int leaderEpoch, Long appendTime, Long deleteHorizon, Long baseOffset, Long lastOffset, Long baseTimestamp,
        Long maxTimestamp) {
    /** Attributes bits 0 to 6, which all magics from 2 on share. An empty batch has no codec. */
    int sharedBits(boolean isEmpty) {
        return (isEmpty ? 0 : codec) | (appendTime == null ? 0 : Batch.APPEND_TIME) | (transactional ? Batch.TRANSACTIONAL : 0)
            | (control ? Batch.CONTROL : 0) | (deleteHorizon == null ? 0 : Batch.HORIZON);
    }

    long maxTimestamp(long recordsOwn) {
        return maxTimestamp != null ? maxTimestamp : appendTime != null ? appendTime : recordsOwn;
    }

    /** The v2 base timestamp. firstTimestamp: of the first record, or -1. */
    long baseTimestamp(long firstTimestamp) {
        return deleteHorizon != null ? deleteHorizon : baseTimestamp != null ? baseTimestamp : firstTimestamp;
    }
}
