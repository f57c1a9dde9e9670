package kfbench;

import java.io.DataOutput;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;
import org.apache.kafka.common.utils.internals.ByteUtils;
import org.apache.kafka.common.utils.internals.Crc32C;

/** Kafka's varints, buffers, checksum and codecs. Their packages differ between versions, and nothing else here does. */
final class Wire {
    static final class Output extends ByteBufferOutputStream {
        Output(int bytes) { super(bytes); }

        Output(ByteBuffer buffer) { super(buffer); }
    }

    /** A codec as batches of magic 2 use it. One that caches buffers belongs to one thread. */
    static final class Codec {
        final int id;
        private final Compression compression;
        private final BufferSupplier buffers;

        Codec(int id, boolean isCaching) {
            this.id = id;
            buffers = isCaching ? BufferSupplier.create() : BufferSupplier.NO_CACHING;
            compression = Compression.of(CompressionType.forId(id)).build();
        }

        OutputStream compress(Output out) { return compression.wrapForOutput(out, RecordBatch.MAGIC_VALUE_V2); }

        InputStream decompress(ByteBuffer in) { return compression.wrapForInput(in, RecordBatch.MAGIC_VALUE_V2, buffers); }
    }

    static int codecId(String name) { return CompressionType.forName(name).id; }

    static String kafkaVersion() { return AppInfoParser.getVersion(); }

    static long crc32c(ByteBuffer buffer, int at, int bytes) { return Crc32C.compute(buffer, at, bytes); }

    static int readUnsignedVarint(ByteBuffer in) { return ByteUtils.readUnsignedVarint(in); }

    static int readVarint(ByteBuffer in) { return ByteUtils.readVarint(in); }

    static int readVarint(InputStream in) throws IOException { return ByteUtils.readVarint(in); }

    static long readVarlong(ByteBuffer in) { return ByteUtils.readVarlong(in); }

    static long readVarlong(InputStream in) throws IOException { return ByteUtils.readVarlong(in); }

    static void writeUnsignedVarint(int value, ByteBuffer out) { ByteUtils.writeUnsignedVarint(value, out); }

    static void writeUnsignedVarlong(long value, ByteBuffer out) { ByteUtils.writeUnsignedVarlong(value, out); }

    static void writeVarint(int value, ByteBuffer out) { ByteUtils.writeVarint(value, out); }

    static void writeVarint(int value, DataOutput out) throws IOException { ByteUtils.writeVarint(value, out); }

    static void writeVarlong(long value, ByteBuffer out) { ByteUtils.writeVarlong(value, out); }

    static void writeVarlong(long value, DataOutput out) throws IOException { ByteUtils.writeVarlong(value, out); }

    static int sizeOfUnsignedVarint(int value) { return ByteUtils.sizeOfUnsignedVarint(value); }

    static int sizeOfVarint(int value) { return ByteUtils.sizeOfVarint(value); }

    static int sizeOfVarlong(long value) { return ByteUtils.sizeOfVarlong(value); }

    private Wire() { }
}
