package kfbench;

import java.nio.ByteBuffer;

/** The key of a control record is `version i16, type i16`. Types 0 and 1 need a value of `version i16, epoch i32`. */
final class Control {
    private static final int COMMIT = 1, KEY_BYTES = 4, MARKER_BYTES = 6;

    static void check(byte[] key, byte[] value) {
        check(key == null ? null : ByteBuffer.wrap(key), value == null ? null : ByteBuffer.wrap(value));
    }

    static void check(ByteBuffer key, ByteBuffer value) {
        if (key == null || key.remaining() < KEY_BYTES || key.getShort(key.position()) < 0) throw Batch.refused("the key of a control record");
        int type = key.getShort(key.position() + 2);
        boolean isMarker = type >= 0 && type <= COMMIT;
        if (isMarker && (value == null || value.remaining() < MARKER_BYTES || value.getShort(value.position()) < 0))
            throw Batch.refused("the value of a control record");
    }

    private Control() { }
}
