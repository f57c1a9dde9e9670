package kfbench;

import java.io.IOException;
import java.io.InputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;

/** A columnar batch: docs/columnar.md. Columns are read when records are wanted, and only those that are. */
final class ColumnarBatch extends Batch {
    static final byte MAGIC = 5, OLDER_MAGIC = 4;
    static final int FIXED_BYTES = 29, MOST_RECORDS = 1 << 24, MOST_PAYLOAD = 1 << 28;
    static final int PRODUCER = 1 << 7, AGES = 1 << 8, OFFSETS = 1 << 9, KEYS = 1 << 10, VALUES = 1 << 11, HEADERS = 1 << 12,
        BASE_TIMESTAMP = 1 << 13, ANCHOR = 1 << 14, WIDE_MAX_TIMESTAMP = 1 << 15;
    private static final int NEEDS_RECORDS = AGES | KEYS | VALUES | HEADERS;

    private final int count, lastOffsetDelta, columnsAt;
    private final long horizon, baseTimestamp, anchor, wideMaxTimestamp;

    ColumnarBatch(ByteBuffer buffer) {
        super(buffer);
        ByteBuffer in = buffer.duplicate().position(FIXED_BYTES + (has(PRODUCER) ? 14 : 0));
        if ((attributes & CODEC) > 5) throw refused("codec " + (attributes & CODEC));
        count = length(Wire.readUnsignedVarint(in));
        lastOffsetDelta = has(OFFSETS) ? Wire.readUnsignedVarint(in) : count - 1;
        horizon = has(HORIZON) ? in.getLong() : -1;
        baseTimestamp = has(BASE_TIMESTAMP) ? in.getLong() : -1;
        anchor = has(ANCHOR) ? in.getLong() : -1;
        wideMaxTimestamp = has(WIDE_MAX_TIMESTAMP) ? in.getLong() : -1;
        columnsAt = in.position();
        if (has(HORIZON) && has(BASE_TIMESTAMP)) throw refused("a base timestamp and a delete horizon");
        if (count > MOST_RECORDS) throw refused(count + " records");
        if (count == 0 && ((attributes & NEEDS_RECORDS) != 0 || !has(OFFSETS) || in.hasRemaining())) throw refused("an empty batch with columns");
    }

    @Override int count() { return count; }

    @Override int lastOffsetDelta() { return lastOffsetDelta; }

    @Override
    long maxTimestamp() {
        return has(WIDE_MAX_TIMESTAMP) ? wideMaxTimestamp : (long) buffer.getShort(TAIL_AT) << 32 | Integer.toUnsignedLong(buffer.getInt(TAIL_AT + 2));
    }

    /** The default needs the first record. */
    @Override
    long baseTimestamp() {
        return has(HORIZON) ? horizon : has(BASE_TIMESTAMP) ? baseTimestamp : count == 0 ? -1 : firstTime();
    }

    private long firstTime() {
        try {
            return new Columns().createTime(0);
        } catch (BufferUnderflowException | IndexOutOfBoundsException | IllegalArgumentException e) {
            throw endsEarly(e);
        }
    }

    @Override long producerId() { return has(PRODUCER) ? buffer.getLong(FIXED_BYTES) : -1; }

    @Override short producerEpoch() { return has(PRODUCER) ? buffer.getShort(FIXED_BYTES + 8) : -1; }

    @Override int baseSequence() { return has(PRODUCER) ? buffer.getInt(FIXED_BYTES + 10) : -1; }

    private static int length(long value) {
        if (value < 0 || value > Integer.MAX_VALUE) throw refused("a length of " + value);
        return (int) value;
    }

    @Override protected Records openTimes(Wire.Codec codec) { return new Skim(new Columns()); }

    @Override
    protected Records openWhole(Wire.Codec codec) {
        if (count == 0) return new Skim(new Columns());
        Columns columns = new Columns();
        long[] keys = columns.lengths(KEYS), values = columns.lengths(VALUES);
        HeadersReader headers = has(HEADERS) ? new HeadersReader(columns.in, count) : null;
        long keyBytes = sum(keys), rowBytes = keyBytes + sum(values), bytes = rowBytes + (headers == null ? 0 : headers.payloadBytes());
        if (bytes > MOST_PAYLOAD) throw refused("a payload of " + bytes + " bytes");
        ByteBuffer payload = payload(columns.in, (int) bytes, codec);
        if (headers != null) headers.readPayload(payload.slice((int) rowBytes, (int) (bytes - rowBytes)));
        return new Full(columns, keys, values, headers, payload, (int) keyBytes);
    }

