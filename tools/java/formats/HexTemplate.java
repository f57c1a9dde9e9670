package kfbench;

import java.nio.ByteBuffer;

/** Values of one length, in which all characters that vary are lower-case hexadecimal digits. */
final class HexTemplate {
    private final boolean[] varies;
    private final int varying;

    private HexTemplate(boolean[] varies, int varying) {
        this.varies = varies;
        this.varying = varying;
    }

    /** Return null if the values are not of this kind, or all equal. */
    static HexTemplate of(byte[][] values) {
        byte[] first = values[0];
        boolean[] varies = new boolean[first.length];
        int varying = 0;
        for (byte[] value : values) {
            if (value.length != first.length) return null;
            for (int at = 0; at < first.length; at++) {
                if (varies[at] || value[at] == first[at]) continue;
                varies[at] = true;
                varying++;
            }
        }
        if (varying == 0) return null;
        for (byte[] value : values)
            for (int at = 0; at < first.length; at++) if (varies[at] && digit(value[at]) < 0) return null;
        return new HexTemplate(varies, varying);
    }

    static int digit(byte character) {
        return character >= '0' && character <= '9' ? character - '0' : character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
    }

    static byte character(int digit) { return (byte) (digit < 10 ? '0' + digit : 'a' + digit - 10); }

    static long digitBytes(int n, int varying) { return ((long) n * varying + 1) / 2; }

    /** Metadata and payload. */
    long bytes(int n) {
        int length = varies.length;
        return Wire.sizeOfUnsignedVarint(length) + Packed.size(length, 1) + (length - varying) + digitBytes(n, varying);
    }

    void write(byte[][] values, Wire.Output out, Wire.Output payload) {
        int length = varies.length;
        out.ensureRemaining(5 + Packed.size(length, 1));
        ByteBuffer metadata = out.buffer();
        Wire.writeUnsignedVarint(length, metadata);
        for (int at = 0; at < length; at += 8) {
            int mask = 0;
            for (int bit = 0; bit < 8 && at + bit < length; bit++) if (varies[at + bit]) mask |= 1 << bit;
            metadata.put((byte) mask);
        }
        payload.ensureRemaining((int) bytes(values.length));
        ByteBuffer to = payload.buffer();
        for (int at = 0; at < length; at++) if (!varies[at]) to.put(values[0][at]);
        int high = -1;
        for (byte[] value : values) {
            for (int at = 0; at < length; at++) {
                if (!varies[at]) continue;
                int digit = digit(value[at]);
                if (high >= 0) to.put((byte) (high << 4 | digit));
                high = high >= 0 ? -1 : digit;
            }
        }
        if (high >= 0) to.put((byte) (high << 4));
    }
}
