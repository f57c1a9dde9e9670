package kfbench;

import java.nio.ByteBuffer;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.CloseableIterator;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

/** v2 with Kafka's own classes. */
final class V2Arm implements Arm {
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);
    private static final LogValidator.MetricsRecorder METRICS = new LogValidator.MetricsRecorder() {
        @Override public void recordInvalidMagic() { }

        @Override public void recordInvalidOffset() { }

        @Override public void recordInvalidSequence() { }

        @Override public void recordInvalidChecksums() { }

        @Override public void recordNoKeyCompactedTopic() { }
    };

    private final Compression compression;
    private final BufferSupplier buffers = BufferSupplier.create();

    V2Arm(int codec) { compression = Compression.of(CompressionType.forId(codec)).build(); }

    private static MemoryRecords records(ByteBuffer batch) { return MemoryRecords.readableRecords(batch.duplicate()); }

    @Override
    public ByteBuffer write(Task task, ByteBuffer room) {
        Fields fields = task.fields();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(room), RecordBatch.MAGIC_VALUE_V2, compression,
            TimestampType.CREATE_TIME, 0, RecordBatch.NO_TIMESTAMP, fields.producerId(), fields.producerEpoch(), fields.baseSequence(),
            false, false, RecordBatch.NO_PARTITION_LEADER_EPOCH, Integer.MAX_VALUE);
        for (int i = 0; i < task.offsets().length; i++)
            builder.appendWithOffset(task.offsets()[i], task.timestamps()[i], task.keys()[i], task.values()[i], task.headers()[i]);
        return builder.build().buffer();
    }

    @Override
    public void iterate(ByteBuffer batch, Consumer<Object> sink) {
        for (RecordBatch each : records(batch).batches()) {
            try (CloseableIterator<Record> iterator = each.streamingIterator(buffers)) {
                while (iterator.hasNext()) sink.accept(iterator.next());
            }
        }
    }

    @Override
    public void skim(ByteBuffer batch, Consumer<Object> sink) {
        for (MutableRecordBatch each : records(batch).batches()) {
            try (CloseableIterator<Record> iterator = each.skipKeyValueIterator(buffers)) {
                while (iterator.hasNext()) sink.accept(iterator.next());
            }
        }
    }

    @Override
    public long validate(ByteBuffer batch) {
        return new LogValidator(records(batch), PARTITION, Time.SYSTEM, compression.type(), compression, false, RecordBatch.MAGIC_VALUE_V2,
            TimestampType.CREATE_TIME, Long.MAX_VALUE, Long.MAX_VALUE, 0, AppendOrigin.CLIENT, MetadataVersion.latestProduction())
            .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), METRICS, buffers).maxTimestampMs;
    }

    /** The loop of `lookupWhole` with the reader that Kafka has for other purposes. */
    @Override
    public long lookup(ByteBuffer batch, long timestamp) {
        for (MutableRecordBatch each : records(batch).batches())
            if (each.maxTimestamp() >= timestamp) return first(each.skipKeyValueIterator(BufferSupplier.NO_CACHING), timestamp);
        return -1;
    }

    /** The loop of FileRecords.searchForTimestamp, on a batch in memory. Its iterator reads all records of a compressed batch. */
    @Override
    public long lookupWhole(ByteBuffer batch, long timestamp) {
        for (RecordBatch each : records(batch).batches()) {
            if (each.maxTimestamp() < timestamp) continue;
            for (Record record : each) if (record.timestamp() >= timestamp) return record.offset();
        }
        return -1;
    }

    private static long first(CloseableIterator<Record> records, long timestamp) {
        try (records) {
            while (records.hasNext()) {
                Record record = records.next();
                if (record.timestamp() >= timestamp) return record.offset();
            }
        }
        return -1;
    }
}
