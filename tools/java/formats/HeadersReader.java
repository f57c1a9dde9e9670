package kfbench;

import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Reads the headers of a columnar batch: first the metadata, then the payload. */
final class HeadersReader {
    static final int MOST_HEADERS = 1 << 24, HEX_TEMPLATE = 254, PLAIN = 255; // smaller forms: as many distinct values

    private final int n;
    private final Header[][] headers;
    private Position[] positions; // mode 1
    private long[] counts, keyLengths, valueLengths; // mode 0 and batches of one
    private long payloadBytes;

    /** A position of mode 1: a key, its form, and the numbers that the form has. */
    private static final class Position {
        private int keyLength, form, varying;
        private long bytes; // of its payload, with the key
        private long[] lengths, indexes;
        private boolean[] varies;
    }

    HeadersReader(ByteBuffer in, int n) {
        this.n = n;
        headers = new Header[n][];
        if (n == 1) {
            counts = new long[] {Wire.readUnsignedVarint(in)};
            readAlone(in, (int) checked(counts[0], in.remaining()));
            return;
        }
        switch (in.get()) {
            case 0 -> readByRecord(in);
            case 1 -> readByPosition(in);
            default -> throw Batch.refused("the mode of headers");
        }
    }

    private static long checked(long number, long most) {
        if (number < 1 || number > most) throw Batch.refused(number + " headers");
        return number;
    }

    private static int length(int value) {
        if (value < 0) throw Batch.refused("a length of " + value);
        return value;
    }

    private void readAlone(ByteBuffer in, int number) {
        keyLengths = new long[number];
        valueLengths = new long[number];
        for (int i = 0; i < number; i++) {
            keyLengths[i] = length(Wire.readUnsignedVarint(in));
            valueLengths[i] = length(Wire.readUnsignedVarint(in)) - 1L;
        }
        for (int i = 0; i < number; i++) payloadBytes += keyLengths[i] + Math.max(valueLengths[i], 0);
    }

    private void readByRecord(ByteBuffer in) {
        counts = ColumnReader.readShort(in, n);
        long number = 0;
        for (long count : counts) number += count;
        readAlone(in, (int) checked(number, Math.min(in.remaining(), MOST_HEADERS)));
    }

    private void readByPosition(ByteBuffer in) {
        int number = Wire.readUnsignedVarint(in);
        checked(number, Math.min(in.remaining(), MOST_HEADERS / n));
        positions = new Position[number];
        for (int i = 0; i < number; i++) payloadBytes += (positions[i] = readPosition(in)).bytes;
    }

    private Position readPosition(ByteBuffer in) {
        Position found = new Position();
        found.keyLength = length(Wire.readUnsignedVarint(in));
        found.form = in.get() & 0xFF;
        found.bytes = found.keyLength;
        switch (found.form) {
            case 0 -> throw Batch.refused("form 0");
            case PLAIN -> found.lengths = ColumnarBatch.readLengths(in, n);
            case HEX_TEMPLATE -> readMask(in, found);
            default -> {
                int d = found.form;
                found.lengths = readLengths(in, d);
                found.indexes = new long[n];
                Packed.read(in, n, 0, Packed.bitLength(d - 1), found.indexes);
                for (long index : found.indexes) if (index >= d) throw Batch.refused("index " + index + " of " + d);
            }
        }
        if (found.form == HEX_TEMPLATE) found.bytes += found.varies.length - found.varying + HexTemplate.digitBytes(n, found.varying);
        else for (long each : found.lengths) found.bytes += Math.max(each, 0);
        return found;
    }

    private static long[] readLengths(ByteBuffer in, int number) {
        long[] lengths = new long[number];
        for (int i = 0; i < number; i++) lengths[i] = length(Wire.readUnsignedVarint(in)) - 1L;
        return lengths;
    }

    private static void readMask(ByteBuffer in, Position found) {
        int length = Wire.readUnsignedVarint(in);
        if (length < 1 || length > 8L * in.remaining()) throw Batch.refused("a template of " + length);
        found.varies = new boolean[length];
        for (int at = 0; at < length; at++) {
            found.varies[at] = (in.get(in.position() + (at >> 3)) >> (at & 7) & 1) != 0;
            if (found.varies[at]) found.varying++;
        }
        if (found.varying == 0) throw Batch.refused("a mask without a bit");
        Packed.end(in, 8L * in.position() + length);
    }

    long payloadBytes() { return payloadBytes; }

    Header[] of(int i) { return headers[i]; }

    /** Make the headers of all records from exactly their payload. */
    void readPayload(ByteBuffer payload) {
        if (positions == null) {
            int at = 0;
            for (int i = 0; i < n; i++) {
                headers[i] = new Header[(int) counts[i]];
                for (int own = 0; own < headers[i].length; own++, at++)
                    headers[i][own] = new RecordHeader(Batch.slice(payload, (int) keyLengths[at]), Batch.slice(payload, (int) valueLengths[at]));
            }
            return;
        }
        for (int i = 0; i < n; i++) headers[i] = new Header[positions.length];
        for (int own = 0; own < positions.length; own++) readPayload(positions[own], own, payload);
    }

    private void readPayload(Position position, int own, ByteBuffer payload) {
        ByteBuffer key = Batch.slice(payload, position.keyLength);
        if (position.form == HEX_TEMPLATE) {
            readDigits(position, own, key, payload);
            return;
        }
        ByteBuffer[] values = new ByteBuffer[position.lengths.length];
        for (int i = 0; i < values.length; i++) values[i] = Batch.slice(payload, (int) position.lengths[i]);
        for (int i = 0; i < n; i++) {
            ByteBuffer value = values[position.indexes == null ? i : (int) position.indexes[i]];
            headers[i][own] = header(key, value == null ? null : value.duplicate());
        }
    }

    private void readDigits(Position position, int own, ByteBuffer key, ByteBuffer payload) {
        int length = position.varies.length, nibble = 0;
        byte[] template = new byte[length];
        for (int at = 0; at < length; at++) if (!position.varies[at]) template[at] = payload.get();
        ByteBuffer digits = Batch.slice(payload, (int) HexTemplate.digitBytes(n, position.varying));
        for (int i = 0; i < n; i++) {
            byte[] value = template.clone();
            for (int at = 0; at < length; at++) {
                if (!position.varies[at]) continue;
                int pair = digits.get(nibble >> 1);
                value[at] = HexTemplate.character((nibble++ & 1) == 0 ? pair >> 4 & 15 : pair & 15);
            }
            headers[i][own] = header(key, ByteBuffer.wrap(value));
        }
        if ((nibble & 1) != 0 && (digits.get(nibble >> 1) & 15) != 0) throw Batch.refused("the last odd nibble is not 0");
    }

    /** The key is decoded on first use, so each header has a view of its own. */
    private static Header header(ByteBuffer key, ByteBuffer value) { return new RecordHeader(key.duplicate(), value); }
}
