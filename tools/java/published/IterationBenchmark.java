package kfbench;

import java.nio.ByteBuffer;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/**
 * The measurement of apache/kafka pull request 23477: read all records of v2 batches whole, and without their bodies. The
 * input is that of Kafka's RecordBatchIterationBenchmark with maxBatchSize=200, messageSize=1000, bytes=RANDOM, NO_CACHING:
 * 100 batches of 1 to 200 records with five headers. The order of random numbers is the same, so the batches are too.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class IterationBenchmark {
    private static final int BATCHES = 100, MOST_RECORDS = 200, VALUE_BYTES = 1000, HEADERS = 5, HEADER_KEY_BYTES = 30;

    @Param({"none", "gzip", "lz4", "zstd"})
    public String codec;

    private final Random random = new Random(0);
    private final ByteBuffer[] batches = new ByteBuffer[BATCHES];

    @Setup
    public void setUp() {
        random.nextBytes(new byte[VALUE_BYTES]); // Kafka's benchmark makes a batch of one record first
        for (int i = 0; i < BATCHES; i++) batches[i] = batch(random.nextInt(MOST_RECORDS) + 1);
    }

    private ByteBuffer batch(int records) {
        Header[] headers = new Header[HEADERS];
        for (int i = 0; i < HEADERS; i++) headers[i] = new RecordHeader("a".repeat(HEADER_KEY_BYTES), new byte[0]);
        Compression compression = Compression.of(CompressionType.forName(codec.toLowerCase(Locale.ROOT))).build();
        ByteBuffer room = ByteBuffer.allocate(records * (VALUE_BYTES + HEADERS * (HEADER_KEY_BYTES + 10) + 100));
        byte[] value = new byte[VALUE_BYTES];
        try (MemoryRecordsBuilder builder = MemoryRecords.builder(room, RecordBatch.MAGIC_VALUE_V2, compression, TimestampType.CREATE_TIME, 0)) {
            for (int i = 0; i < records; i++) {
                random.nextBytes(value);
                builder.append(0L, null, value, headers);
            }
            return builder.build().buffer();
        }
    }

    @Benchmark
    @OperationsPerInvocation(BATCHES)
    public void whole(Blackhole hole) {
        for (ByteBuffer each : batches)
            for (RecordBatch batch : MemoryRecords.readableRecords(each.duplicate()).batches())
                consume(batch.streamingIterator(BufferSupplier.NO_CACHING), hole);
    }

    @Benchmark
    @OperationsPerInvocation(BATCHES)
    public void withoutBodies(Blackhole hole) {
        for (ByteBuffer each : batches)
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(each.duplicate()).batches())
                consume(batch.skipKeyValueIterator(BufferSupplier.NO_CACHING), hole);
    }

    private static void consume(CloseableIterator<Record> records, Blackhole hole) {
        try (records) {
            while (records.hasNext()) hole.consume(records.next());
        }
    }
}
