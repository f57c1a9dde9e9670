// Time franz-go: kmsg writes, kgo.ProcessFetchPartition reads.
//
// The producer's own writer is not exported. It appends the same fields without the structs of kmsg. Here the caller sets
// lengths and the checksum, as kmsg requires. ProcessFetchPartition skips offsets that it has passed, and offsets count from
// 0 in each batch, so each batch is a call.
package main

import (
	"encoding/binary"
	"hash/crc32"

	"kfbench/arms"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const lengthAt, lengthEnd, crcAt, crcEnd = 8, 12, 17, 21

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type client struct {
	entries          []arms.Entry
	batch            int
	buffer, payload  []byte
	log              []byte
	decompressor     kgo.Decompressor
	unsetBatchFields kmsg.RecordBatch
}

func open(entries []arms.Entry, batch int) arms.Client {
	none := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1}
	return &client{entries: entries, batch: batch, decompressor: kgo.DefaultDecompressor(), unsetBatchFields: none}
}

func (c *client) Write() {
	c.buffer = c.buffer[:0]
	for first := 0; first < len(c.entries); first += c.batch {
		c.writeBatch(c.entries[first:min(first+c.batch, len(c.entries))])
	}
}

func (c *client) writeBatch(entries []arms.Entry) {
	batch := c.unsetBatchFields
	batch.FirstOffset, batch.FirstTimestamp = entries[0].Offset, entries[0].Timestamp
	batch.MaxTimestamp = entries[0].Timestamp
	batch.NumRecords = int32(len(entries))
	batch.LastOffsetDelta = int32(entries[len(entries)-1].Offset - batch.FirstOffset)
	c.payload = c.payload[:0]
	for i := range entries {
		each := &entries[i]
		record := kmsg.Record{
			TimestampDelta64: each.Timestamp - batch.FirstTimestamp,
			OffsetDelta:      int32(each.Offset - batch.FirstOffset),
			Key:              each.Key,
			Value:            each.Value,
		}
		record.Length = int32(2 + kbin.VarlongLen(record.TimestampDelta64) + kbin.VarintLen(record.OffsetDelta) +
			kbin.VarintLen(int32(arms.Length(each.Key))) + len(each.Key) +
			kbin.VarintLen(int32(arms.Length(each.Value))) + len(each.Value)) // 2: attributes, number of headers
		c.payload = record.AppendTo(c.payload)
		batch.MaxTimestamp = max(batch.MaxTimestamp, each.Timestamp)
	}
	batch.Records = c.payload
	start := len(c.buffer)
	c.buffer = batch.AppendTo(c.buffer)
	written := c.buffer[start:]
	binary.BigEndian.PutUint32(written[lengthAt:], uint32(len(written)-lengthEnd))
	binary.BigEndian.PutUint32(written[crcAt:], crc32.Checksum(written[crcEnd:], castagnoli))
}

func (c *client) Log() []byte {
	c.log = append([]byte(nil), c.buffer...)
	return c.log
}

func (c *client) Read() (sum int64) {
	c.each(func(record *kgo.Record) {
		sum += arms.Sum(record.Offset, record.Timestamp.UnixMilli(), arms.Length(record.Key), arms.Length(record.Value))
	})
	return sum
}

func (c *client) Entries() (found []arms.Entry) {
	c.each(func(record *kgo.Record) {
		found = append(found, arms.Entry{Offset: record.Offset, Timestamp: record.Timestamp.UnixMilli(), Key: record.Key, Value: record.Value})
	})
	return found
}

func (c *client) each(visit func(*kgo.Record)) {
	options := kgo.ProcessFetchPartitionOpts{Topic: "topic"}
	for rest := c.log; len(rest) > 0; {
		size := lengthEnd + int(binary.BigEndian.Uint32(rest[lengthAt:]))
		options.Offset = 0
		fetched := kmsg.FetchResponseTopicPartition{RecordBatches: rest[:size]}
		partition, _ := kgo.ProcessFetchPartition(options, &fetched, c.decompressor, nil)
		arms.Check(partition.Err)
		for _, record := range partition.Records {
			visit(record)
		}
		rest = rest[size:]
	}
}

func main() { arms.Serve("github.com/twmb/franz-go", open) }
