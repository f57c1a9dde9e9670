package kfbench;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;

/** Writes a columnar batch: docs/columnar.md. Metadata is written once all records are known. */
final class ColumnarBuilder extends Builder.Keeping {
    private static final long MOST_TIME = (1L << 47) - 1;
    private static final int MOST_FIXED_BYTES = ColumnarBatch.FIXED_BYTES + 14 + 5 + 5 + 3 * 8;

    private final Wire.Output out;
    private final Wire.Codec codec;
    private final Fields fields;
    private HeadersWriter writer;
    private Wire.Output headerPayload;
    private long payloadBytes;

    ColumnarBuilder(Wire.Output out, Wire.Codec codec, Fields fields) {
        this.out = out;
        this.codec = codec;
        this.fields = fields;
    }

    @Override
    public ByteBuffer build() {
        int start = out.position();
        long baseOffset = fields.baseOffset() == null ? offsets[0] : fields.baseOffset();
        long lastOffset = fields.lastOffset() != null ? fields.lastOffset() : count == 0 ? baseOffset : offsets[count - 1];
        if (count > 0) headerPayload = new Wire.Output(hasHeaders() ? 256 : 0);
        writer = new HeadersWriter(out, headerPayload, new ColumnWriter(), headers, count);
        int bits = fields.sharedBits(count == 0) | writeFixed(baseOffset, lastOffset);
        if (count > 0) bits |= writeColumns(baseOffset, (bits & ColumnarBatch.OFFSETS) != 0);
        try {
            writePayload();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        ByteBuffer batch = out.buffer().slice(start, out.position() - start);
        Batch.seal(batch, baseOffset, ColumnarBatch.MAGIC, bits, fields);
        return batch;
    }

    /** Write what comes before the columns. Return the bits of its parts. */
    private int writeFixed(long baseOffset, long lastOffset) {
        long maxTimestamp = fields.maxTimestamp(latest), first = count == 0 ? -1 : timestamps[0];
        boolean isWide = maxTimestamp > MOST_TIME || maxTimestamp < ~MOST_TIME;
        ByteBuffer to = writer.room(MOST_FIXED_BYTES);
        to.position(to.position() + Batch.TAIL_AT);
        long field = isWide ? 0 : maxTimestamp;
        to.putShort((short) (field >> 32)).putInt((int) field);
        int bits = 0;
        if (fields.producerId() != -1 || fields.producerEpoch() != -1 || fields.baseSequence() != -1) {
            bits |= ColumnarBatch.PRODUCER;
            to.putLong(fields.producerId()).putShort(fields.producerEpoch()).putInt(fields.baseSequence());
        }
        Wire.writeUnsignedVarint(count, to);
        if (count == 0 || lastOffset != baseOffset + count - 1 || !isDense(baseOffset)) {
            bits |= ColumnarBatch.OFFSETS;
            Wire.writeUnsignedVarint((int) (lastOffset - baseOffset), to);
        }
        if (fields.deleteHorizon() != null) to.putLong(fields.deleteHorizon()); // its bit is among the shared ones
        else if (fields.baseTimestamp(first) != first) bits |= time(ColumnarBatch.BASE_TIMESTAMP, fields.baseTimestamp(first), to);
        boolean hasAnchor = count > 0 && (fields.appendTime() == null ? maxTimestamp != latest : hasCreateTime());
        if (hasAnchor) bits |= time(ColumnarBatch.ANCHOR, latest, to);
        if (isWide) bits |= time(ColumnarBatch.WIDE_MAX_TIMESTAMP, maxTimestamp, to);
        return bits;
    }

    private static int time(int bit, long value, ByteBuffer to) {
        to.putLong(value);
        return bit;
    }

    private boolean isDense(long baseOffset) {
        for (int i = 0; i < count; i++) if (offsets[i] != baseOffset + i) return false;
        return true;
    }

    private boolean hasCreateTime() {
        for (int i = 0; i < count; i++) if (timestamps[i] != -1) return true;
        return false;
    }

    private boolean hasHeaders() {
        for (int i = 0; i < count; i++) if (headers[i].length > 0) return true;
        return false;
    }

    private int writeColumns(long baseOffset, boolean hasOffsets) {
        int bits = 0;
        long[] column = new long[count];
        long any = 0;
        for (int i = 0; i < count; i++) any |= column[i] = latest - timestamps[i];
        if (any != 0) {
            bits |= ColumnarBatch.AGES;
            writeNumbers(column);
        }
        if (hasOffsets) {
            for (int i = 0; i < count; i++) column[i] = offsets[i] - baseOffset;
            writeNumbers(column);
        }
        bits |= writeLengths(keys, column, ColumnarBatch.KEYS);
        bits |= writeLengths(values, column, ColumnarBatch.VALUES);
        if (!hasHeaders()) return bits;
        writer.write();
        payloadBytes += headerPayload.position();
        return bits | ColumnarBatch.HEADERS;
    }

    private void writeNumbers(long[] column) {
        if (count > 1) writer.column(column, count, true);
        else Wire.writeVarlong(column[0], writer.room(10));
    }

    /** Write a column of codes. Return the bit of this column, or 0 if all are null. */
    private int writeLengths(byte[][] items, long[] column, int bit) {
        long any = 0;
        for (int i = 0; i < count; i++) {
            any |= column[i] = items[i] == null ? 0 : items[i].length + 1;
            if (items[i] != null) payloadBytes += items[i].length;
        }
        if (any == 0) return 0;
        if (count > 1) writer.column(column, count, false);
        else writer.uvarint((int) column[0]);
        return bit;
    }

    private void writePayload() throws IOException {
        if (payloadBytes == 0) return;
        try (OutputStream stream = codec.compress(out)) {
            for (int i = 0; i < count; i++) {
                if (fields.control()) Control.check(keys[i], values[i]);
                if (keys[i] != null) stream.write(keys[i]);
            }
            for (int i = 0; i < count; i++) if (values[i] != null) stream.write(values[i]);
            stream.write(headerPayload.buffer().array(), 0, headerPayload.position());
        }
    }
}
