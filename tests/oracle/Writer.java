package oracle;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.LegacyRecord;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/** Batches as Kafka's producer, coordinator, controller and cleaner write them. */
final class Writer {
    private static final int CONTROL_BYTES = 512, PIECE_BYTES = 1000;

    /** The batches of a list of specs, one after another; "stamp": what a leader then writes into this one's header. */
    static byte[] write(List<Spec> batches) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (Spec batch : batches) {
            byte[] bytes = write(batch);
            out.writeBytes(batch.has("stamp") ? Broker.stamp(bytes, batch.child("stamp")).bytes() : bytes);
        }
        return out.toByteArray();
    }

    /** The payload of a batch of magic 2: written as MemoryRecordsBuilder does, in pieces, and closed. */
    static byte[] compress(byte[] plain, Compression compression) throws IOException {
        ByteBufferOutputStream out = new ByteBufferOutputStream(CONTROL_BYTES);
        try (DataOutputStream stream = new DataOutputStream(compression.wrapForOutput(out, RecordBatch.CURRENT_MAGIC_VALUE))) {
            for (int at = 0; at < plain.length; at += PIECE_BYTES)
                stream.write(plain, at, Math.min(PIECE_BYTES, plain.length - at));
        }
        ByteBuffer buffer = out.buffer().flip();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static byte[] write(Spec spec) {
        long offset = spec.number("baseOffset", 0), timestamp = spec.number("timestamp", RecordBatch.NO_TIMESTAMP);
        int leaderEpoch = (int) spec.number("partitionLeaderEpoch", RecordBatch.NO_PARTITION_LEADER_EPOCH);
        ByteBuffer room = ByteBuffer.allocate(CONTROL_BYTES);
        return switch (spec.text("kind", "records")) {
            case "records" -> records(spec);
            case "empty" -> empty(spec);
            case "marker" -> bytes(MemoryRecords.withEndTransactionMarker(offset, timestamp, leaderEpoch, producerId(spec), producerEpoch(spec),
                new EndTransactionMarker(ControlRecordType.valueOf(spec.text("type")), (int) spec.number("coordinatorEpoch", 0))));
            case "leaderChange" -> bytes(MemoryRecords.withLeaderChangeMessage(offset, timestamp, leaderEpoch, room, leaderChange(spec)));
            case "snapshotHeader" -> bytes(MemoryRecords.withSnapshotHeaderRecord(offset, timestamp, leaderEpoch, room,
                new SnapshotHeaderRecord().setLastContainedLogTimestamp(spec.number("lastContainedLogTimestamp", 0))));
            case "snapshotFooter" -> bytes(MemoryRecords.withSnapshotFooterRecord(offset, timestamp, leaderEpoch, room, new SnapshotFooterRecord()));
            case "kraftVersion" -> bytes(MemoryRecords.withKRaftVersionRecord(offset, timestamp, leaderEpoch, room,
                new KRaftVersionRecord().setKRaftVersion((short) spec.number("kraftVersion", 1))));
            case "kraftVoters" -> bytes(MemoryRecords.withVotersRecord(offset, timestamp, leaderEpoch, room, new VotersRecord()));
            default -> throw new IllegalArgumentException(spec.text("kind"));
        };
    }

    private static byte[] records(Spec spec) {
        byte magic = (byte) spec.number("magic", RecordBatch.CURRENT_MAGIC_VALUE);
        long next = spec.number("baseOffset", 0);
        boolean control = spec.flag("control");
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(CONTROL_BYTES), magic, spec.compression("compression"), spec.timestampType(magic), next,
            spec.number("appendTime", RecordBatch.NO_TIMESTAMP), producerId(spec), producerEpoch(spec), baseSequence(spec),
            spec.flag("transactional"), control, (int) spec.number("partitionLeaderEpoch", RecordBatch.NO_PARTITION_LEADER_EPOCH),
            Integer.MAX_VALUE, spec.number("deleteHorizonMs", RecordBatch.NO_TIMESTAMP));
        for (Spec.Entry entry : spec.records(magic)) {
            long offset = entry.offset() == null ? next : entry.offset();
            if (spec.flag("unchecked")) // any magic inside, any offset: what brokers of old may have left
                builder.appendUncheckedWithOffset(offset, LegacyRecord.create(entry.magic(), entry.timestamp(), entry.key(), entry.value()));
            else if (control)
                builder.appendControlRecordWithOffset(offset, new SimpleRecord(entry.timestamp(), entry.key(), entry.value(), entry.headers()));
            else
                builder.appendWithOffset(offset, entry.timestamp(), entry.key(), entry.value(), entry.headers());
            next = offset + 1;
        }
        if (spec.has("lastOffset")) builder.overrideLastOffset(spec.number("lastOffset", 0));
        return bytes(builder.build());
    }

    /** The header that the cleaner leaves of a batch whose records are all gone. */
    private static byte[] empty(Spec spec) {
        ByteBuffer header = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        long offset = spec.number("baseOffset", 0);
        DefaultRecordBatch.writeEmptyHeader(header, RecordBatch.MAGIC_VALUE_V2, producerId(spec), producerEpoch(spec), baseSequence(spec), offset,
            spec.number("lastOffset", offset), (int) spec.number("partitionLeaderEpoch", RecordBatch.NO_PARTITION_LEADER_EPOCH),
            spec.timestampType(RecordBatch.MAGIC_VALUE_V2), spec.number("timestamp", RecordBatch.NO_TIMESTAMP), spec.flag("transactional"), spec.flag("control"));
        return header.array();
    }

    private static LeaderChangeMessage leaderChange(Spec spec) {
        int voters = (int) spec.number("voters", 1);
        return new LeaderChangeMessage().setLeaderId((int) spec.number("leaderId", 1))
            .setVoters(IntStream.rangeClosed(1, voters).mapToObj(id -> new LeaderChangeMessage.Voter().setVoterId(id)).toList())
            .setGrantingVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1)));
    }

    private static long producerId(Spec spec) {
        return spec.number("producerId", RecordBatch.NO_PRODUCER_ID);
    }

    private static short producerEpoch(Spec spec) {
        return (short) spec.number("producerEpoch", RecordBatch.NO_PRODUCER_EPOCH);
    }

    private static int baseSequence(Spec spec) {
        return (int) spec.number("baseSequence", RecordBatch.NO_SEQUENCE);
    }

    static byte[] bytes(MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private Writer() { }
}
