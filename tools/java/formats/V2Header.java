package kfbench;

import java.nio.ByteBuffer;

/**
 * The header of magic 2 after the fields of {@link Batch}:
 *
 * <pre>
 * 23 last_offset_delta i32 | 27 base_timestamp i64 | 35 max_timestamp i64 | 43 producer_id i64 | 51 producer_epoch i16
 * 53 base_sequence i32 | 57 count i32
 * </pre>
 */
final class V2Header {
    static final int LAST_OFFSET_DELTA_AT = 23, BASE_TIMESTAMP_AT = 27, MAX_TIMESTAMP_AT = 35, PRODUCER_ID_AT = 43, PRODUCER_EPOCH_AT = 51,
        BASE_SEQUENCE_AT = 53, COUNT_AT = 57, BYTES = 61;

    /** Leave room for the header. Return where the records begin. */
    static int reserve(Wire.Output out) {
        out.ensureRemaining(BYTES);
        out.position(out.position() + BYTES);
        return out.position();
    }

    /** Write the header before `recordsAt`. Return the batch. latest: the largest timestamp of the records, or -1. */
    static ByteBuffer write(Wire.Output out, int recordsAt, Fields fields, int count, long baseOffset, long lastOffset, long baseTimestamp,
            long latest) {
        ByteBuffer batch = out.buffer().slice(recordsAt - BYTES, BYTES + out.position() - recordsAt);
        batch.putInt(LAST_OFFSET_DELTA_AT, (int) ((fields.lastOffset() == null ? lastOffset : fields.lastOffset()) - baseOffset));
        batch.putLong(BASE_TIMESTAMP_AT, baseTimestamp).putLong(MAX_TIMESTAMP_AT, fields.maxTimestamp(latest));
        batch.putLong(PRODUCER_ID_AT, fields.producerId()).putShort(PRODUCER_EPOCH_AT, fields.producerEpoch());
        batch.putInt(BASE_SEQUENCE_AT, fields.baseSequence()).putInt(COUNT_AT, count);
        Batch.seal(batch, baseOffset, V2Batch.MAGIC, fields.sharedBits(count == 0), fields);
        return batch;
    }

    private V2Header() { }
}
