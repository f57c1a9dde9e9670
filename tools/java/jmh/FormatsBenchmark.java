package kfbench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/**
 * Times each operation on one batch per call, in turn on those of a file of tasks. CRCs are not checked, as in Kafka's own
 * benchmarks. Before anything is timed, the written bytes must have the SHA-256 of ours. `tools/jmh.py` writes the file.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class FormatsBenchmark {
    @Param({"v2", "v2-own", "v3", "v3-headers-first", "columnar"})
    public String format;

    @Param({"none", "lz4", "zstd"})
    public String codec;

    @Param({"1", "10", "50", "200"})
    public int records;

    @Param("")
    public String tasks; // a folder of RECORDS.json

    private Arm arm;
    private Arm.Task[] given;
    private ByteBuffer[] batches;
    private long[] targets;
    private ByteBuffer room;
    private int next;

    @Setup
    public void setUp() throws IOException, NoSuchAlgorithmException {
        JsonNode file = new ObjectMapper().readTree(new File(tasks, records + ".json"));
        int codecId = Wire.codecId(codec), number = file.get("batches").size(), mostBytes = 0;
        arm = Arm.of(format, codecId);
        given = new Arm.Task[number];
        batches = new ByteBuffer[number];
        targets = new long[number];
        for (int i = 0; i < number; i++) {
            given[i] = Server.task(file.get("batches").get(i), codecId);
            targets[i] = given[i].timestamps()[records / 2];
            mostBytes = Math.max(mostBytes, given[i].roomBytes());
        }
        room = ByteBuffer.allocate(mostBytes);
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (int i = 0; i < number; i++) {
            ByteBuffer written = arm.write(given[i], room.clear());
            digest.update(written.duplicate());
            batches[i] = ByteBuffer.allocate(written.remaining()).put(written).flip();
        }
        String sha256 = HexFormat.of().formatHex(digest.digest()), ours = file.get("sha256").get(format + " " + codec).asText();
        if (!sha256.equals(ours)) throw new IllegalStateException(format + " " + codec + ": other bytes than ours");
        for (int i = 0; i < number; i++) check(i);
    }

    private void check(int i) {
        int[] seen = new int[2];
        arm.iterate(batches[i], record -> seen[0]++);
        arm.skim(batches[i], record -> seen[1]++);
        long largest = given[i].timestamps()[0];
        for (long each : given[i].timestamps()) largest = Math.max(largest, each);
        long found = arm.lookup(batches[i], targets[i]), whole = arm.lookupWhole(batches[i], targets[i]), validated = arm.validate(batches[i]);
        if (seen[0] != records || seen[1] != records || found < 0 || found != whole || given[i].timestamps()[(int) found] < targets[i] || validated != largest)
            throw new IllegalStateException(format + " " + codec + ": batch " + i + " is not read as it was written");
    }

    private int turn() { return next = next + 1 == batches.length ? 0 : next + 1; }

    @Benchmark
    public ByteBuffer write() { return arm.write(given[turn()], room.clear()); }

    @Benchmark
    public void iterate(Blackhole hole) { arm.iterate(batches[turn()], hole::consume); }

    @Benchmark
    public void skim(Blackhole hole) { arm.skim(batches[turn()], hole::consume); }

    @Benchmark
    public long validate() { return arm.validate(batches[turn()]); }

    @Benchmark
    public long lookup() {
        int i = turn();
        return arm.lookup(batches[i], targets[i]);
    }

    @Benchmark
    public long lookupWhole() {
        int i = turn();
        return arm.lookupWhole(batches[i], targets[i]);
    }
}
