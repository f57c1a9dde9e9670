package kfbench;

import java.util.Arrays;

/** The distinct values of a header position in the order of first appearance, and each record's index. */
final class HeaderDictionary {
    private final byte[][] distinct;
    private final long[] indexes;
    private int d, metadataBytes;

    private HeaderDictionary(int n, int most) {
        distinct = new byte[most][];
        indexes = new long[n];
    }

    /** Return null if there are more than `most` distinct values. A null value counts as one. */
    static HeaderDictionary of(byte[][] values, int most) {
        HeaderDictionary found = new HeaderDictionary(values.length, most);
        for (int i = 0; i < values.length; i++) {
            int index = i > 0 && Arrays.equals(values[i], values[i - 1]) ? (int) found.indexes[i - 1] : found.indexOf(values[i]);
            if (index == most) return null;
            if (index == found.d) found.add(values[i]);
            found.indexes[i] = index;
        }
        return found;
    }

    private int indexOf(byte[] value) {
        int i = 0;
        while (i < d && !Arrays.equals(distinct[i], value)) i++;
        return i;
    }

    private void add(byte[] value) {
        distinct[d++] = value;
        metadataBytes += value == null ? 1 : Wire.sizeOfUnsignedVarint(value.length + 1) + value.length;
    }

    int size() { return d; }

    /** Metadata and payload, without the form. */
    long bytes(int n) { return (long) metadataBytes + Packed.size(n, Packed.bitLength(d - 1)); }

    void write(int n, Wire.Output out, Wire.Output payload) {
        out.ensureRemaining((int) bytes(n) + 8);
        out.buffer().put((byte) d);
        for (int i = 0; i < d; i++) {
            byte[] value = distinct[i];
            Wire.writeUnsignedVarint(value == null ? 0 : value.length + 1, out.buffer());
            if (value != null) payload.write(value, 0, value.length);
        }
        Packed.write(out.buffer(), indexes, n, 0, Packed.bitLength(d - 1));
    }
}
