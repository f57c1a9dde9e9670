// Time segmentio's kafka-go: protocol.RecordSet writes and reads.
//
// A RecordSet writes one batch with its size in front, and reads a whole log with one size in front.
package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"time"

	"kfbench/arms"

	"github.com/segmentio/kafka-go/protocol"
)

const sizeBytes = 4 // before each record set

type client struct {
	batches [][]protocol.Record
	buffer  bytes.Buffer
	log     []byte // with its size in front
}

func open(entries []arms.Entry, batch int) arms.Client {
	c := &client{}
	for first := 0; first < len(entries); first += batch {
		var records []protocol.Record
		for _, each := range entries[first:min(first+batch, len(entries))] {
			records = append(records, protocol.Record{
				Offset: each.Offset,
				Time:   time.UnixMilli(each.Timestamp),
				Key:    protocol.NewBytes(each.Key),
				Value:  protocol.NewBytes(each.Value),
			})
		}
		c.batches = append(c.batches, records)
	}
	return c
}

func (c *client) Write() {
	c.buffer.Reset()
	for _, records := range c.batches {
		for i := range records {
			rewind(records[i].Key)
			rewind(records[i].Value)
		}
		set := protocol.RecordSet{Version: 2, Records: protocol.NewRecordReader(records...)}
		_, err := set.WriteTo(&c.buffer)
		arms.Check(err)
	}
}

// rewind makes a key or value readable again, because writing reads it to its end.
func rewind(item protocol.Bytes) {
	if seeker, ok := item.(io.Seeker); ok {
		_, err := seeker.Seek(0, io.SeekStart)
		arms.Check(err)
	}
}

func (c *client) Log() []byte {
	c.log = make([]byte, sizeBytes)
	for rest := c.buffer.Bytes(); len(rest) > 0; {
		end := sizeBytes + int(binary.BigEndian.Uint32(rest))
		c.log = append(c.log, rest[sizeBytes:end]...)
		rest = rest[end:]
	}
	binary.BigEndian.PutUint32(c.log, uint32(len(c.log)-sizeBytes))
	return c.log[sizeBytes:]
}

func (c *client) Read() (sum int64) {
	c.each(func(record *protocol.Record) {
		sum += arms.Sum(record.Offset, record.Time.UnixMilli(), length(record.Key), length(record.Value))
	})
	return sum
}

func length(item protocol.Bytes) int {
	if item == nil {
		return -1
	}
	return item.Len()
}

func (c *client) Entries() (found []arms.Entry) {
	c.each(func(record *protocol.Record) {
		key, err := protocol.ReadAll(record.Key)
		arms.Check(err)
		value, err := protocol.ReadAll(record.Value)
		arms.Check(err)
		found = append(found, arms.Entry{Offset: record.Offset, Timestamp: record.Time.UnixMilli(), Key: key, Value: value})
	})
	return found
}

func (c *client) each(visit func(*protocol.Record)) {
	var set protocol.RecordSet
	_, err := set.ReadFrom(bytes.NewBuffer(c.log))
	arms.Check(err)
	for {
		record, err := set.Records.ReadRecord()
		if err == io.EOF {
			return
		}
		arms.Check(err)
		visit(record)
		release(record.Key)
		release(record.Value)
	}
}

// release gives the pages of a key or value back to the library's pool.
func release(item protocol.Bytes) {
	if item != nil {
		arms.Check(item.Close())
	}
}

func main() { arms.Serve("github.com/segmentio/kafka-go", open) }
