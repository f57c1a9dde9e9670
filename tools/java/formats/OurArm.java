package kfbench;

import java.nio.ByteBuffer;
import java.util.function.Consumer;

final class OurArm implements Arm {
    private final String format;
    private final Wire.Codec codec, notCaching; // Kafka's lookup does not cache a codec's buffers

    OurArm(String format, int codec) {
        this.format = format;
        this.codec = new Wire.Codec(codec, true);
        notCaching = new Wire.Codec(codec, false);
    }

    @Override
    public ByteBuffer write(Task task, ByteBuffer room) {
        Builder builder = Builder.of(format, new Wire.Output(room), codec, task.fields());
        for (int i = 0; i < task.offsets().length; i++)
            builder.append(task.offsets()[i], task.timestamps()[i], task.keys()[i], task.values()[i], task.headers()[i]);
        return builder.build();
    }

    @Override
    public void iterate(ByteBuffer batch, Consumer<Object> sink) {
        for (Batch each : Batch.all(batch.duplicate())) {
            try (Batch.Records records = each.records(codec)) {
                while (records.hasNext()) sink.accept(records.next());
            }
        }
    }

    @Override
    public void skim(ByteBuffer batch, Consumer<Object> sink) {
        for (Batch each : Batch.all(batch.duplicate())) {
            try (Batch.Records records = each.skim(codec)) {
                while (records.hasNext()) sink.accept(records.next());
            }
        }
    }

    @Override
    public long validate(ByteBuffer batch) {
        long largest = -1;
        for (Batch each : Batch.all(batch.duplicate()))
            largest = Validation.validate(each, codec, System.currentTimeMillis(), Long.MAX_VALUE, Long.MAX_VALUE, 0, 0);
        return largest;
    }

    @Override
    public long lookup(ByteBuffer batch, long timestamp) {
        for (Batch each : Batch.all(batch.duplicate()))
            if (each.maxTimestamp() >= timestamp) return first(each.skim(notCaching), timestamp);
        return -1;
    }

    @Override
    public long lookupWhole(ByteBuffer batch, long timestamp) {
        for (Batch each : Batch.all(batch.duplicate()))
            if (each.maxTimestamp() >= timestamp) return first(each.records(notCaching), timestamp);
        return -1;
    }

    private static long first(Batch.Records records, long timestamp) {
        try (records) {
            while (records.hasNext()) {
                Entry entry = records.next();
                if (entry.timestamp() >= timestamp) return entry.offset();
            }
        }
        return -1;
    }
}
