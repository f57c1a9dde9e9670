package kfbench;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.utils.Utils;

/** Writes the headers of a columnar batch: their metadata to the batch, and their payload to a buffer of its own. */
final class HeadersWriter {
    private static final int MOST_DISTINCT = 32;

    private final Wire.Output out, payload;
    private final ColumnWriter columns;
    private final Header[][] headers;
    private final int n;

    HeadersWriter(Wire.Output out, Wire.Output payload, ColumnWriter columns, Header[][] headers, int n) {
        this.out = out;
        this.payload = payload;
        this.columns = columns;
        this.headers = headers;
        this.n = n;
    }

    void write() {
        if (n == 1) {
            uvarint(headers[0].length);
            for (Header header : headers[0]) writeAlone(Utils.utf8(header.key()), header.value());
        } else if (isByPosition()) {
            room(1).put((byte) 1);
            uvarint(headers[0].length);
            byte[][] values = new byte[n][];
            for (int position = 0; position < headers[0].length; position++) {
                for (int i = 0; i < n; i++) values[i] = headers[i][position].value();
                writePosition(Utils.utf8(headers[0][position].key()), values);
            }
        } else {
            room(1).put((byte) 0);
            writeByRecord();
        }
    }

    private boolean isByPosition() {
        for (int i = 1; i < n; i++) {
            if (headers[i].length != headers[0].length) return false;
            for (int position = 0; position < headers[0].length; position++)
                if (!headers[i][position].key().equals(headers[0][position].key())) return false;
        }
        return true;
    }

    private void writeAlone(byte[] key, byte[] value) {
        uvarint(key.length);
        uvarint(value == null ? 0 : value.length + 1);
        write(key);
        write(value);
    }

    private void writeByRecord() {
        long[] counts = new long[n];
        int m = 0;
        for (int i = 0; i < n; i++) m += (int) (counts[i] = headers[i].length);
        column(counts, n, ColumnWriter.Role.LENGTHS);
        long[] keyLengths = new long[m], valueLengths = new long[m];
        boolean hasNulls = false;
        int at = 0;
        for (int i = 0; i < n; i++) {
            for (Header header : headers[i]) {
                byte[] key = Utils.utf8(header.key()), value = header.value();
                if (m == 1) {
                    writeAlone(key, value);
                    return;
                }
                keyLengths[at] = key.length;
                valueLengths[at++] = value == null ? -1 : value.length;
                hasNulls |= value == null;
                write(key);
                write(value);
            }
        }
        column(keyLengths, m, ColumnWriter.Role.LENGTHS);
        room(1).put((byte) (hasNulls ? 1 : 0));
        lengths(valueLengths, m, hasNulls);
    }

    private void writePosition(byte[] key, byte[][] values) {
        long[] lengths = new long[n];
        boolean hasNulls = false;
        long bytes = 0;
        for (int i = 0; i < n; i++) {
            lengths[i] = values[i] == null ? -1 : values[i].length;
            hasNulls |= values[i] == null;
            bytes += Math.max(lengths[i], 0);
        }
        uvarint(key.length);
        write(key);
        int minimum = hasNulls ? toCodes(lengths, n) : 0;
        long plain = columns.plan(lengths, n, hasNulls ? ColumnWriter.Role.CODES : ColumnWriter.Role.LENGTHS) + bytes
            + (hasNulls ? Wire.sizeOfUnsignedVarint(minimum) : 0);
        HeaderDictionary dictionary = HeaderDictionary.of(values, MOST_DISTINCT);
        HexTemplate template = hasNulls ? null : HexTemplate.of(values);
        if (dictionary != null && dictionary.size() == 1) {
            room(1).put((byte) 0);
            uvarint(values[0] == null ? 0 : values[0].length + 1);
            write(values[0]);
        } else if (dictionary != null && dictionary.bytes(n) < plain && (template == null || dictionary.bytes(n) <= template.bytes(n))) {
            room(1).put((byte) 3);
            dictionary.write(n, out, payload);
        } else if (template != null && template.bytes(n) < plain) {
            room(1).put((byte) 4);
            template.write(values, out, payload);
        } else {
            room(1).put((byte) (hasNulls ? 2 : 1));
            if (hasNulls) uvarint(minimum);
            writePlanned();
            for (byte[] value : values) write(value);
        }
    }

    /** Write a column of lengths, -1 being null. */
    void lengths(long[] lengths, int count, boolean hasNulls) {
        if (hasNulls) uvarint(toCodes(lengths, count));
        column(lengths, count, hasNulls ? ColumnWriter.Role.CODES : ColumnWriter.Role.LENGTHS);
    }

    /** Replace lengths by codes: 0 is null, c is a length of minimum + c - 1. Return the minimum. */
    private static int toCodes(long[] lengths, int count) {
        long minimum = Arrays.stream(lengths, 0, count).filter(length -> length >= 0).min().orElse(0);
        for (int i = 0; i < count; i++) lengths[i] = lengths[i] < 0 ? 0 : lengths[i] - minimum + 1;
        return (int) minimum;
    }

    void column(long[] values, int count, ColumnWriter.Role role) {
        columns.plan(values, count, role);
        writePlanned();
    }

    private void writePlanned() { columns.write(room(columns.plannedBytes())); }

    private void write(byte[] item) {
        if (item != null) payload.write(item, 0, item.length);
    }

    void uvarint(int value) { Wire.writeUnsignedVarint(value, room(5)); }

    ByteBuffer room(int bytes) {
        out.ensureRemaining(bytes);
        return out.buffer();
    }
}
