package kfbench;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** A batch of v2 or v3: each record has its length, its deltas, key, value and headers, one after another. */
abstract class RowBatch extends Batch {
    /** Set by the constructors of subclasses, which read the header. */
    protected int count, recordsAt;

    protected RowBatch(ByteBuffer buffer) { super(buffer); }

    /** True if a byte of attributes follows the length of each record, as in v2. It is not checked. */
    protected abstract boolean hasRecordAttributes();

    @Override final int count() { return count; }

    protected final ByteBuffer section() { return buffer.slice(recordsAt, buffer.limit() - recordsAt); }

    protected final long timestamp(long delta) { return has(APPEND_TIME) ? maxTimestamp() : baseTimestamp() + delta; }

    @Override
    protected Records openWhole(Wire.Codec codec) {
        return count == 0 || codec.id == 0 ? new Inside(section()) : new Streamed(codec.decompress(section()));
    }

    @Override
    protected Records openTimes(Wire.Codec codec) {
        return count == 0 || codec.id == 0 ? new Inside(section()) : new Skipping(codec.decompress(section()));
    }

    @Override
    protected long largestChecked(Wire.Codec codec, long earliest, long latest) {
        long largest = -1;
        try (Records records = openTimes(codec)) {
            for (int i = 0; records.hasNext(); i++) {
                Entry entry = records.next();
                if (entry.offset() != baseOffset() + i) throw refused("offset " + entry.offset() + " of record " + i);
                largest = Math.max(largest, checkedTime(entry.timestamp(), earliest, latest));
            }
        }
        return largest;
    }

    static int length(int value) {
        if (value < 0) throw refused("a length of " + value);
        return value;
    }

    protected final Entry entry(int offsetDelta, long timestampDelta, ByteBuffer key, ByteBuffer value, Header[] headers) {
        if (has(CONTROL)) Control.check(key, value);
        return new Entry(baseOffset() + offsetDelta, timestamp(timestampDelta), key, value, headers);
    }

    /** Records in a buffer, as slices of it. */
    private class Inside extends Records {
        private final ByteBuffer in;

        Inside(ByteBuffer in) {
            super(count);
            this.in = in;
        }

        @Override
        protected Entry read(int index) throws IOException {
            int bytes = Wire.readVarint(in), end = in.position() + length(bytes);
            Entry entry = parse(in);
            if (in.position() != end) throw refused("record " + index + " has not the " + bytes + " bytes that it says");
            return entry;
        }

        protected final Entry parse(ByteBuffer record) {
            if (hasRecordAttributes()) record.get();
            long timestampDelta = Wire.readVarlong(record);
            int offsetDelta = Wire.readVarint(record);
            ByteBuffer key = slice(record, Wire.readVarint(record)), value = slice(record, Wire.readVarint(record));
            int number = length(Wire.readVarint(record));
            if (number > record.remaining()) throw refused(number + " headers");
            Header[] headers = number == 0 ? Entry.NO_HEADERS : new Header[number];
            for (int i = 0; i < number; i++)
                headers[i] = new RecordHeader(slice(record, length(Wire.readVarint(record))), slice(record, Wire.readVarint(record)));
            return entry(offsetDelta, timestampDelta, key, value, headers);
        }

        @Override protected boolean isAtEnd() throws IOException { return !in.hasRemaining(); }
    }

    /** Records from a codec, each in an array of its own. */
    private final class Streamed extends Inside {
        private final InputStream stream;

        Streamed(InputStream stream) {
            super(null);
            this.stream = stream;
        }

        @Override
        protected Entry read(int index) throws IOException {
            ByteBuffer record = readFully(stream, length(Wire.readVarint(stream)));
            Entry entry = parse(record);
            if (record.hasRemaining()) throw refused("record " + index + " has bytes after its headers");
            return entry;
        }

        @Override protected boolean isAtEnd() throws IOException { return stream.read() == -1; }

        @Override
        public void close() { closed(stream); }
    }

    /** Offsets and times from a codec. The rest is decompressed and skipped, as PartialDefaultRecord does. */
    private final class Skipping extends Records {
        private final InputStream stream;

        Skipping(InputStream stream) {
            super(count);
            this.stream = stream;
        }

        @Override
        protected Entry read(int index) throws IOException {
            length(Wire.readVarint(stream));
            if (hasRecordAttributes()) skip(1);
            long timestampDelta = Wire.readVarlong(stream);
            int offsetDelta = Wire.readVarint(stream);
            skip(Wire.readVarint(stream));
            skip(Wire.readVarint(stream));
            for (int left = length(Wire.readVarint(stream)); left > 0; left--) {
                skip(length(Wire.readVarint(stream)));
                skip(Wire.readVarint(stream));
            }
            return Entry.withoutPayload(baseOffset() + offsetDelta, timestamp(timestampDelta));
        }

        private void skip(int bytes) throws IOException {
            if (bytes > 0) stream.skipNBytes(bytes);
        }

        @Override protected boolean isAtEnd() throws IOException { return stream.read() == -1; }

        @Override
        public void close() { closed(stream); }
    }

    protected static void closed(InputStream stream) {
        try {
            if (stream != null) stream.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
