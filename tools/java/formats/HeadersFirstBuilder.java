package kfbench;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.utils.Utils;

/** Writes v3 with the metadata of all records before their payload (attributes bit 10). */
final class HeadersFirstBuilder extends Builder.Keeping {
    private final Wire.Output out;
    private final Wire.Codec codec;
    private final Fields fields;

    HeadersFirstBuilder(Wire.Output out, Wire.Codec codec, Fields fields) {
        this.out = out;
        this.codec = codec;
        this.fields = fields;
    }

    @Override
    public ByteBuffer build() {
        int recordsAt = V3Header.reserve(out);
        long baseOffset = fields.baseOffset() == null ? offsets[0] : fields.baseOffset();
        long baseTimestamp = fields.baseTimestamp(count == 0 ? -1 : timestamps[0]);
        if (count > 0) {
            try (OutputStream stream = codec.compress(out)) {
                writeMetadata(stream, baseOffset, baseTimestamp);
                writePayload(stream);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return V3Header.write(out, recordsAt, V3Header.NO_RECORD_ATTRIBUTES | V3Header.HEADERS_FIRST, fields, count, baseOffset,
            count == 0 ? baseOffset : offsets[count - 1], baseTimestamp, latest);
    }

    private void writeMetadata(OutputStream stream, long baseOffset, long baseTimestamp) throws IOException {
        int headerCount = 0;
        for (int i = 0; i < count; i++) headerCount += headers[i].length;
        ByteBuffer metadata = ByteBuffer.allocate(count * 30 + headerCount * 10 + 5).position(5);
        for (int i = 0; i < count; i++) {
            if (fields.control()) Control.check(keys[i], values[i]);
            Wire.writeVarlong(timestamps[i] - baseTimestamp, metadata);
            Wire.writeVarint((int) (offsets[i] - baseOffset), metadata);
            writeLength(keys[i], metadata);
            writeLength(values[i], metadata);
            Wire.writeVarint(headers[i].length, metadata);
            for (Header header : headers[i]) {
                Wire.writeVarint(Utils.utf8Length(header.key()), metadata);
                writeLength(header.value(), metadata);
            }
        }
        int bytes = metadata.position() - 5, start = 5 - Wire.sizeOfUnsignedVarint(bytes);
        Wire.writeUnsignedVarint(bytes, metadata.position(start));
        stream.write(metadata.array(), start, bytes + 5 - start);
    }

    private static void writeLength(byte[] item, ByteBuffer metadata) { Wire.writeVarint(item == null ? -1 : item.length, metadata); }

    private void writePayload(OutputStream stream) throws IOException {
        for (int i = 0; i < count; i++) {
            if (keys[i] != null) stream.write(keys[i]);
            if (values[i] != null) stream.write(values[i]);
            for (Header header : headers[i]) {
                stream.write(Utils.utf8(header.key()));
                if (header.value() != null) stream.write(header.value());
            }
        }
    }
}
