package kfbench;

import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;

/** A record. A reader that skips payload leaves key, value and headers null. */
record Entry(long offset, long timestamp, ByteBuffer key, ByteBuffer value, Header[] headers) {
    static final Header[] NO_HEADERS = new Header[0];

    static Entry withoutPayload(long offset, long timestamp) {
        return new Entry(offset, timestamp, null, null, NO_HEADERS);
    }
}
