package kfbench;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.CorruptRecordException;

/**
 * A batch of magic 2, 3 or 5 in a buffer, as DefaultRecordBatch is one of magic 2. It begins with:
 *
 * <pre>
 *  0 base_offset i64 | 8 length i32 | 12 partition_leader_epoch i32 | 16 magic i8 | 17 crc u32 | 21 attributes u16
 * </pre>
 */
abstract class Batch {
    static final int LENGTH_AT = 8, ENTRY_BYTES = 12, EPOCH_AT = 12, MAGIC_AT = 16, CRC_AT = 17, ATTRIBUTES_AT = 21, TAIL_AT = 23;
    static final int CODEC = 7, APPEND_TIME = 1 << 3, TRANSACTIONAL = 1 << 4, CONTROL = 1 << 5, HORIZON = 1 << 6;

    protected final ByteBuffer buffer; // from 0 to its limit
    protected final int attributes;

    protected Batch(ByteBuffer buffer) {
        this.buffer = buffer;
        attributes = buffer.getShort(ATTRIBUTES_AT) & 0xFFFF;
    }

    static Batch of(ByteBuffer buffer) {
        try {
            return switch (buffer.get(MAGIC_AT)) {
                case V2Batch.MAGIC -> new V2Batch(buffer);
                case V3Batch.MAGIC -> new V3Batch(buffer);
                case ColumnarBatch.MAGIC -> new ColumnarBatch(buffer);
                case ColumnarBatch.OLDER_MAGIC -> throw new InvalidRecordException("magic 4 is columnar's layout before 2026-11-29: encode the records again");
                default -> throw new InvalidRecordException("magic " + buffer.get(MAGIC_AT));
            };
        } catch (BufferUnderflowException | IndexOutOfBoundsException | IllegalArgumentException e) {
            throw endsEarly(e);
        }
    }

    /** The batches of a log. Refuses an incomplete last one. */
    static List<Batch> all(ByteBuffer log) {
        List<Batch> found = new ArrayList<>();
        while (log.hasRemaining()) {
            long bytes = log.remaining() < TAIL_AT ? Long.MAX_VALUE : (long) ENTRY_BYTES + log.getInt(log.position() + LENGTH_AT);
            if (bytes < TAIL_AT || bytes > log.remaining()) throw new CorruptRecordException("a batch of " + bytes + " bytes");
            found.add(of(log.slice(log.position(), (int) bytes)));
            log.position(log.position() + (int) bytes);
        }
        return found;
    }

    /** Records with key, value and headers. */
    final Records records(Wire.Codec codec) {
        try {
            return openWhole(codec);
        } catch (BufferUnderflowException | IndexOutOfBoundsException | IllegalArgumentException e) {
            throw endsEarly(e);
        }
    }

    /** Records with offset and timestamp only. */
    final Records skim(Wire.Codec codec) {
        try {
            return openTimes(codec);
        } catch (BufferUnderflowException | IndexOutOfBoundsException | IllegalArgumentException e) {
            throw endsEarly(e);
        }
    }

    /**
     * What LogValidator checks in the records of a producer: that offsets count from the first, times are inside the bounds,
     * and nothing follows. Return the largest timestamp. Topics are not compacted, so keys are not checked.
     */
    final long checkRecords(Wire.Codec codec, long earliest, long latest) {
        try {
            return largestChecked(codec, earliest, latest);
        } catch (BufferUnderflowException | IndexOutOfBoundsException | IllegalArgumentException e) {
            throw endsEarly(e);
        }
    }

    protected abstract Records openWhole(Wire.Codec codec);

    protected abstract Records openTimes(Wire.Codec codec);

    protected abstract long largestChecked(Wire.Codec codec, long earliest, long latest);

    abstract int count();

    abstract int lastOffsetDelta();

    abstract long baseTimestamp();

    abstract long maxTimestamp();

    abstract long producerId();

    abstract short producerEpoch();

    abstract int baseSequence();

