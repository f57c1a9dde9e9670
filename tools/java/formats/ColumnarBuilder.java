package kfbench;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;

/** Writes a columnar batch: docs/columnar.md. Metadata is written once all records are known. */
final class ColumnarBuilder extends Builder.Keeping {
    private static final long MOST_TIME = (1L << 47) - 1;
    private static final int MOST_FIXED_BYTES = ColumnarBatch.FIXED_BYTES + 14 + 5 + 5 + 1 + 3 * 10;

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
        boolean hasBase = fields.deleteHorizon() == null && fields.baseTimestamp(first) != first, hasHorizon = fields.deleteHorizon() != null;
        boolean hasAnchor = count > 0 && (fields.appendTime() == null ? maxTimestamp != latest : hasCreateTime());
        int number = (hasBase || hasHorizon ? 1 : 0) + (hasAnchor ? 1 : 0) + (isWide ? 1 : 0);
        if (number == 0) return bits;
        to.put((byte) number);
        if (hasBase) extension(0, fields.baseTimestamp(first), to);
        if (hasHorizon) extension(1, fields.deleteHorizon(), to);
        if (hasAnchor) extension(2, latest, to);
        if (isWide) extension(3, maxTimestamp, to);
        return bits | ColumnarBatch.EXTENSIONS;
    }

    private static void extension(int tag, long value, ByteBuffer to) { to.put((byte) tag).put((byte) Long.BYTES).putLong(value); }

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
            writeNumbers(column, ColumnWriter.Role.AGES);
        }
        if (hasOffsets) {
            for (int i = 0; i < count; i++) column[i] = offsets[i] - baseOffset;
            writeNumbers(column, ColumnWriter.Role.OFFSETS);
        }
        bits |= writeLengths(keys, column, ColumnarBatch.KEYS, ColumnarBatch.NULL_KEYS);
        bits |= writeLengths(values, column, ColumnarBatch.VALUES, ColumnarBatch.NULL_VALUES);
        if (!hasHeaders()) return bits;
        writer.write();
        payloadBytes += headerPayload.position();
        return bits | ColumnarBatch.HEADERS;
    }

    private void writeNumbers(long[] column, ColumnWriter.Role role) {
        if (count > 1) writer.column(column, count, role);
        else Wire.writeVarlong(column[0], writer.room(10));
    }

    /** Return the bits of this column: none if all are null. */
    private int writeLengths(byte[][] items, long[] column, int bit, int nullBit) {
        int nulls = 0;
        for (int i = 0; i < count; i++) {
            column[i] = items[i] == null ? -1 : items[i].length;
            if (items[i] == null) nulls++;
            else payloadBytes += items[i].length;
        }
        if (nulls == count) return 0;
        if (count > 1) writer.lengths(column, count, nulls > 0);
        else writer.uvarint((int) column[0]);
        return nulls > 0 ? bit | nullBit : bit;
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
