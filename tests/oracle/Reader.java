package oracle;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.AbstractLegacyRecordBatch;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/**
 * Reads bytes as Kafka's consumer does, and says what it saw: every field of every batch and record, up to the first
 * thing that Kafka refuses.
 */
final class Reader {
    private static final HexFormat HEX = HexFormat.of();
    private static final int V2_ATTRIBUTES_AT = DefaultRecordBatch.CRC_OFFSET + 4, LEGACY_ATTRIBUTES_AT = 17;

    private final byte[] bytes;
    private final List<Map<String, Object>> batches = new ArrayList<>();
    private Map<String, Object> error;
    private int position, recordCount;
    // Where we are, should something be refused.
    private String stage;
    private int record;

    private Reader(byte[] bytes) {
        this.bytes = bytes;
    }

    static Map<String, Object> read(byte[] bytes) {
        Reader reader = new Reader(bytes);
        reader.readBatches();
        Map<String, Object> log = new LinkedHashMap<>();
        log.put("size", bytes.length);
        log.put("sha256", sha256(bytes));
        log.put("validBytes", reader.position);
        log.put("trailingBytes", bytes.length - reader.position);
        log.put("batchCount", reader.batches.size());
        log.put("recordCount", reader.recordCount);
        log.put("error", reader.error);
        log.put("batches", reader.batches);
        return log;
    }

    private void readBatches() {
        Iterator<MutableRecordBatch> iterator = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches().iterator();
        while (error == null) {
            MutableRecordBatch batch;
            at("nextBatch");
            try {
                if (!iterator.hasNext()) return;
                batch = iterator.next();
            } catch (Throwable refusal) { // OutOfMemoryError included: hostile counts make Kafka ask for too much
                refused(refusal);
                return;
            }
            Map<String, Object> row = new LinkedHashMap<>();
            batches.add(row);
            try {
                readHeader(batch, row);
                readRecords(batch, row);
                compareIterators(batch, row);
            } catch (Throwable refusal) {
                refused(refusal);
            }
            position += batch.sizeInBytes();
        }
    }

    private void at(String stage) {
        this.stage = stage;
        record = -1;
    }

    private void refused(Throwable refusal) {
        error = new LinkedHashMap<>();
        error.put("stage", stage);
        error.put("batch", stage.equals("nextBatch") ? batches.size() : batches.size() - 1);
        if (record >= 0) error.put("record", record);
        error.put("class", refusal.getClass().getName());
        error.put("message", String.valueOf(refusal.getMessage()));
        if (refusal.getCause() != null) error.put("cause", refusal.getCause().toString());
    }

    private void readHeader(MutableRecordBatch batch, Map<String, Object> row) {
        at("ensureValid");
        row.put("position", position);
        row.put("magic", batch.magic());
        row.put("size", batch.sizeInBytes());
        row.put("isValid", batch.isValid());
        row.put("crc", batch.checksum());
        batch.ensureValid();
        at("batchFields");
        row.put("compression", batch.compressionType().name);
        row.put("timestampType", batch.timestampType().name());
        row.put("baseOffset", batch.baseOffset());
        row.put("lastOffset", batch.lastOffset());
        row.put("nextOffset", batch.nextOffset());
        row.put("maxTimestamp", batch.maxTimestamp());
        row.put("count", batch.countOrNull());
        if (batch instanceof DefaultRecordBatch modern) {
            row.put("attributes", ByteBuffer.wrap(bytes).getShort(position + V2_ATTRIBUTES_AT));
            row.put("baseTimestamp", modern.baseTimestamp());
            row.put("partitionLeaderEpoch", batch.partitionLeaderEpoch());
            row.put("producerId", batch.producerId());
            row.put("producerEpoch", batch.producerEpoch());
            row.put("baseSequence", batch.baseSequence());
            row.put("lastSequence", batch.lastSequence());
            row.put("isTransactional", batch.isTransactional());
            row.put("isControlBatch", batch.isControlBatch());
            row.put("deleteHorizonMs", batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : null);
        } else {
            row.put("attributes", bytes[position + LEGACY_ATTRIBUTES_AT]);
        }
        if (batch.isCompressed()) describePlain(batch, row);
    }

    /** For information: Kafka's reader itself never looks at all of it at once, so a failure here is not its refusal. */
    private static void describePlain(MutableRecordBatch batch, Map<String, Object> row) {
        try (InputStream stream = plain(batch)) {
            byte[] plain = stream.readAllBytes();
            row.put("decompressedSize", plain.length);
            row.put("decompressedSha256", sha256(plain));
        } catch (Throwable failure) {
            row.put("decompressError", failure.toString());
        }
    }

