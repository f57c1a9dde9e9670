package oracle;

import java.nio.ByteBuffer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

/** What differs between versions of Kafka. */
final class Versioned {
    /** Kafka 4.0 removed it (KIP-724). */
    static Broker.Result convert(byte[] bytes, Spec spec) { throw new UnsupportedOperationException("down-conversion"); }

    static ByteBuffer kept(MemoryRecords records, MemoryRecords.RecordFilter filter, ByteBuffer room) {
        return records.filterTo(filter, room, BufferSupplier.NO_CACHING, Integer.MAX_VALUE).outputBuffer();
    }

    static Broker.Result validate(Spec spec, MemoryRecords records, PrimitiveRef.LongRef next, CompressionType source, Compression target,
            byte toMagic, AppendOrigin origin) {
        LogValidator validator = new LogValidator(
            records, Broker.PARTITION, new Broker.StoppedClock(spec.number("now", 0)), source, target, spec.flag("compacted"), toMagic,
            spec.timestampType(toMagic), spec.number("beforeMaxMs", Long.MAX_VALUE), spec.number("afterMaxMs", Long.MAX_VALUE),
            (int) spec.number("partitionLeaderEpoch", RecordBatch.NO_PARTITION_LEADER_EPOCH), origin);
        var result = validator.validateMessagesAndAssignOffsets(next, new Broker.Uncounted(), BufferSupplier.NO_CACHING);
        return Broker.validated(result.validatedRecords(), result.maxTimestampMs(), result.messageSizeMaybeChanged(),
            result.recordValidationStats().numRecordsConverted(), next.value);
    }

    private Versioned() { }
}
