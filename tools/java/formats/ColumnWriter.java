package kfbench;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Chooses the kind of a column and writes it. docs/columnar.md, "What our encoder chooses", has the rules. `plan` comes
 * before `write`.
 */
final class ColumnWriter {
    private static final int BITS = 0, BASE = 1, PATCHED = 2, MOST_WIDTH = 56, SMALL = 16;

    private long[] values, steps;
    private int n, kind, width, bytes;
    private boolean hasTrend;
    private long base;
    private int[] byBits;

    /** Choose the kind of n ≥ 2 values. Return the size of the column in bytes. hasTrend: they are ages or offset deltas. */
    int plan(long[] column, int count, boolean trend) {
        values = column;
        n = count;
        hasTrend = trend;
        bytes = Integer.MAX_VALUE;
        long least = least(column, n), largest = largest(column, n);
        if (least >= 0) offer(BITS, 1 + Packed.size(n, Packed.width(largest)), 0, Packed.width(largest));
        int spread = Packed.width(largest - least), overhead = 1 + Wire.sizeOfVarlong(least);
        offer(BASE, overhead + Packed.size(n, spread), least, spread);
        if (!hasTrend) {
            offerPatched(values, n, least, largest, overhead);
            return bytes;
        }
        if (steps == null || steps.length < n - 1) steps = new long[n - 1];
        for (int i = 1; i < n; i++) steps[i - 1] = values[i] - values[i - 1];
        long leastStep = least(steps, n - 1), largestStep = largest(steps, n - 1);
        int stepWidth = Packed.width(largestStep - leastStep), front = 1 + Wire.sizeOfVarlong(values[0]) + Wire.sizeOfVarlong(leastStep);
        offer(PATCHED, front + Packed.size(n - 1, stepWidth) + 1, leastStep, stepWidth);
        offerPatched(steps, n - 1, leastStep, largestStep, front);
        return bytes;
    }

    private static long least(long[] x, int m) { return Arrays.stream(x, 0, m).min().getAsLong(); }

    private static long largest(long[] x, int m) { return Arrays.stream(x, 0, m).max().getAsLong(); }

    private void offer(int offered, long size, long offeredBase, int offeredWidth) {
        if (size >= bytes) return;
        bytes = (int) size;
        kind = offered;
        base = offeredBase;
        width = offeredWidth;
    }

    /** floor(mean r), or -1 if the sum of the r may be too large for an int64. */
    private static long mean(long[] x, int m, long least, long largest) {
        if (Packed.bitLength(largest - least) + Packed.bitLength(m) > 63) return -1;
        long sum = 0;
        for (int i = 0; i < m; i++) sum += x[i] - least;
        return sum / m;
    }

    private void offerPatched(long[] x, int m, long least, long largest, int overhead) {
        int widest = Packed.bitLength(largest - least);
        long mean = mean(x, m, least, largest);
        if (widest == 0 || mean >= 0 && widest < (m < SMALL ? 3 : 4) + Packed.bitLength(mean)) return;
        if (byBits == null) byBits = new int[Long.SIZE + 1];
        else Arrays.fill(byBits, 0);
        for (int i = 0; i < m; i++) byBits[Packed.bitLength(x[i] - least)]++;
        int patches = 0;
        for (int w = widest - 1; w >= 0; w--) {
            patches += byBits[w + 1];
            if (w > MOST_WIDTH) continue;
            long highs = 0;
            for (int bits = w + 1; bits <= widest; bits++) highs += (long) byBits[bits] * ((bits - w + 6) / 7);
            long size = overhead + Packed.size(m, w) + Wire.sizeOfUnsignedVarint(patches) + Packed.size(patches, Packed.bitLength(m - 1)) + highs;
            offer(PATCHED, size, least, w);
        }
    }

    int plannedBytes() { return bytes; }

    /** Write the planned column. The buffer has room for it. */
    void write(ByteBuffer out) {
        boolean areSteps = hasTrend && kind == PATCHED;
        out.put((byte) (kind << 6 | Packed.code(width)));
        if (areSteps) Wire.writeVarlong(values[0], out);
        if (kind != BITS) Wire.writeVarlong(base, out);
        long[] x = areSteps ? steps : values;
        int m = areSteps ? n - 1 : n;
        Packed.write(out, x, m, base, width);
        if (kind == PATCHED) writePatches(out, x, m);
    }

    private void writePatches(ByteBuffer out, long[] x, int m) {
        long[] positions = new long[m];
        int e = 0;
        for (int i = 0; i < m; i++) if (width < Long.SIZE && (x[i] - base) >>> width != 0) positions[e++] = i;
        Wire.writeUnsignedVarint(e, out);
        Packed.write(out, positions, e, 0, Packed.bitLength(m - 1));
        for (int i = 0; i < e; i++) Wire.writeUnsignedVarlong((x[(int) positions[i]] - base) >>> width, out);
    }
}
