package kfbench;

import java.nio.ByteBuffer;

/** Reads columns of two or more values. docs/columnar.md, "Columns", has the table of kinds. */
final class ColumnReader {
    private static final int DELTA = 0, PATCHED = 1, PATCHED_DELTA = 2, RICE = 3, RICE_DELTA = 4, DICTIONARY = 5;

    /** Read n values. isAges: delta kinds subtract their steps. */
    static long[] read(ByteBuffer in, int n, boolean isAges) {
        long[] values = new long[n];
        int descriptor = in.get() & 0xFF, low = descriptor & 63;
        switch (descriptor >> 6) {
            case 0 -> Packed.read(in, n, 0, Packed.widthOf(low), values);
            case 1 -> Packed.read(in, n, Wire.readVarlong(in), Packed.widthOf(low), values);
            case 2 -> {
                long base = Wire.readVarlong(in), slope = Wire.readVarlong(in);
                Packed.read(in, n, base, Packed.widthOf(low), values);
                for (int i = 1; i < n; i++) values[i] += i * slope;
            }
            default -> read(low, in, n, isAges, values);
        }
        return values;
    }

    private static void read(int kind, ByteBuffer in, int n, boolean isAges, long[] values) {
        if (kind > DICTIONARY) throw Batch.refused("column kind 3 with " + kind);
        int code = in.get() & 0xFF, width = Packed.widthOf(code);
        boolean patches = kind == PATCHED || kind == PATCHED_DELTA, quotients = kind == RICE || kind == RICE_DELTA;
        if ((patches || quotients) && width == 64) throw Batch.refused("width 64 in column kind " + kind);
        boolean isDelta = kind == DELTA || kind == PATCHED_DELTA || kind == RICE_DELTA;
        long first = isDelta ? Wire.readVarlong(in) : 0, base = Wire.readVarlong(in);
        if (kind == DICTIONARY) {
            readDictionary(in, n, base, width, values);
            return;
        }
        int m = isDelta ? n - 1 : n;
        Packed.read(in, m, base, width, values);
        if (patches) addPatches(in, m, width, values);
        if (quotients) addQuotients(in, m, width, values);
        if (isDelta) addUp(first, n, isAges, values);
    }

    private static void addUp(long first, int n, boolean isAges, long[] values) {
        long value = first;
        for (int i = 0; i < n - 1; i++) {
            long step = values[i];
            values[i] = value;
            value = isAges ? value - step : value + step;
        }
        values[n - 1] = value;
    }

    private static void readDictionary(ByteBuffer in, int n, long base, int width, long[] values) {
        int d = in.get() & 0xFF;
        if (d < 2) throw Batch.refused("a dictionary of " + d);
        long[] dictionary = new long[d];
        Packed.read(in, d, base, width, dictionary);
        Packed.read(in, n, 0, Packed.width(d - 1), values);
        for (int i = 0; i < n; i++) {
            if (values[i] >= d) throw Batch.refused("index " + values[i] + " of a dictionary of " + d);
            values[i] = dictionary[(int) values[i]];
        }
    }

    private static void addPatches(ByteBuffer in, int m, int width, long[] values) {
        int e = Wire.readUnsignedVarint(in);
        if (e < 1 || e > m) throw Batch.refused(e + " patches of " + m + " values");
        long[] positions = new long[e];
        Packed.read(in, e, 0, Packed.width(m - 1), positions);
        long before = -1;
        for (long position : positions) {
            long signed = Wire.readVarlong(in), high = (signed << 1) ^ (signed >> 63); // Kafka has no public reader of unsigned ones
            if (position <= before || position >= m || high == 0 || Packed.bitLength(high) + width > 64) throw Batch.refused("a patch");
            values[(int) position] += high << width;
            before = position;
        }
    }

    private static void addQuotients(ByteBuffer in, int m, int width, long[] values) {
        long bit = 8L * in.position(), end = 8L * in.limit();
        int wholeLoads = in.limit() - 8;
        for (int i = 0; i < m; i++) {
            long start = bit;
            while (true) {
                if (bit >= end) throw Batch.refused("the quotients end early");
                int at = (int) (bit >>> 3), shift = (int) (bit & 7);
                long word = (at <= wholeLoads ? Long.reverseBytes(in.getLong(at)) : Packed.tail(in, at)) >>> shift;
                if (word != 0) {
                    bit += Long.numberOfTrailingZeros(word);
                    break;
                }
                bit += 64 - shift;
            }
            values[i] += (bit++ - start) << width;
        }
        Packed.end(in, bit);
    }

    private ColumnReader() { }
}
