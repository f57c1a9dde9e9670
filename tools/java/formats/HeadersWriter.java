package kfbench;

import java.nio.ByteBuffer;
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
        for (int i = 0; i < n; i++) counts[i] = headers[i].length;
        column(counts, n, false);
        for (int i = 0; i < n; i++) for (Header header : headers[i]) writeAlone(Utils.utf8(header.key()), header.value());
    }

    private void writePosition(byte[] key, byte[][] values) {
        long[] codes = new long[n];
        boolean hasNulls = false;
        long bytes = 0;
        for (int i = 0; i < n; i++) {
            codes[i] = values[i] == null ? 0 : values[i].length + 1;
            hasNulls |= values[i] == null;
            bytes += Math.max(codes[i] - 1, 0);
        }
        uvarint(key.length);
        write(key);
        long plain = columns.plan(codes, n, false) + bytes;
        HeaderDictionary dictionary = HeaderDictionary.of(values, MOST_DISTINCT);
        HexTemplate template = hasNulls ? null : HexTemplate.of(values);
        boolean isSmaller = dictionary != null && dictionary.bytes(n) < plain && (template == null || dictionary.bytes(n) <= template.bytes(n));
        if (isSmaller || dictionary != null && dictionary.size() == 1) {
            dictionary.write(n, out, payload);
        } else if (template != null && template.bytes(n) < plain) {
            room(1).put((byte) HeadersReader.HEX_TEMPLATE);
            template.write(values, out, payload);
        } else {
            room(1).put((byte) HeadersReader.PLAIN);
            writePlanned();
            for (byte[] value : values) write(value);
        }
    }

    void column(long[] values, int count, boolean hasTrend) {
        columns.plan(values, count, hasTrend);
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
