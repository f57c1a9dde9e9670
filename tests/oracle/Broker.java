package oracle;

import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/** What a broker does with batches: it stamps, validates, converts and compacts them. */
final class Broker {
    static final TopicPartition PARTITION = new TopicPartition("topic", 0);

    /** Bytes, and what Kafka says about how they came to be. */
    record Result(byte[] bytes, Map<String, Object> notes) { }

    record StoppedClock(long milliseconds) implements Time {
        @Override public long nanoseconds() {
            return 0;
        }

        @Override public void sleep(long ms) { }

        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }
    }

    static final class Uncounted implements LogValidator.MetricsRecorder {
        @Override public void recordInvalidMagic() { }

        @Override public void recordInvalidOffset() { }

        @Override public void recordInvalidSequence() { }

        @Override public void recordInvalidChecksums() { }

        @Override public void recordNoKeyCompactedTopic() { }
    }

    /** A step, or Kafka's refusal of it: the exception that a client hears of, and the records that it names. */
    static Result attempted(Supplier<Result> step) {
        try {
            return step.get();
        } catch (RuntimeException thrown) {
            RecordValidationException ofRecords = thrown instanceof RecordValidationException given ? given : null;
            RuntimeException said = ofRecords == null ? thrown : ofRecords.invalidException();
            Map<String, Object> refusal = new LinkedHashMap<>();
            refusal.put("error", Errors.forException(said).name());
            refusal.put("class", said.getClass().getName());
            refusal.put("message", String.valueOf(said.getMessage()));
            if (ofRecords != null) refusal.put("recordErrors", ofRecords.recordErrors().stream().map(each -> List.of(each.batchIndex, each.message)).toList());
            return new Result(new byte[0], Map.of("refused", refusal));
        }
    }

    /** Writes into headers, as a leader does on append. */
    static Result stamp(byte[] bytes, Spec spec) {
        for (MutableRecordBatch batch : records(bytes).batches()) {
            if (spec.has("lastOffset")) batch.setLastOffset(spec.number("lastOffset", 0));
            if (spec.has("maxTimestamp")) batch.setMaxTimestamp(spec.timestampType(batch.magic()), spec.number("maxTimestamp", 0));
            if (spec.has("partitionLeaderEpoch")) batch.setPartitionLeaderEpoch((int) spec.number("partitionLeaderEpoch", 0));
        }
        return new Result(bytes, Map.of());
    }

    /** Keeps the records whose offsets are in "retain". */
    static Result compact(byte[] bytes, Spec spec) {
        Set<Long> retained = new HashSet<>();
        spec.node().get("retain").forEach(offset -> retained.add(offset.asLong()));
        var retention = MemoryRecords.RecordFilter.BatchRetention.valueOf(spec.text("batchRetention", "DELETE_EMPTY"));
        var filter = new MemoryRecords.RecordFilter(spec.number("now", 0), spec.number("deleteRetentionMs", 86_400_000)) {
            @Override protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(retention, spec.flag("markerOfEmptyTransaction") && batch.isControlBatch());
            }

            @Override protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return retained.contains(record.offset());
            }
        };
        ByteBuffer room = ByteBuffer.allocate(2 * bytes.length + 1024);
        ByteBuffer kept = Versioned.kept(records(bytes), filter, room);
        kept.flip();
        byte[] out = new byte[kept.remaining()];
        kept.get(out);
        return new Result(out, Map.of());
    }

    static Result validate(byte[] bytes, Spec spec) {
        AppendOrigin origin = AppendOrigin.valueOf(spec.text("origin", "CLIENT"));
        admit(records(bytes), origin);
        PrimitiveRef.LongRef next = PrimitiveRef.ofLong(spec.number("baseOffset", 0));
        byte toMagic = (byte) spec.number("toMagic", RecordBatch.CURRENT_MAGIC_VALUE);
        CompressionType source = sourceCompression(bytes, spec);
        Compression target = spec.text("targetCompression", "none").equals("producer") ? Compression.of(source).build()
            : spec.compression("targetCompression");
        return Versioned.validate(spec, records(bytes), next, source, target, toMagic, origin);
    }

    /** The result of a validation, with its notes in the same order in every run. */
    static Result validated(MemoryRecords records, long maxTimestampMs, boolean isSizeChanged, int converted, long nextOffset) {
        Map<String, Object> validation = new TreeMap<>(Map.of("maxTimestampMs", maxTimestampMs, "messageSizeMaybeChanged", isSizeChanged,
            "numRecordsConverted", converted, "nextOffset", nextOffset));
        return new Result(Writer.bytes(records), Map.of("validation", validation));
    }

    /** What kafka.log.UnifiedLog asks of batches before it hands them to the validator. */
    private static void admit(MemoryRecords records, AppendOrigin origin) {
        for (RecordBatch batch : records.batches()) {
            if (origin == AppendOrigin.CLIENT && batch.magic() >= RecordBatch.MAGIC_VALUE_V2 && batch.baseOffset() != 0)
                throw new InvalidRecordException("base offset " + batch.baseOffset() + " from a client, not 0");
            if (!batch.isValid()) throw new CorruptRecordException("stored crc = " + batch.checksum());
        }
    }

    /** As UnifiedLog finds it, unless it is given: the last codec of a request. */
    private static CompressionType sourceCompression(byte[] bytes, Spec spec) {
        if (spec.has("sourceCompression")) return CompressionType.forName(spec.text("sourceCompression"));
        CompressionType found = CompressionType.NONE;
        for (RecordBatch batch : records(bytes).batches())
            if (batch.isCompressed()) found = batch.compressionType();
        return found;
    }

    static MemoryRecords records(byte[] bytes) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
    }

    private Broker() { }
}
