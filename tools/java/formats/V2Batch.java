package kfbench;

import java.nio.ByteBuffer;

/** A batch of v2 in the code of v3, so that both are compared without Kafka's classes around one of them. */
final class V2Batch extends RowBatch {
    static final byte MAGIC = 2;

    V2Batch(ByteBuffer buffer) {
        super(buffer);
        if (buffer.limit() < V2Header.BYTES) throw refused("a header of " + buffer.limit() + " bytes");
        count = buffer.getInt(V2Header.COUNT_AT);
        recordsAt = V2Header.BYTES;
        if (count < 0) throw refused("count " + count);
    }

    @Override protected boolean hasRecordAttributes() { return true; }

    @Override int lastOffsetDelta() { return buffer.getInt(V2Header.LAST_OFFSET_DELTA_AT); }

    @Override long baseTimestamp() { return buffer.getLong(V2Header.BASE_TIMESTAMP_AT); }

    @Override long maxTimestamp() { return buffer.getLong(V2Header.MAX_TIMESTAMP_AT); }

    @Override long producerId() { return buffer.getLong(V2Header.PRODUCER_ID_AT); }

    @Override short producerEpoch() { return buffer.getShort(V2Header.PRODUCER_EPOCH_AT); }

    @Override int baseSequence() { return buffer.getInt(V2Header.BASE_SEQUENCE_AT); }
}