    private static InputStream plain(MutableRecordBatch batch) throws IOException {
        if (batch instanceof DefaultRecordBatch modern) return modern.recordInputStream(BufferSupplier.NO_CACHING);
        ByteBuffer value = ((Record) batch).value();
        if (value == null) return InputStream.nullInputStream();
        return Compression.of(batch.compressionType()).build().wrapForInput(value, batch.magic(), BufferSupplier.NO_CACHING);
    }

    private void readRecords(MutableRecordBatch batch, Map<String, Object> row) {
        List<Map<String, Object>> rows = new ArrayList<>();
        row.put("records", rows);
        at("iterate");
        try (CloseableIterator<Record> records = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
            for (record = 0; records.hasNext(); record++) {
                Record read = records.next();
                stage = "recordEnsureValid";
                read.ensureValid();
                Map<String, Object> described = describe(read, batch);
                if (batch.isControlBatch()) {
                    stage = "control";
                    describeControl(read, described);
                }
                rows.add(described);
                recordCount++;
                stage = "iterate";
            }
        }
    }

    private static Map<String, Object> describe(Record record, RecordBatch batch) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("offset", record.offset());
        row.put("timestamp", record.timestamp());
        row.put("timestampType", timestampType(record, batch).name());
        row.put("size", record.sizeInBytes());
        if (batch.magic() >= RecordBatch.MAGIC_VALUE_V2) {
            row.put("sequence", record.sequence());
        } else {
            row.put("magic", record.hasMagic(RecordBatch.MAGIC_VALUE_V0) ? 0 : 1);
            row.put("crc", ((AbstractLegacyRecordBatch) record).outerRecord().checksum());
        }
        row.put("key", hex(record.key()));
        row.put("value", hex(record.value()));
        if (batch.magic() >= RecordBatch.MAGIC_VALUE_V2) {
            List<List<String>> headers = new ArrayList<>();
            for (Header header : record.headers()) {
                List<String> pair = new ArrayList<>();
                pair.add(header.key());
                pair.add(header.value() == null ? null : HEX.formatHex(header.value()));
                headers.add(pair);
            }
            row.put("headers", headers);
        }
        return row;
    }

    private static TimestampType timestampType(Record record, RecordBatch batch) {
        if (batch.magic() >= RecordBatch.MAGIC_VALUE_V2) return batch.timestampType();
        if (record.hasTimestampType(TimestampType.NO_TIMESTAMP_TYPE)) return TimestampType.NO_TIMESTAMP_TYPE;
        return record.hasTimestampType(TimestampType.LOG_APPEND_TIME) ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
    }

    private static void describeControl(Record record, Map<String, Object> row) {
        ControlRecordType type = ControlRecordType.parse(record.key());
        row.put("controlType", type.name());
        if (type == ControlRecordType.COMMIT || type == ControlRecordType.ABORT)
            row.put("coordinatorEpoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
    }

    /** Kafka has two more ways to go through a batch; they must tell the same story. */
    @SuppressWarnings("unchecked")
    private void compareIterators(MutableRecordBatch batch, Map<String, Object> row) {
        List<Map<String, Object>> rows = (List<Map<String, Object>>) row.get("records");
        at("iterator");
        int seen = 0;
        for (Record read : batch) {
            Map<String, Object> expected = rows.get(seen++);
            if (!describe(read, batch).entrySet().stream().allMatch(entry -> entry.getValue() == null
                    ? expected.get(entry.getKey()) == null : entry.getValue().equals(expected.get(entry.getKey()))))
                throw new IllegalStateException("iterator differs at record " + (seen - 1));
        }
        if (seen != rows.size()) throw new IllegalStateException("iterator ends after record " + (seen - 1));
        if (batch.magic() < RecordBatch.MAGIC_VALUE_V2) return; // cannot skip
        at("skipKeyValueIterator");
        int skipped = 0;
        try (CloseableIterator<Record> records = batch.skipKeyValueIterator(BufferSupplier.NO_CACHING)) {
            while (records.hasNext()) {
                Record read = records.next();
                Map<String, Object> expected = rows.get(skipped++);
                if (!expected.get("offset").equals(read.offset()) || !expected.get("timestamp").equals(read.timestamp())
                        || !expected.get("size").equals(read.sizeInBytes()) || read.hasKey() == (expected.get("key") == null)
                        || read.hasValue() == (expected.get("value") == null))
                    throw new IllegalStateException("skipKeyValueIterator differs at record " + (skipped - 1));
            }
        }
        if (skipped != seen) throw new IllegalStateException("skipKeyValueIterator ends after record " + (skipped - 1));
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) return null;
        byte[] content = new byte[buffer.remaining()];
        buffer.duplicate().get(content);
        return HEX.formatHex(content);
    }

    private static String sha256(byte[] content) {
        try {
            return HEX.formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
