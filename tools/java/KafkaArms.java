package timing;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.util.stream.Collectors;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Time Kafka's own writer and reader, one sample per request, so that another process can interleave them with its own
 * arms. Only the thread's own CPU time counts, without the compiler's and the collector's.
 *
 * The output begins with two strings: the JVM with its options and collectors, and Kafka's version. Then each request of the
 * input gets an answer, to the end of the input. All numbers are big-endian; an int length comes before each key, value and
 * log, and a length of -1 means null.
 *
 * Request R: int records, int records per batch, then for each record long offset, long timestamp, key and value. Answer, for
 * each magic: the log, the records read from it in the same form, and a long, the result of the timed read.
 *
 * Request S: operation (0 write, 1 read), magic, int calls. Answer: long CPU ns, long wall ns.
 */
final class KafkaArms {
    private static final byte[] MAGICS = {0, 1, 2};
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private static long sink; // keeps the compiler from removing the read

    private record Entry(long offset, long timestamp, byte[] key, byte[] value) { }

    private record Cell(int batch, Entry[] entries, ByteBuffer buffer, ByteBuffer[] logs) {
        static Cell read(DataInputStream in) throws IOException {
            Entry[] entries = new Entry[in.readInt()];
            int batch = in.readInt();
            long room = 0;
            for (int i = 0; i < entries.length; i++) {
                entries[i] = new Entry(in.readLong(), in.readLong(), bytes(in), bytes(in));
                room += 128 + length(entries[i].key) + length(entries[i].value);
            }
            Cell cell = new Cell(batch, entries, ByteBuffer.allocate(Math.toIntExact(room)), new ByteBuffer[MAGICS.length]);
            for (byte magic : MAGICS) cell.logs[magic] = cell.written(magic);
            return cell;
        }

        private static byte[] bytes(DataInputStream in) throws IOException {
            int length = in.readInt();
            return length < 0 ? null : in.readNBytes(length);
        }

        private static int length(byte[] item) { return item == null ? 0 : item.length; }

        private ByteBuffer written(byte magic) {
            write(magic);
            byte[] log = new byte[buffer.position()];
            buffer.flip().get(log);
            return ByteBuffer.wrap(log);
        }

        /** Write as a producer does: one builder per batch, keys and values as arrays, all magics into one buffer. */
        void write(byte magic) {
            buffer.clear();
            ByteBufferOutputStream stream = new ByteBufferOutputStream(buffer);
            TimestampType type = magic == RecordBatch.MAGIC_VALUE_V0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME;
            for (int first = 0; first < entries.length; first += batch) {
                MemoryRecordsBuilder builder = new MemoryRecordsBuilder(stream, magic, Compression.NONE, type, entries[first].offset,
                    RecordBatch.NO_TIMESTAMP, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE,
                    false, false, RecordBatch.NO_PARTITION_LEADER_EPOCH, Integer.MAX_VALUE);
                int end = Math.min(first + batch, entries.length);
                for (int i = first; i < end; i++) {
                    Entry each = entries[i];
                    builder.appendWithOffset(each.offset, each.timestamp, each.key, each.value, Record.EMPTY_HEADERS);
                }
                builder.close();
            }
            if (stream.buffer() != buffer) throw new IllegalStateException("the buffer was too small");
        }

        /** Read as a consumer does: the checksum, then every record's offset, time and lengths. Return their sum. */
        long read(byte magic) {
            long sum = 0;
            for (RecordBatch batch : batches(magic)) {
                batch.ensureValid();
                for (Record record : batch) sum += record.offset() + record.timestamp() + record.keySize() + record.valueSize();
            }
            return sum;
        }

        /** Return the records of a log in the form of a request. */
        byte[] records(byte magic) throws IOException {
            ByteArrayOutputStream found = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(found);
            for (RecordBatch batch : batches(magic)) {
                for (Record record : batch) {
                    out.writeLong(record.offset());
                    out.writeLong(record.timestamp());
                    put(record.key(), out);
                    put(record.value(), out);
                }
            }
            return found.toByteArray();
        }

        private Iterable<? extends RecordBatch> batches(byte magic) {
            return MemoryRecords.readableRecords(logs[magic].duplicate()).batches();
        }

        private static void put(ByteBuffer item, DataOutputStream out) throws IOException {
            if (item == null) {
                out.writeInt(-1);
                return;
            }
            byte[] data = new byte[item.remaining()];
            item.get(data);
            KafkaArms.put(data, out);
        }
    }

    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        out.writeUTF(machine());
        out.writeUTF(AppInfoParser.getVersion());
        out.flush();
        Cell cell = null;
        for (int request = in.read(); request >= 0; request = in.read()) {
            if (request == 'R') {
                cell = Cell.read(in);
                for (byte magic : MAGICS) {
                    put(cell.logs[magic].array(), out);
                    put(cell.records(magic), out);
                    out.writeLong(cell.read(magic));
                }
            } else if (request == 'S' && cell != null) {
                sample(cell, in.readByte() == 0, in.readByte(), in.readInt(), out);
            } else {
                throw new EOFException("no request begins with " + request);
            }
            out.flush();
        }
        if (sink == Long.MIN_VALUE) out.writeLong(sink); // never
    }

    private static String machine() {
        String options = String.join(" ", ManagementFactory.getRuntimeMXBean().getInputArguments());
        String collectors = ManagementFactory.getGarbageCollectorMXBeans().stream().map(GarbageCollectorMXBean::getName)
            .collect(Collectors.joining(", "));
        return System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version") + " (" + options + "; " + collectors + ")";
    }

    private static void put(byte[] data, DataOutputStream out) throws IOException {
        out.writeInt(data.length);
        out.write(data);
    }

    private static void sample(Cell cell, boolean writes, byte magic, int calls, DataOutputStream out) throws IOException {
        long wall = System.nanoTime(), cpu = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < calls; i++) {
            if (writes) cell.write(magic);
            else sink += cell.read(magic);
        }
        out.writeLong(THREADS.getCurrentThreadCpuTime() - cpu);
        out.writeLong(System.nanoTime() - wall);
    }

    private KafkaArms() { }
}
