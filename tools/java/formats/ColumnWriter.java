package kfbench;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Chooses the kind of a column and writes it. docs/columnar.md, "What our encoder chooses", has the rules. `plan` comes
 * before `write`.
 */
final class ColumnWriter {
    /** The role of a column decides which kinds it may have. */
    enum Role { AGES, OFFSETS, LENGTHS, CODES }

    private enum Kind { BITS, BASE, SLOPE, DELTA, PATCHED, PATCHED_DELTA, RICE, RICE_DELTA, DICTIONARY }

    private static final int MOST_WIDTH = 56, SMALL = 16, MOST_DISTINCT = 16;

    private long[] values, steps, dictionary;
    private int n, width, bytes, distinct;
    private Kind kind;
    private long base, slope;
    private int[] byBits;

    /** Choose the kind of n ≥ 2 values. Return the size of the column in bytes. */
    int plan(long[] column, int count, Role role) {
        values = column;
        n = count;
        bytes = Integer.MAX_VALUE;
        long least = column[0], largest = column[0];
        for (int i = 1; i < n; i++) {
            least = Math.min(least, column[i]);
            largest = Math.max(largest, column[i]);
        }
        if (least >= 0) offer(Kind.BITS, 1 + Packed.size(n, Packed.width(largest)), 0, Packed.width(largest));
        int spread = Packed.width(largest - least);
        offer(Kind.BASE, 1 + Wire.sizeOfVarlong(least) + Packed.size(n, spread), least, spread);
        boolean hasSteps = role == Role.AGES || role == Role.OFFSETS;
        long leastStep = 0, largestStep = 0;
        if (hasSteps) {
            offerSlope();
            leastStep = largestStep = findSteps(role == Role.AGES);
            for (int i = 1; i < n - 1; i++) {
                leastStep = Math.min(leastStep, steps[i]);
                largestStep = Math.max(largestStep, steps[i]);
            }
            int stepWidth = Packed.width(largestStep - leastStep);
            offer(Kind.DELTA, deltaBytes(leastStep) + Packed.size(n - 1, stepWidth), leastStep, stepWidth);
        }
        offerSkewed(role, hasSteps, least, largest, leastStep, largestStep);
        return bytes;
    }

    /** Offer patches, rice and a dictionary, in the order of the table except that rice is compared last. */
    private void offerSkewed(Role role, boolean hasSteps, long least, long largest, long leastStep, long largestStep) {
        long mean = mean(values, n, least, largest), stepMean = hasSteps ? mean(steps, n - 1, leastStep, largestStep) : 0;
        int overhead = 2 + Wire.sizeOfVarlong(least);
        offerPatched(Kind.PATCHED, values, n, least, largest, mean, overhead);
        if (hasSteps) offerPatched(Kind.PATCHED_DELTA, steps, n - 1, leastStep, largestStep, stepMean, deltaBytes(leastStep));
        boolean mayHaveDictionary = role == Role.LENGTHS || role == Role.CODES;
        if (mayHaveDictionary && Packed.bitLength(largest - least) >= 4) offerDictionary(least, largest);
        if (role == Role.CODES) return;
        long rice = riceBytes(values, n, least, largest, mean, overhead);
        long delta = hasSteps ? riceBytes(steps, n - 1, leastStep, largestStep, stepMean, deltaBytes(leastStep)) : Long.MAX_VALUE;
        long smaller = Math.min(rice, delta);
        if (smaller == Long.MAX_VALUE || 8 * smaller > 7L * bytes) return;
        bytes = (int) smaller;
        kind = rice <= delta ? Kind.RICE : Kind.RICE_DELTA;
        base = rice <= delta ? least : leastStep;
        width = riceWidth(rice <= delta ? mean : stepMean);
    }

    private void offer(Kind offered, long size, long offeredBase, int offeredWidth) {
        if (size >= bytes) return;
        bytes = (int) size;
        kind = offered;
        base = offeredBase;
        width = offeredWidth;
    }

    private void offerSlope() {
        if (n < 3) return;
        long rise = Math.floorDiv(values[n - 1] - values[0], (long) (n - 1));
        if (rise == 0) return;
        long least = values[0], largest = values[0];
        for (int i = 1; i < n; i++) {
            least = Math.min(least, values[i] - i * rise);
            largest = Math.max(largest, values[i] - i * rise);
        }
        int spread = Packed.width(largest - least);
        slope = rise;
        offer(Kind.SLOPE, 1 + Wire.sizeOfVarlong(least) + Wire.sizeOfVarlong(rise) + Packed.size(n, spread), least, spread);
    }

    /** Fill `steps`. Return the first. */
    private long findSteps(boolean isAges) {
        if (steps == null || steps.length < n - 1) steps = new long[n - 1];
        for (int i = 1; i < n; i++) steps[i - 1] = isAges ? values[i - 1] - values[i] : values[i] - values[i - 1];
        return steps[0];
    }

    private int deltaBytes(long leastStep) { return 2 + Wire.sizeOfVarlong(values[0]) + Wire.sizeOfVarlong(leastStep); }

    /** floor(mean r), or -1 if the sum of the r may be too large for an int64. */
    private static long mean(long[] x, int m, long least, long largest) {
        if (Packed.bitLength(largest - least) + Packed.bitLength(m) > 63) return -1;
        long sum = 0;
        for (int i = 0; i < m; i++) sum += x[i] - least;
        return sum / m;
    }

