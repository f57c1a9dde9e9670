package profile;

import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingFile;

/**
 * Print the CPU samples of a recording between two times (ns since 1970), a line per thread and stack:
 * samples, thread id, frames. Frames are CLASS.METHOD with the top first, separated by `;`. A sample without a stack
 * has no frames. The first lines are `lost` and `biased`: lost samples, and samples taken at the next safepoint.
 */
final class Stacks {
    public static void main(String[] arguments) throws Exception {
        Instant begin = at(arguments[1]), end = at(arguments[2]);
        Map<String, Long> counts = new TreeMap<>();
        long lost = 0, biased = 0;
        try (var recording = new RecordingFile(Path.of(arguments[0]))) {
            while (recording.hasMoreEvents()) {
                var event = recording.readEvent();
                if (event.getStartTime().isBefore(begin) || !event.getStartTime().isBefore(end)) continue;
                switch (event.getEventType().getName()) {
                    case "jdk.CPUTimeSample" -> {
                        counts.merge(line(event), 1L, Long::sum);
                        if (event.getBoolean("biased")) biased++;
                    }
                    case "jdk.CPUTimeSamplesLost" -> lost += event.getInt("lostSamples");
                    default -> { }
                }
            }
        }
        System.out.println("lost\t" + lost + "\nbiased\t" + biased);
        counts.forEach((line, count) -> System.out.println(count + "\t" + line));
    }

    private static Instant at(String ns) {
        return Instant.EPOCH.plusNanos(Long.parseLong(ns));
    }

    private static String line(RecordedEvent event) {
        var thread = event.getThread("eventThread");
        var stack = event.getStackTrace();
        var frames = stack == null ? "" : stack.getFrames().stream().map(Stacks::name).collect(Collectors.joining(";"));
        return (thread == null ? -1 : thread.getOSThreadId()) + "\t" + frames;
    }

    private static String name(RecordedFrame frame) {
        return frame.getMethod().getType().getName() + "." + frame.getMethod().getName();
    }
}
