package kfbench;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** A batch of v3 or v3-headers-first. Other features of magic 3 are refused. */
final class V3Batch extends Batch {
    static final byte MAGIC = 3;
    private static final int KNOWN_BITS = 0x7F | V3Header.NO_RECORD_ATTRIBUTES | V3Header.HEADERS_FIRST;

    private final int lastOffsetDelta, count, recordsAt;
    private final long baseTimestamp, maxTimestamp;
    private final boolean headersFirst = has(V3Header.HEADERS_FIRST);

    V3Batch(ByteBuffer buffer) {
        super(buffer);
        if (!has(V3Header.NO_RECORD_ATTRIBUTES) || (attributes & ~KNOWN_BITS) != 0) throw refused("attributes " + attributes);
        ByteBuffer in = buffer.duplicate().position(V3Header.VARINTS_AT);
        lastOffsetDelta = Wire.readVarint(in);
        baseTimestamp = Wire.readVarlong(in);
        maxTimestamp = baseTimestamp + Wire.readVarlong(in);
        count = in.getInt();
        recordsAt = in.position();
        if (count < 0) throw refused("count " + count);
    }

    @Override int count() { return count; }

    @Override int lastOffsetDelta() { return lastOffsetDelta; }

    @Override long baseTimestamp() { return baseTimestamp; }

    @Override long maxTimestamp() { return maxTimestamp; }

    @Override long producerId() { return buffer.getLong(V3Header.PRODUCER_ID_AT); }

    @Override short producerEpoch() { return buffer.getShort(V3Header.PRODUCER_EPOCH_AT); }

    @Override int baseSequence() { return buffer.getInt(V3Header.BASE_SEQUENCE_AT); }

    private ByteBuffer section() { return buffer.slice(recordsAt, buffer.limit() - recordsAt); }

    private long timestamp(long delta) { return has(APPEND_TIME) ? maxTimestamp : baseTimestamp + delta; }

    @Override
    Records records(Wire.Codec codec) {
        if (count == 0) return new Inside(ByteBuffer.allocate(0));
        if (codec.id == 0) return headersFirst ? new HeadersFirst(section()) : new Inside(section());
        return headersFirst ? new HeadersFirst(codec.decompress(section())) : new Streamed(codec.decompress(section()));
    }

    @Override
    Records skim(Wire.Codec codec) {
        if (count == 0) return new Inside(ByteBuffer.allocate(0));
        if (headersFirst) return new Metadata(metadata(codec));
        return codec.id == 0 ? new Inside(section()) : new Skipping(codec.decompress(section()));
    }

    @Override
    long checkRecords(Wire.Codec codec, boolean isCompacted, long earliest, long latest) {
        long largest = -1;
        try (Records records = skim(codec)) {
            for (int i = 0; records.hasNext(); i++) {
                Entry entry = records.next();
                if (entry.offset() != baseOffset() + i) throw refused("offset " + entry.offset() + " of record " + i);
                largest = Math.max(largest, checkedTime(entry.timestamp(), earliest, latest));
                if (isCompacted && ((Lengths) records).keyLength() < 0) throw refused("record " + i + " has no key");
            }
        }
        return largest;
    }

    /** A reader that knows the length of the key of its current record. */
    interface Lengths {
        int keyLength();
    }

