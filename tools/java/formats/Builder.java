package kfbench;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.header.Header;

/**
 * Builds one batch, as MemoryRecordsBuilder does for v2. The batch is the last bytes of the output after `build`.
 *
 * <p>A layout that separates metadata from payload cannot be written record by record. So its builder extends
 * {@link Keeping}, which keeps the arrays of the caller until `build`.
 */
interface Builder {
    void append(long offset, long timestamp, byte[] key, byte[] value, Header[] headers);

    /** Return the batch, from its position to its limit. */
    ByteBuffer build();

    static Builder of(String format, Wire.Output out, Wire.Codec codec, Fields fields) {
        return switch (format) {
            case "v2" -> new RowBuilder(out, codec, fields, true);
            case "v3" -> new RowBuilder(out, codec, fields, false);
            case "v3-headers-first" -> new HeadersFirstBuilder(out, codec, fields);
            case "columnar" -> new ColumnarBuilder(out, codec, fields);
            default -> throw new IllegalArgumentException(format);
        };
    }

    abstract class Keeping implements Builder {
        protected int count;
        protected long[] offsets = new long[16], timestamps = new long[16];
        protected byte[][] keys = new byte[16][], values = new byte[16][];
        protected Header[][] headers = new Header[16][];
        protected long latest = -1;

        @Override
        public final void append(long offset, long timestamp, byte[] key, byte[] value, Header[] own) {
            if (count == offsets.length) grow();
            offsets[count] = offset;
            timestamps[count] = timestamp;
            keys[count] = key;
            values[count] = value;
            headers[count++] = own;
            latest = Math.max(latest, timestamp);
        }

        private void grow() {
            int room = 2 * count;
            offsets = Arrays.copyOf(offsets, room);
            timestamps = Arrays.copyOf(timestamps, room);
            keys = Arrays.copyOf(keys, room);
            values = Arrays.copyOf(values, room);
            headers = Arrays.copyOf(headers, room);
        }
    }
}
