package kfbench;

import java.nio.ByteBuffer;

/**
 * The header of magic 3 after the fields of {@link Batch}:
 *
 * <pre>
 * 23 producer_id i64 | 31 producer_epoch i16 | 33 base_sequence i32 | 37 last_offset_delta varint, base_timestamp varlong,
 * max_timestamp_delta varlong, count i32
 * </pre>
 */
final class V3Header {
    static final int NO_RECORD_ATTRIBUTES = 1 << 7, HEADERS_FIRST = 1 << 10;
    static final int PRODUCER_ID_AT = 23, PRODUCER_EPOCH_AT = 31, BASE_SEQUENCE_AT = 33, VARINTS_AT = 37;
    private static final int MOST_BYTES = VARINTS_AT + 5 + 10 + 10 + 4;

    /** Leave room for the largest header. Return where the records begin. */
    static int reserve(Wire.Output out) {
        out.ensureRemaining(MOST_BYTES);
        out.position(out.position() + MOST_BYTES);
        return out.position();
    }

    /** Write the header so that it ends at `recordsAt`. Return the batch. latest: the largest timestamp of the records, or -1. */
    static ByteBuffer write(Wire.Output out, int recordsAt, int features, Fields fields, int count, long baseOffset, long lastOffset,
            long baseTimestamp, long latest) {
        int lastOffsetDelta = (int) ((fields.lastOffset() == null ? lastOffset : fields.lastOffset()) - baseOffset);
        long maxTimestampDelta = fields.maxTimestamp(latest) - baseTimestamp;
        int bytes = VARINTS_AT + Wire.sizeOfVarint(lastOffsetDelta) + Wire.sizeOfVarlong(baseTimestamp) + Wire.sizeOfVarlong(maxTimestampDelta) + 4;
        ByteBuffer batch = out.buffer().slice(recordsAt - bytes, bytes + out.position() - recordsAt);
        batch.putLong(PRODUCER_ID_AT, fields.producerId()).putShort(PRODUCER_EPOCH_AT, fields.producerEpoch());
        batch.putInt(BASE_SEQUENCE_AT, fields.baseSequence()).position(VARINTS_AT);
        Wire.writeVarint(lastOffsetDelta, batch);
        Wire.writeVarlong(baseTimestamp, batch);
        Wire.writeVarlong(maxTimestampDelta, batch);
        batch.putInt(count).position(0);
        Batch.seal(batch, baseOffset, V3Batch.MAGIC, features | fields.sharedBits(count == 0), fields);
        return batch;
    }

    private V3Header() { }
}