    private static long sum(long[] lengths) {
        long bytes = 0;
        if (lengths != null) for (long each : lengths) bytes += Math.max(each, 0);
        return bytes;
    }

    private ByteBuffer payload(ByteBuffer in, int bytes, Wire.Codec codec) {
        if (codec.id == 0 || !in.hasRemaining()) {
            if (in.remaining() != bytes) throw refused("a payload of " + in.remaining() + " bytes, not " + bytes);
            return in.slice();
        }
        try (InputStream stream = codec.decompress(in.slice())) {
            ByteBuffer payload = readFully(stream, bytes);
            if (stream.read() != -1) throw refused("the payload has more than " + bytes + " bytes");
            return payload;
        } catch (IOException e) {
            throw notDecompressed(e);
        }
    }

    /** Nothing is decompressed. Without a codec, the lengths are checked against the payload. */
    @Override
    protected long largestChecked(Wire.Codec codec, long earliest, long latest) {
        Columns columns = new Columns();
        long largest = -1;
        for (int i = 0; i < count; i++) {
            if (columns.offsets != null && columns.offsets[i] != i) throw refused("offset " + columns.offset(i) + " of record " + i);
            largest = Math.max(largest, checkedTime(columns.timestamp(i), earliest, latest));
        }
        long bytes = sum(columns.lengths(KEYS)) + sum(columns.lengths(VALUES));
        if (has(HEADERS)) bytes += new HeadersReader(columns.in, count).payloadBytes();
        if (codec.id == 0 && bytes != columns.in.remaining()) throw refused("a payload of " + columns.in.remaining() + " bytes, not " + bytes);
        return largest;
    }

    /** The columns of ages and offsets, and the place of those that follow. */
    private final class Columns {
        private final ByteBuffer in = buffer.duplicate().position(columnsAt);
        private final long from = has(ANCHOR) ? anchor : maxTimestamp(); // the time from which ages count
        private final long[] ages = has(AGES) ? numbers() : null, offsets = has(OFFSETS) && count > 0 ? numbers() : null;

        Columns() {
            if (offsets != null) for (long delta : offsets) if (delta != (int) delta) throw refused("offset delta " + delta);
        }

        private long[] numbers() {
            return count > 1 ? ColumnReader.read(in, count) : new long[] {Wire.readVarlong(in)};
        }

        /** The lengths of keys or values, -1 for a null, or null if all are null. */
        long[] lengths(int bit) {
            if (!has(bit)) return null;
            return count > 1 ? readLengths(in, count) : new long[] {length(Wire.readUnsignedVarint(in)) - 1L};
        }

        long createTime(int i) {
            if (has(APPEND_TIME) && !has(ANCHOR)) return -1;
            return ages == null ? from : from - ages[i];
        }

        long timestamp(int i) { return has(APPEND_TIME) ? maxTimestamp() : createTime(i); }

        long offset(int i) { return baseOffset() + (offsets == null ? i : offsets[i]); }
    }

    /** A column of n ≥ 2 lengths, stored as codes: 0 is null, c is a length of c - 1. A null is -1. */
    static long[] readLengths(ByteBuffer in, int n) {
        long[] lengths = ColumnReader.readShort(in, n);
        for (int i = 0; i < n; i++) lengths[i]--;
        return lengths;
    }

    private final class Skim extends Records {
        private final Columns columns;

        Skim(Columns columns) {
            super(count);
            this.columns = columns;
        }

        @Override protected Entry read(int i) { return Entry.withoutPayload(columns.offset(i), columns.timestamp(i)); }

        @Override protected boolean isAtEnd() { return true; }
    }

    private final class Full extends Records {
        private final Columns columns;
        private final long[] keyLengths, valueLengths;
        private final HeadersReader headers;
        private final ByteBuffer keys, values;

        Full(Columns columns, long[] keyLengths, long[] valueLengths, HeadersReader headers, ByteBuffer payload, int keyBytes) {
            super(count);
            this.columns = columns;
            this.keyLengths = keyLengths;
            this.valueLengths = valueLengths;
            this.headers = headers;
            keys = payload;
            values = payload.duplicate().position(keyBytes);
        }

        @Override
        protected Entry read(int i) {
            ByteBuffer key = keyLengths == null ? null : slice(keys, (int) keyLengths[i]);
            ByteBuffer value = valueLengths == null ? null : slice(values, (int) valueLengths[i]);
            if (has(CONTROL)) Control.check(key, value);
            Header[] own = headers == null ? Entry.NO_HEADERS : headers.of(i);
            return new Entry(columns.offset(i), columns.timestamp(i), key, value, own);
        }

        @Override protected boolean isAtEnd() { return true; }
    }
}
