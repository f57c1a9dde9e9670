package kfbench;

import java.nio.ByteBuffer;

/** Reads columns of two or more values. docs/columnar.md, "Columns", has the table of kinds. */
final class ColumnReader {
    private static final int BITS = 0, BASE = 1, PATCHED = 2, SHORT_BITS = 31;

    /** Read n ages or offset deltas. */
    static long[] read(ByteBuffer in, int n) { return read(in, n, true); }

    /** Read n lengths, as codes, or n numbers of headers. Each is 0 to 2^31 - 1. */
    static long[] readShort(ByteBuffer in, int n) {
        long[] values = read(in, n, false);
        for (long value : values) if (value > Integer.MAX_VALUE) throw Batch.refused("a value of " + value);
        return values;
    }

    private static long[] read(ByteBuffer in, int n, boolean hasTrend) {
        long[] values = new long[n];
        int descriptor = in.get() & 0xFF, kind = descriptor >> 6, width = Packed.widthOf(descriptor & 63);
        if (kind > PATCHED) throw Batch.refused("column kind " + kind);
        boolean areSteps = kind == PATCHED && hasTrend;
        long first = areSteps ? Wire.readVarlong(in) : 0, base = kind == BITS ? 0 : Wire.readVarlong(in);
        if (!hasTrend && (width > SHORT_BITS || base != (int) base || base < 0)) throw Batch.refused("a column of " + width + " bits above " + base);
        int m = areSteps ? n - 1 : n;
        Packed.read(in, m, base, width, values);
        if (kind == PATCHED) addPatches(in, m, width, hasTrend ? Long.SIZE : SHORT_BITS, values);
        if (areSteps) addUp(first, n, values);
        return values;
    }

    private static void addUp(long first, int n, long[] values) {
        long value = first;
        for (int i = 0; i < n - 1; i++) {
            long step = values[i];
            values[i] = value;
            value += step;
        }
        values[n - 1] = value;
    }

    private static void addPatches(ByteBuffer in, int m, int width, int mostBits, long[] values) {
        int e = Wire.readUnsignedVarint(in);
        if (e < 0 || e > m) throw Batch.refused(e + " patches of " + m + " values");
        long[] positions = new long[e];
        Packed.read(in, e, 0, Packed.width(m - 1), positions);
        long before = -1;
        for (long position : positions) {
            long signed = Wire.readVarlong(in), high = (signed << 1) ^ (signed >> 63); // Kafka has no public reader of unsigned ones
            if (position <= before || position >= m || high == 0 || Packed.bitLength(high) + width > mostBits) throw Batch.refused("a patch");
            values[(int) position] += high << width;
            before = position;
        }
    }

    private ColumnReader() { }
}
