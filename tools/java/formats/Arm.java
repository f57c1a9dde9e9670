package kfbench;

import java.nio.ByteBuffer;
import java.util.function.Consumer;
import org.apache.kafka.common.header.Header;

/** The operations that are timed, on one batch each. V2Arm has them with Kafka's classes, OurArm with those of this folder. */
interface Arm {
    /** A batch to write. `fields` has the producer's state; offsets count from 0. */
    record Task(Fields fields, long[] offsets, long[] timestamps, byte[][] keys, byte[][] values, Header[][] headers, int roomBytes) { }

    /** Write a batch into the buffer. Return it, from its position to its limit. */
    ByteBuffer write(Task task, ByteBuffer room);

    /** Pass every record to the sink: offset, timestamp, key, value and headers. */
    void iterate(ByteBuffer batch, Consumer<Object> sink);

    /** Pass every record to the sink, with no more than offset and timestamp. */
    void skim(ByteBuffer batch, Consumer<Object> sink);

    /** Check a producer's batch and assign offsets from 0 in place. Return the largest timestamp. */
    long validate(ByteBuffer batch);

    /** Return the offset of the first record with this timestamp or a later one, or -1. Read no more than offset and timestamp. */
    long lookup(ByteBuffer batch, long timestamp);

    /** The same with the reader of whole records, as Kafka 4.4.0 does it for v2. */
    long lookupWhole(ByteBuffer batch, long timestamp);

    /** name: "v2" for Kafka's classes, "v2-own" and "v2-again" for v2 in the code of this folder, or another format of this folder. */
    static Arm of(String name, int codec) {
        return name.equals("v2") ? new V2Arm(codec) : new OurArm(name.startsWith("v2-") ? "v2" : name, codec);
    }
}
