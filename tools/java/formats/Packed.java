package kfbench;

import java.nio.ByteBuffer;

/** Values of `width` bits one after another, the least significant bit first, padded to a byte with zero bits. */
final class Packed {
    private static final int MOST_WIDTH = 56, CODE_OF_64 = 63;

    /** W(v): the bit length of an unsigned value. */
    static int bitLength(long value) { return 64 - Long.numberOfLeadingZeros(value); }

    /** The least width that a column of values up to `largest` may have. */
    static int width(long largest) {
        int bits = bitLength(largest);
        return bits > MOST_WIDTH ? 64 : bits;
    }

    static int code(int width) { return width == 64 ? CODE_OF_64 : width; }

    static int widthOf(int code) {
        if (code > MOST_WIDTH && code != CODE_OF_64) throw Batch.refused("width code " + code);
        return code == CODE_OF_64 ? 64 : code;
    }

    static int size(int n, int width) { return (int) (((long) n * width + 7) >>> 3); }

    /** Write the low `width` bits of values[i] - base. */
    static void write(ByteBuffer out, long[] values, int n, long base, int width) {
        if (width == 0) return;
        long mask = -1L >>> (64 - width), pending = 0;
        int bits = 0;
        for (int i = 0; i < n; i++) {
            long value = (values[i] - base) & mask;
            pending |= value << bits;
            bits += width;
            if (bits >= 64) {
                out.putLong(Long.reverseBytes(pending));
                bits -= 64;
                pending = bits == 0 ? 0 : value >>> (width - bits);
            }
        }
        for (; bits > 0; bits -= 8, pending >>>= 8) out.put((byte) pending);
    }

    /** Read n values + base into `values`. Refuses padding that is not zero. */
    static void read(ByteBuffer in, int n, long base, int width, long[] values) {
        if (width == 0) {
            java.util.Arrays.fill(values, 0, n, base);
            return;
        }
        if ((long) n * width > 8L * in.remaining()) throw Batch.refused("the packed values end early");
        long mask = -1L >>> (64 - width), bit = 8L * in.position();
        int wholeLoads = in.limit() - 8;
        for (int i = 0; i < n; i++, bit += width) {
            int at = (int) (bit >>> 3);
            long word = at <= wholeLoads ? Long.reverseBytes(in.getLong(at)) : tail(in, at);
            values[i] = base + ((word >>> (bit & 7)) & mask);
        }
        end(in, bit);
    }

    /** The 8 bytes at `at`, as an int64 with the first byte lowest. Bytes behind the buffer are 0. */
    static long tail(ByteBuffer in, int at) {
        long word = 0;
        for (int i = Math.min(8, in.limit() - at) - 1; i >= 0; i--) word = word << 8 | (in.get(at + i) & 0xFF);
        return word;
    }

    /** Move to the byte after the one that holds the bit before `bit`. Refuses padding that is not zero. */
    static void end(ByteBuffer in, long bit) {
        int used = (int) (bit & 7);
        if (used != 0 && (in.get((int) (bit >>> 3)) & 0xFF) >>> used != 0) throw Batch.refused("padding is not zero");
        in.position((int) ((bit + 7) >>> 3));
    }

    private Packed() { }
}