    private ByteBuffer metadata(Wire.Codec codec) {
        if (codec.id == 0) {
            ByteBuffer in = section();
            return slice(in, length(Wire.readUnsignedVarint(in)));
        }
        try (InputStream in = codec.decompress(section())) {
            return readFully(in, unsignedVarint(in));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Kafka has a reader of signed varints alone for streams. */
    private static int unsignedVarint(InputStream in) throws IOException {
        int value = Wire.readVarint(in);
        return length((value << 1) ^ (value >> 31));
    }

    private static int length(int value) {
        if (value < 0) throw refused("a length of " + value);
        return value;
    }

    private Entry entry(int offsetDelta, long timestampDelta, ByteBuffer key, ByteBuffer value, Header[] headers) {
        if (has(CONTROL)) Control.check(key, value);
        return new Entry(baseOffset() + offsetDelta, timestamp(timestampDelta), key, value, headers);
    }

    /** Records of v3 in a buffer, as slices of it. */
    private class Inside extends Records implements Lengths {
        private final ByteBuffer in;
        private int keyLength;

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
            long timestampDelta = Wire.readVarlong(record);
            int offsetDelta = Wire.readVarint(record);
            keyLength = Wire.readVarint(record);
            ByteBuffer key = slice(record, keyLength), value = slice(record, Wire.readVarint(record));
            int number = length(Wire.readVarint(record));
            if (number > record.remaining()) throw refused(number + " headers");
            Header[] headers = number == 0 ? Entry.NO_HEADERS : new Header[number];
            for (int i = 0; i < number; i++)
                headers[i] = new RecordHeader(slice(record, length(Wire.readVarint(record))), slice(record, Wire.readVarint(record)));
            return entry(offsetDelta, timestampDelta, key, value, headers);
        }

        @Override public int keyLength() { return keyLength; }

        @Override protected boolean isAtEnd() throws IOException { return !in.hasRemaining(); }
    }

    /** Records of v3 from a codec, each in an array of its own. */
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

    /** Offsets and times of v3 from a codec. The rest is decompressed and skipped, as PartialDefaultRecord does. */
    private final class Skipping extends Records implements Lengths {
        private final InputStream stream;
        private int keyLength;

        Skipping(InputStream stream) {
            super(count);
            this.stream = stream;
        }

        @Override
        protected Entry read(int index) throws IOException {
            length(Wire.readVarint(stream));
            long timestampDelta = Wire.readVarlong(stream);
            int offsetDelta = Wire.readVarint(stream);
            skip(keyLength = Wire.readVarint(stream));
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

        @Override public int keyLength() { return keyLength; }

        @Override protected boolean isAtEnd() throws IOException { return stream.read() == -1; }

        @Override
        public void close() { closed(stream); }
    }

    /** Offsets and times of v3-headers-first. Nothing behind the metadata is decompressed. */
    private final class Metadata extends Records implements Lengths {
        private final ByteBuffer in;
        private int keyLength;

        Metadata(ByteBuffer in) {
            super(count);
            this.in = in;
        }

        @Override
        protected Entry read(int index) {
            long timestamp = timestamp(Wire.readVarlong(in)), offset = baseOffset() + Wire.readVarint(in);
            keyLength = Wire.readVarint(in);
            Wire.readVarint(in);
            for (int left = length(Wire.readVarint(in)); left > 0; left--) {
                length(Wire.readVarint(in));
                Wire.readVarint(in);
            }
            return Entry.withoutPayload(offset, timestamp);
        }

        @Override public int keyLength() { return keyLength; }

        @Override protected boolean isAtEnd() { return !in.hasRemaining(); }
    }

    /** Records of v3-headers-first: slices of the buffer, or of one array per record that comes from a codec. */
    private final class HeadersFirst extends Records {
        private final ByteBuffer metadata, payload;
        private final InputStream stream;
        private int[] lengths = new int[2];

        HeadersFirst(ByteBuffer in) {
            super(count);
            metadata = slice(in, length(Wire.readUnsignedVarint(in)));
            payload = in;
            stream = null;
        }

        HeadersFirst(InputStream in) {
            super(count);
            stream = in;
            payload = null;
            try {
                metadata = readFully(in, unsignedVarint(in));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        protected Entry read(int index) throws IOException {
            long timestampDelta = Wire.readVarlong(metadata);
            int offsetDelta = Wire.readVarint(metadata), keyLength = Wire.readVarint(metadata), valueLength = Wire.readVarint(metadata);
            int number = length(Wire.readVarint(metadata));
            if (number > metadata.remaining()) throw refused(number + " headers");
            if (lengths.length < 2 * number) lengths = new int[4 * number];
            long bytes = (long) Math.max(keyLength, 0) + Math.max(valueLength, 0);
            for (int i = 0; i < number; i++) {
                bytes += lengths[2 * i] = length(Wire.readVarint(metadata));
                bytes += Math.max(lengths[2 * i + 1] = Wire.readVarint(metadata), 0);
            }
            ByteBuffer in = payload != null ? payload : readFully(stream, Math.toIntExact(bytes));
            ByteBuffer key = slice(in, keyLength), value = slice(in, valueLength);
            Header[] headers = number == 0 ? Entry.NO_HEADERS : new Header[number];
            for (int i = 0; i < number; i++) headers[i] = new RecordHeader(slice(in, lengths[2 * i]), slice(in, lengths[2 * i + 1]));
            return entry(offsetDelta, timestampDelta, key, value, headers);
        }

        @Override
        protected boolean isAtEnd() throws IOException {
            return !metadata.hasRemaining() && (stream == null ? !payload.hasRemaining() : stream.read() == -1);
        }

        @Override
        public void close() { closed(stream); }
    }

    private static void closed(InputStream stream) {
        try {
            if (stream != null) stream.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
