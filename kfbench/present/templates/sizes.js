"use strict";
/**
 * Exact sizes of a batch without a codec, by the rules of `Format.size`.
 *
 * All records have the same lengths, so only offset and time deltas differ. Their varints grow at a few records. All
 * records between two of these have the same size, so a batch of a million takes ten steps.
 * window.kfbench.sizes(settings) returns {format: bytes}. window.kfbench.fields(settings) returns {format: {group:
 * bytes}}. A format that cannot carry the settings is null. Settings: records, key_bytes, value_bytes, span_ms,
 * headers, header_key_bytes, header_value_bytes, and optionally null_values: the last so many values are null.
 */
window.kfbench = {...window.kfbench, ...(() => {
  const {formats, stops, ages} = JSON.parse(document.getElementById("kfbench-rules").textContent);
  const HEADER = "batch header", OFFSETS = "offsets", LENGTHS = "lengths and counts", TIMES = "timestamps";
  const ATTRIBUTES = "attributes, magic", RECORD_HEADERS = "record headers", PAYLOAD = "keys and values";
  const DEFAULTS = {records: 1, key_bytes: -1, value_bytes: -1, span_ms: 0, headers: 0, header_key_bytes: 0,
    header_value_bytes: -1, null_values: 0};

  const zigzag = x => x < 0 ? -2 * x - 1 : 2 * x;
  /** Bytes of an unsigned varint, for 0 to 2^53. */
  function uvarint(x) {
    let bytes = 1;
    for (; x >= 128; x = Math.floor(x / 128)) bytes++;
    return bytes;
  }
  const varint = x => uvarint(zigzag(x));
  const present = length => Math.max(length, 0);
  /** The sizes of counts and of lengths that may be null (-1), in formats with and without zig-zag. */
  const numbers = isUnsigned => isUnsigned
    ? {count: uvarint, length: x => uvarint(x + 1), first: 128}
    : {count: varint, length: varint, first: 64};

  /** The smallest i with floor(i * span / (records - 1)) >= delta. */
  const firstAt = (delta, span, records) => {
    const numerator = BigInt(delta) * BigInt(records - 1), divisor = BigInt(span);
    return Number((numerator + divisor - 1n) / divisor);
  };
  const timeDelta = (i, {span_ms, records}) =>
    records > 1 ? Number(BigInt(i) * BigInt(span_ms) / BigInt(records - 1)) : 0;

  /** Ranges of records of equal size: [{records, offset, time, value_bytes}], offset and time in bytes. */
  function ranges(set, {count, first}) {
    const {records, span_ms, null_values} = set, starts = new Set([0, records - null_values]);
    for (let offset = first; offset < records; offset *= 128) starts.add(offset);
    for (let delta = 64; records > 1 && delta <= span_ms; delta *= 128) starts.add(firstAt(delta, span_ms, records));
    const sorted = [...starts].filter(start => start < records).sort((a, b) => a - b);
    return sorted.map((start, at) => ({
      records: (sorted[at + 1] ?? records) - start,
      offset: count(start),
      time: varint(timeDelta(start, set)),
      value_bytes: start < records - null_values ? set.value_bytes : -1,
    }));
  }

  /** The bytes of one record's headers: lengths without their count, and contents. */
  const recordHeaders = ({headers, header_key_bytes, header_value_bytes}, {count, length}) => ({
    lengths: headers * (count(header_key_bytes) + length(header_value_bytes)),
    contents: headers * (header_key_bytes + present(header_value_bytes)),
  });

  const payload = ({records, key_bytes, value_bytes, null_values}) =>
    records * present(key_bytes) + (records - null_values) * present(value_bytes);

  /** v0, v1 and enriched: fixed bytes per message. */
  function messages(format, set) {
    const parts = Object.entries(format.message).map(([group, bytes]) => [group, bytes * set.records]);
    return {...Object.fromEntries(parts), [PAYLOAD]: payload(set)};
  }

  /**
   * v2, v3 and kip98, which has no length of a null key or of a value. The header's varints are counted for one record,
   * and grow with last offset and time span.
   */
  function batch(format, set) {
    const isKip98 = format.layout === "kip98", size = numbers(isKip98 || format.is_unsigned);
    const each = recordHeaders(set, size), {records, key_bytes, headers} = set;
    const found = {[HEADER]: format.header, [OFFSETS]: 0, [TIMES]: 0, [LENGTHS]: 0, [RECORD_HEADERS]: 0,
      [ATTRIBUTES]: format.attributes * set.records, [PAYLOAD]: payload(set)};
    const isShared = format.shares_headers && headers > 0;
    if (!format.has_fixed_header) {
      found[HEADER] += size.count(records - 1) - 1 + varint(records > 1 ? set.span_ms : 0) - 1;
    }
    if (isShared) { // tag 1: its number, its size, the number of headers, and the headers once
      const lengths = size.count(headers) + each.lengths;
      found[HEADER] += 1 + uvarint(lengths + each.contents);
      found[LENGTHS] += lengths;
      found[RECORD_HEADERS] += each.contents;
    }
    const inside = isShared ? {count: 1, lengths: 0, contents: 0} : {count: size.count(headers), ...each};
    let metadata = 0;
    for (const {records: n, offset, time, value_bytes} of ranges(set, size)) {
      const lengths = isKip98 ? key_bytes < 0 ? 0 : uvarint(key_bytes)
        : size.length(key_bytes) + size.length(value_bytes) + inside.count + inside.lengths;
      const fields = format.attributes + offset + time + lengths;
      metadata += n * fields;
      found[OFFSETS] += n * offset;
      found[TIMES] += n * time;
      found[LENGTHS] += n * lengths;
      found[RECORD_HEADERS] += n * inside.contents;
      if (!format.is_headers_first) {
        const record = fields + present(key_bytes) + present(value_bytes) + inside.contents;
        found[LENGTHS] += n * size.count(record);
      }
    }
    if (format.is_headers_first) found[LENGTHS] += uvarint(metadata);
    return found;
  }

  /** columnar: constant columns are formulas. Ages are known at the stops only, and no formula covers some nulls. */
  function columnar(format, set) {
    const {records, key_bytes, value_bytes, span_ms, headers, null_values} = set, isOne = records === 1;
    const ageBytes = isOne || span_ms === 0 ? 0
      : ages[stops.span_ms.indexOf(span_ms)]?.[stops.records.indexOf(records)];
    if (ageBytes === undefined || null_values > 0 && null_values < records) return null;
    const value = null_values ? -1 : value_bytes, size = numbers(true), each = recordHeaders(set, size);
    const column = length => length < 0 ? 0 : isOne ? uvarint(length + 1) : 1 + varint(length + 1);
    let lengths = column(key_bytes) + column(value);
    if (headers) lengths += uvarint(headers) + each.lengths + (isOne ? 0 : 1 + headers); // mode, and a form each
    return {[HEADER]: format.header - 1 + uvarint(records), [TIMES]: ageBytes, [LENGTHS]: lengths,
      [RECORD_HEADERS]: each.contents, [PAYLOAD]: payload(set)};
  }

  const LAYOUTS = {messages, batch, kip98: batch, columnar};

  function fields(settings) {
    const set = {...DEFAULTS, ...settings};
    const isWhole = Object.keys(DEFAULTS).every(name => Number.isSafeInteger(set[name]) && set[name] >= -1);
    const isNull = set.key_bytes < -1 || !isWhole || set.records < 1 || set.span_ms < 0 || set.headers < 0
      || set.header_key_bytes < 0 || set.null_values < 0 || set.null_values > set.records;
    return Object.fromEntries(formats.map(format => [format.name,
      isNull || set.headers && !format.has_headers ? null : LAYOUTS[format.layout](format, set)]));
  }

  const sum = groups => Object.values(groups).reduce((total, bytes) => total + bytes, 0);
  const sizes = settings =>
    Object.fromEntries(Object.entries(fields(settings)).map(([name, found]) => [name, found && sum(found)]));

  return {sizes, fields, formats, stops, sum};
})()};