    final void ensureValid() {
        if (Integer.toUnsignedLong(buffer.getInt(CRC_AT)) != checksum()) throw new CorruptRecordException("the CRC differs");
    }

    private long checksum() { return Wire.crc32c(buffer, ATTRIBUTES_AT, buffer.limit() - ATTRIBUTES_AT); }

    final int sizeInBytes() { return buffer.limit(); }

    final int codec() { return attributes & CODEC; }

    final boolean has(int bit) { return (attributes & bit) != 0; }

    final long baseOffset() { return buffer.getLong(0); }

    final long lastOffset() { return baseOffset() + lastOffsetDelta(); }

    final int leaderEpoch() { return buffer.getInt(EPOCH_AT); }

    final void setLastOffset(long offset) { buffer.putLong(0, offset - lastOffsetDelta()); }

    final void setLeaderEpoch(int epoch) { buffer.putInt(EPOCH_AT, epoch); }

    /** Write length, epoch, magic, attributes and then the CRC of a batch from 0 to the buffer's limit. */
    static void seal(ByteBuffer batch, long baseOffset, int magic, int attributes, Fields fields) {
        batch.putLong(0, baseOffset).putInt(LENGTH_AT, batch.limit() - ENTRY_BYTES).putInt(EPOCH_AT, fields.leaderEpoch());
        batch.put(MAGIC_AT, (byte) magic).putShort(ATTRIBUTES_AT, (short) attributes);
        batch.putInt(CRC_AT, (int) Wire.crc32c(batch, ATTRIBUTES_AT, batch.limit() - ATTRIBUTES_AT));
    }

    static InvalidRecordException endsEarly(RuntimeException e) { return new InvalidRecordException("the batch ends early", e); }

    /** As DefaultRecordBatch reports a fault of a codec's stream. */
    static KafkaException notDecompressed(IOException e) { return new KafkaException("Failed to decompress record stream", e); }

    static InvalidRecordException refused(String reason) { return new InvalidRecordException(reason); }

    /** The time of a record if it is in bounds, as LogValidator checks it. -1 is always in bounds. */
    static long checkedTime(long timestamp, long earliest, long latest) {
        if (timestamp != -1 && (timestamp < earliest || timestamp > latest)) throw refused("timestamp " + timestamp + " is out of range");
        return timestamp;
    }

    /** An iterator of `count` records. Underflows are refusals. At the end it checks that nothing is left, and closes. */
    abstract static class Records implements Iterator<Entry>, Closeable {
        private final int count;
        private int read;

        protected Records(int count) { this.count = count; }

        protected abstract Entry read(int index) throws IOException;

        protected abstract boolean isAtEnd() throws IOException;

        @Override
        public boolean hasNext() { return read < count; }

        @Override
        public Entry next() {
            if (read == count) throw new NoSuchElementException();
            try {
                Entry entry = read(read++);
                if (read == count && !isAtEnd()) throw refused("bytes after the last record");
                return entry;
            } catch (BufferUnderflowException | IndexOutOfBoundsException | IllegalArgumentException e) {
                throw endsEarly(e);
            } catch (IOException e) {
                throw notDecompressed(e);
            }
        }

        @Override
        public void close() { }
    }

    /** Exactly `bytes` bytes of a stream. It allocates as the bytes arrive, so a large number costs nothing. */
    static ByteBuffer readFully(InputStream in, int bytes) throws IOException {
        byte[] found = bytes <= 1 << 16 ? new byte[Math.max(bytes, 0)] : in.readNBytes(bytes);
        if (bytes < 0 || (bytes <= 1 << 16 ? in.readNBytes(found, 0, bytes) : found.length) != bytes) throw refused("the stream ends early");
        return ByteBuffer.wrap(found);
    }

    /** The next `bytes` bytes, or null for a negative number. */
    static ByteBuffer slice(ByteBuffer in, int bytes) {
        if (bytes < 0) return null;
        ByteBuffer found = in.slice(in.position(), bytes);
        in.position(in.position() + bytes);
        return found;
    }
}
