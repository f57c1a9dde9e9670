package kfbench;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** A batch of v3 or v3-headers-first. Other features of magic 3 are refused. */
final class V3Batch extends RowBatch {
    static final byte MAGIC = 3;
    private static final int KNOWN_BITS = 0x7F | V3Header.NO_RECORD_ATTRIBUTES | V3Header.HEADERS_FIRST;

    private final int lastOffsetDelta;
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

    @Override protected boolean hasRecordAttributes() { return false; }

    @Override int lastOffsetDelta() { return lastOffsetDelta; }

    @Override long baseTimestamp() { return baseTimestamp; }

    @Override long maxTimestamp() { return maxTimestamp; }

    @Override long producerId() { return buffer.getLong(V3Header.PRODUCER_ID_AT); }

    @Override short producerEpoch() { return buffer.getShort(V3Header.PRODUCER_EPOCH_AT); }

    @Override int baseSequence() { return buffer.getInt(V3Header.BASE_SEQUENCE_AT); }

    @Override
    protected Records openWhole(Wire.Codec codec) {
        if (!headersFirst || count == 0) return super.openWhole(codec);
        return codec.id == 0 ? new HeadersFirst(section()) : new HeadersFirst(codec.decompress(section()));
    }

    @Override
    protected Records openTimes(Wire.Codec codec) { return headersFirst && count > 0 ? new Metadata(codec) : super.openTimes(codec); }

    private ByteBuffer metadata(InputStream in) {
        try (in) {
            return readFully(in, unsignedVarint(in));
        } catch (IOException e) {
            throw notDecompressed(e);
        }
    }

    /** Kafka has a reader of signed varints alone for streams. */
    private static int unsignedVarint(InputStream in) throws IOException {
        int value = Wire.readVarint(in);
        return length((value << 1) ^ (value >> 31));
    }

    /** Offsets and times of v3-headers-first. Behind the metadata, nothing is decompressed. Without a codec, its length is checked. */
    private final class Metadata extends Records {
        private final ByteBuffer in;
        private final boolean isPlain;
        private long left; // of the payload

        Metadata(Wire.Codec codec) {
            super(count);
            if (codec.id != 0) {
                in = metadata(codec.decompress(section()));
            } else {
                ByteBuffer section = section();
                in = slice(section, length(Wire.readUnsignedVarint(section)));
                left = section.remaining();
            }
            isPlain = codec.id == 0;
        }

        @Override
        protected Entry read(int index) {
            long timestamp = timestamp(Wire.readVarlong(in)), offset = baseOffset() + Wire.readVarint(in);
            long bytes = (long) Math.max(Wire.readVarint(in), 0) + Math.max(Wire.readVarint(in), 0);
            for (int number = length(Wire.readVarint(in)); number > 0; number--)
                bytes += (long) length(Wire.readVarint(in)) + Math.max(Wire.readVarint(in), 0);
            left -= bytes;
            return Entry.withoutPayload(offset, timestamp);
        }

        @Override protected boolean isAtEnd() { return !in.hasRemaining() && (!isPlain || left == 0); }
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
                throw notDecompressed(e);
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
}