    private void offerPatched(Kind offered, long[] x, int m, long least, long largest, long mean, int overhead) {
        int widest = Packed.bitLength(largest - least);
        if (widest == 0 || mean >= 0 && widest < (m < SMALL ? 3 : 4) + Packed.bitLength(mean)) return;
        if (byBits == null) byBits = new int[Long.SIZE + 1];
        else Arrays.fill(byBits, 0);
        for (int i = 0; i < m; i++) byBits[Packed.bitLength(x[i] - least)]++;
        int bestWidth = 0, patches = 0;
        long best = Long.MAX_VALUE;
        for (int w = widest - 1; w >= 0; w--) {
            patches += byBits[w + 1];
            if (w > MOST_WIDTH) continue;
            long highs = 0;
            for (int bits = w + 1; bits <= widest; bits++) highs += (long) byBits[bits] * ((bits - w + 6) / 7);
            long size = overhead + Packed.size(m, w) + Wire.sizeOfUnsignedVarint(patches) + Packed.size(patches, Packed.bitLength(m - 1)) + highs;
            if (size < best) {
                best = size;
                bestWidth = w;
            }
        }
        offer(offered, best, least, bestWidth);
    }

    private static int riceWidth(long mean) { return Math.min(Math.max(Packed.bitLength(mean) - 1, 0), MOST_WIDTH); }

    /** The size with quotients, or Long.MAX_VALUE if they are not tried. */
    private static long riceBytes(long[] x, int m, long least, long largest, long mean, int overhead) {
        if (mean < 0 || Packed.bitLength(largest - least) < 2 + Packed.bitLength(mean)) return Long.MAX_VALUE;
        int w = riceWidth(mean);
        long bits = m;
        for (int i = 0; i < m; i++) bits += (x[i] - least) >>> w;
        return overhead + Packed.size(m, w) + (bits + 7) / 8;
    }

    private void offerDictionary(long least, long largest) {
        if (dictionary == null) dictionary = new long[MOST_DISTINCT];
        int d = 0;
        for (int i = 0; i < n; i++) {
            if (indexOf(values[i], d) < d) continue;
            if (d == MOST_DISTINCT) return;
            dictionary[d++] = values[i];
        }
        distinct = d;
        int w = Packed.width(largest - least);
        int size = 3 + Wire.sizeOfVarlong(least) + Packed.size(d, w) + Packed.size(n, Packed.bitLength(d - 1));
        offer(Kind.DICTIONARY, size, least, w);
    }

    private int indexOf(long value, int d) {
        int i = 0;
        while (i < d && dictionary[i] != value) i++;
        return i;
    }

    int plannedBytes() { return bytes; }

    /** Write the planned column. The buffer has room for it. */
    void write(ByteBuffer out) {
        int code = Packed.code(width);
        if (kind.ordinal() <= Kind.SLOPE.ordinal()) {
            out.put((byte) (kind.ordinal() << 6 | code));
            if (kind != Kind.BITS) Wire.writeVarlong(base, out);
            if (kind == Kind.SLOPE) writeSlope(out);
            else Packed.write(out, values, n, base, width);
            return;
        }
        out.put((byte) (3 << 6 | kind.ordinal() - Kind.DELTA.ordinal())).put((byte) code);
        boolean isDelta = kind == Kind.DELTA || kind == Kind.PATCHED_DELTA || kind == Kind.RICE_DELTA;
        if (isDelta) Wire.writeVarlong(values[0], out);
        Wire.writeVarlong(base, out);
        long[] x = isDelta ? steps : values;
        int m = isDelta ? n - 1 : n;
        if (kind == Kind.DICTIONARY) {
            writeDictionary(out);
            return;
        }
        Packed.write(out, x, m, base, width);
        if (kind == Kind.PATCHED || kind == Kind.PATCHED_DELTA) writePatches(out, x, m);
        if (kind == Kind.RICE || kind == Kind.RICE_DELTA) writeQuotients(out, x, m);
    }

    private void writeSlope(ByteBuffer out) {
        Wire.writeVarlong(slope, out);
        long[] rest = new long[n];
        for (int i = 0; i < n; i++) rest[i] = values[i] - i * slope;
        Packed.write(out, rest, n, base, width);
    }

    private void writeDictionary(ByteBuffer out) {
        out.put((byte) distinct);
        Packed.write(out, dictionary, distinct, base, width);
        long[] indexes = new long[n];
        for (int i = 0; i < n; i++) indexes[i] = indexOf(values[i], distinct);
        Packed.write(out, indexes, n, 0, Packed.bitLength(distinct - 1));
    }

    private void writePatches(ByteBuffer out, long[] x, int m) {
        long[] positions = new long[m];
        int e = 0;
        for (int i = 0; i < m; i++) if ((x[i] - base) >>> width != 0) positions[e++] = i;
        Wire.writeUnsignedVarint(e, out);
        Packed.write(out, positions, e, 0, Packed.bitLength(m - 1));
        for (int i = 0; i < e; i++) Wire.writeUnsignedVarlong((x[(int) positions[i]] - base) >>> width, out);
    }

    private void writeQuotients(ByteBuffer out, long[] x, int m) {
        long pending = 0, bits = 0;
        for (int i = 0; i < m; i++) {
            bits += (x[i] - base) >>> width;
            for (; bits >= 64; bits -= 64, pending = 0) out.putLong(Long.reverseBytes(pending));
            pending |= 1L << bits;
            if (++bits == 64) {
                out.putLong(Long.reverseBytes(pending));
                bits = pending = 0;
            }
        }
        for (; bits > 0; bits -= 8, pending >>>= 8) out.put((byte) pending);
    }
}
