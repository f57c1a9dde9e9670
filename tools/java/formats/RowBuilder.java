package kfbench;

import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.utils.Utils;

/**
 * Writes v2 or v3 (KIP-931) record by record into the codec's stream, as MemoryRecordsBuilder and DefaultRecord do for v2.
 *
 * <p>The size of v3's header is only known at the end. So room for the largest is left free before the records, and the header
 * is written right before them.
 */
final class RowBuilder implements Builder {
    private final Wire.Output out;
    private final Fields fields;
    private final DataOutputStream stream;
    private final boolean isV2;
    private final int recordsAt;
    private int count;
    private long baseOffset, lastOffset, baseTimestamp, latest = -1;

    RowBuilder(Wire.Output out, Wire.Codec codec, Fields fields, boolean isV2) {
        this.out = out;
        this.fields = fields;
        this.isV2 = isV2;
        recordsAt = isV2 ? V2Header.reserve(out) : V3Header.reserve(out);
        stream = new DataOutputStream(codec.compress(out));
    }

    @Override
    public void append(long offset, long timestamp, byte[] key, byte[] value, Header[] headers) {
        if (count++ == 0) {
            baseOffset = fields.baseOffset() == null ? offset : fields.baseOffset();
            baseTimestamp = fields.baseTimestamp(timestamp);
        }
        lastOffset = offset;
        latest = Math.max(latest, timestamp);
        if (fields.control()) Control.check(key, value);
        try {
            write((int) (offset - baseOffset), timestamp - baseTimestamp, key, value, headers);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void write(int offsetDelta, long timestampDelta, byte[] key, byte[] value, Header[] headers) throws IOException {
        Wire.writeVarint((isV2 ? 1 : 0) + sizeOfBody(offsetDelta, timestampDelta, key, value, headers), stream);
        if (isV2) stream.write(0); // attributes
        Wire.writeVarlong(timestampDelta, stream);
        Wire.writeVarint(offsetDelta, stream);
        write(key);
        write(value);
        Wire.writeVarint(headers.length, stream);
        for (Header header : headers) {
            write(Utils.utf8(header.key()));
            write(header.value());
        }
    }

    /** The bytes of a record after its length and attributes. */
    private static int sizeOfBody(int offsetDelta, long timestampDelta, byte[] key, byte[] value, Header[] headers) {
        int bytes = Wire.sizeOfVarlong(timestampDelta) + Wire.sizeOfVarint(offsetDelta) + size(key) + size(value) + Wire.sizeOfVarint(headers.length);
        for (Header header : headers) {
            int keyBytes = Utils.utf8Length(header.key());
            bytes += Wire.sizeOfVarint(keyBytes) + keyBytes + size(header.value());
        }
        return bytes;
    }

    private static int size(byte[] item) { return item == null ? Wire.sizeOfVarint(-1) : Wire.sizeOfVarint(item.length) + item.length; }

    private void write(byte[] item) throws IOException {
        Wire.writeVarint(item == null ? -1 : item.length, stream);
        if (item != null) stream.write(item);
    }

    @Override
    public ByteBuffer build() {
        if (count == 0) { // leave out the frame that a codec would write
            out.position(recordsAt);
        } else {
            try {
                stream.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        if (count == 0) {
            baseOffset = fields.baseOffset();
            lastOffset = fields.lastOffset();
            baseTimestamp = fields.baseTimestamp(-1);
        }
        return isV2 ? V2Header.write(out, recordsAt, fields, count, baseOffset, lastOffset, baseTimestamp, latest)
            : V3Header.write(out, recordsAt, V3Header.NO_RECORD_ATTRIBUTES, fields, count, baseOffset, lastOffset, baseTimestamp, latest);
    }
}
