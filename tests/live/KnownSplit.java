package profile;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * One thread computes, reads FILE and sleeps in turn. It prints when it began and ended (ms since 1970), and the CPU
 * time in ns that computing and reading took.
 */
final class KnownSplit {
    private static final int STEPS = 60_000;
    private static final int REPEATS = 400; // a part takes longer than a tick of the kernel, at which samples are taken
    private static long computed;

    public static void main(String[] arguments) throws Exception {
        var clock = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        var buffer = ByteBuffer.allocateDirect(1 << 20);
        long computing = 0, reading = 0;
        try (var file = FileChannel.open(Path.of(arguments[0]))) {
            for (int i = 0; i < 5_000; i++) compute();
            var begin = System.currentTimeMillis();
            var end = System.nanoTime() + Duration.ofSeconds(8).toNanos();
            while (System.nanoTime() < end) {
                var before = clock.getCurrentThreadCpuTime();
                for (int i = 0; i < REPEATS; i++) compute();
                var between = clock.getCurrentThreadCpuTime();
                for (int i = 0; i < REPEATS; i++) file.read(buffer.clear(), 0);
                reading += clock.getCurrentThreadCpuTime() - between;
                computing += between - before;
                LockSupport.parkNanos(REPEATS * 300_000L);
            }
            System.out.println(begin + " " + System.currentTimeMillis() + " " + computing + " " + reading);
        }
    }

    private static void compute() {
        for (long i = 0; i < STEPS; i++) computed += i * i ^ computed;
    }
}
