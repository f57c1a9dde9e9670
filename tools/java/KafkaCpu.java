package timing;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * CPU time of Kafka's own writer and reader on records from standard input: all magics of a cell in the same rounds, each
 * round in a fresh random order, v2 twice. The thread's own CPU time is counted: neither the compiler's nor the collector's.
 *
 * Input, big-endian: cells, rounds, long sample ns, long least and long most warm-up ns of an operation of a cell; for each
 * cell: records, records a batch, and for each record long offset, long timestamp, key and value, each with its length
 * before it, -1: null. Output: a JSON line for all, then one a cell and magic (the hash of its log), and one an arm.
 */
final class KafkaCpu {
    private static final byte[] MAGICS = {0, 1, 2, 2}; // the last is v2 against itself
    private static final int BASE = 2;
    private static final int NO_FASTER = 100; // rounds in a row, after which an arm counts as warm
    private static final double STILL_FASTER = 0.02;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private static long sink; // what was read goes somewhere, so that reading cannot be left out

    private record Entry(long offset, long timestamp, byte[] key, byte[] value) { }

    private record Cell(int batch, Entry[] entries) {
        static Cell read(DataInputStream in) throws IOException {
            Entry[] entries = new Entry[in.readInt()];
            int batch = in.readInt();
            for (int i = 0; i < entries.length; i++) entries[i] = new Entry(in.readLong(), in.readLong(), bytes(in), bytes(in));
            return new Cell(batch, entries);
        }

        private static byte[] bytes(DataInputStream in) throws IOException {
            int length = in.readInt();
            return length < 0 ? null : in.readNBytes(length);
        }

        int room() {
            long payload = 0;
            for (Entry each : entries) payload += (each.key == null ? 0 : each.key.length) + (each.value == null ? 0 : each.value.length);
            return Math.toIntExact(payload + 128L * entries.length);
        }
    }

    private record Settings(int rounds, long sampleNs, long leastWarmUpNs, long mostWarmUpNs) { }

    private interface Arm { void call(); }

    public static void main(String[] arguments) throws IOException, NoSuchAlgorithmException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        int cells = in.readInt();
        Settings settings = new Settings(in.readInt(), in.readLong(), in.readLong(), in.readLong());
        out.printf("{\"java\":\"%s %s\",\"kafka\":\"%s\"}%n", System.getProperty("java.vm.name"), System.getProperty("java.vm.version"),
            AppInfoParser.getVersion());
        for (int i = 0; i < cells; i++) {
            time(i, Cell.read(in), settings, out);
            out.flush();
        }
        if (sink == Long.MIN_VALUE) out.println(); // never
    }

    private static void time(int number, Cell cell, Settings settings, PrintStream out) throws NoSuchAlgorithmException {
        ByteBuffer buffer = ByteBuffer.allocate(cell.room()); // all arms write into this one
        List<Arm> writers = new ArrayList<>(), readers = new ArrayList<>();
        for (int j = 0; j < MAGICS.length; j++) {
            byte magic = MAGICS[j];
            writers.add(() -> write(cell, magic, buffer));
            write(cell, magic, buffer);
            byte[] log = Arrays.copyOf(buffer.array(), buffer.position());
            ByteBuffer view = ByteBuffer.wrap(log);
            readers.add(() -> read(view));
            if (j < MAGICS.length - 1)
                out.printf("{\"cell\":%d,\"magic\":%d,\"bytes\":%d,\"sha256\":\"%s\"}%n", number, magic, log.length,
                    HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(log)));
        }
        measure(number, "encode", writers, settings, out);
        measure(number, "decode", readers, settings, out);
    }

    /** As a producer writes: a builder a batch, keys and values as arrays. */
    private static void write(Cell cell, byte magic, ByteBuffer buffer) {
        buffer.clear();
        ByteBufferOutputStream stream = new ByteBufferOutputStream(buffer);
        TimestampType type = magic == RecordBatch.MAGIC_VALUE_V0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME;
        for (int first = 0; first < cell.entries.length; first += cell.batch) {
            MemoryRecordsBuilder builder = new MemoryRecordsBuilder(stream, magic, Compression.NONE, type, cell.entries[first].offset,
                RecordBatch.NO_TIMESTAMP, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE, false, false,
                RecordBatch.NO_PARTITION_LEADER_EPOCH, Integer.MAX_VALUE);
            int end = Math.min(first + cell.batch, cell.entries.length);
            for (int i = first; i < end; i++) {
                Entry each = cell.entries[i];
                builder.appendWithOffset(each.offset, each.timestamp, each.key, each.value, Record.EMPTY_HEADERS);
            }
            builder.close();
        }
        if (stream.buffer() != buffer) throw new IllegalStateException("the buffer was too small");
    }

    /** As a consumer reads: the checksum, then every record's offset, time and lengths. */
    private static void read(ByteBuffer log) {
        long sum = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(log.duplicate()).batches()) {
            batch.ensureValid();
            for (Record record : batch) sum += record.offset() + record.timestamp() + record.keySize() + record.valueSize();
        }
        sink += sum;
    }

    private static void measure(int number, String operation, List<Arm> arms, Settings settings, PrintStream out) {
        Random random = new Random(number);
        int[] order = {0, 1, 2, 3};
        int warmUpRounds = warmUp(arms, order, random, settings);
        long once = Long.MAX_VALUE;
        for (int i = 0; i < 5; i++) once = Math.min(once, sample(arms.get(BASE), 1)[1]);
        int loops = (int) Math.max(1, -Math.floorDiv(-settings.sampleNs, Math.max(1, once)));
        long[][] cpu = new long[arms.size()][settings.rounds], wall = new long[arms.size()][settings.rounds];
        for (int round = 0; round < settings.rounds; round++) {
            shuffle(order, random);
            for (int j : order) {
                long[] times = sample(arms.get(j), loops);
                cpu[j][round] = times[0];
                wall[j][round] = times[1];
            }
        }
        for (int j = 0; j < arms.size(); j++)
            out.printf("{\"cell\":%d,\"operation\":\"%s\",\"format\":\"v%d\",\"arm\":\"%s\",\"warm_up_rounds\":%d,\"inner_loops\":%d,\"cpu_ns\":%s,"
                + "\"wall_ns\":%s}%n", number, operation, MAGICS[j], j == arms.size() - 1 ? "aa" : "measure", warmUpRounds, loops,
                Arrays.toString(cpu[j]), Arrays.toString(wall[j]));
    }

    /** Until no arm has become faster for a while; the rounds that it took. */
    private static int warmUp(List<Arm> arms, int[] order, Random random, Settings settings) {
        long began = System.nanoTime();
        double[] fastest = new double[arms.size()];
        Arrays.fill(fastest, Double.MAX_VALUE);
        int rounds = 0;
        for (int quiet = 0; quiet < NO_FASTER || System.nanoTime() - began < settings.leastWarmUpNs; rounds++) {
            if (System.nanoTime() - began > settings.mostWarmUpNs) break;
            shuffle(order, random);
            quiet++;
            for (int j : order) {
                long cpu = sample(arms.get(j), 1)[0];
                if (cpu < fastest[j] * (1 - STILL_FASTER)) {
                    fastest[j] = cpu;
                    quiet = 0;
                }
            }
        }
        return rounds;
    }

    private static void shuffle(int[] order, Random random) {
        for (int i = order.length - 1; i > 0; i--) {
            int j = random.nextInt(i + 1), kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
    }

    /** CPU and wall time of the calls, in ns. */
    private static long[] sample(Arm arm, int loops) {
        long wall = System.nanoTime(), cpu = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < loops; i++) arm.call();
        return new long[] {THREADS.getCurrentThreadCpuTime() - cpu, System.nanoTime() - wall};
    }

    private KafkaCpu() { }
}
