// Package arms lets another process time a Go library, one sample per request.
//
// The output begins with two strings: the Go version with its settings, and the library's version. Then each request of
// the input gets an answer, to the end of the input. Numbers and strings are as in tools/java/KafkaArms.java: big-endian,
// an int length before each key, value and log, and -1 as the length of null.
//
// Request R: int records, int records per batch, then for each record long offset, long timestamp, key and value.
// Answer: the log, the records read from it in the same form, and a long, the result of the timed read.
//
// Request S: operation (0 write, 1 read), magic (2), int calls. Answer: long CPU ns, long wall ns.
package arms

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// Entry is a record without headers. A nil key or value is null.
type Entry struct {
	Offset, Timestamp int64
	Key, Value        []byte
}

// Sum returns what the timed read adds up for each record. A null counts -1.
func Sum(offset, timestamp int64, keyLength, valueLength int) int64 {
	return offset + timestamp + int64(keyLength) + int64(valueLength)
}

// Length returns the length of a key or value, -1 for null.
func Length(item []byte) int {
	if item == nil {
		return -1
	}
	return len(item)
}

// Client is a library with the records of one request.
type Client interface {
	Write()           // write all batches into a reused buffer; timed
	Log() []byte      // return a copy of the batches that Write wrote, which the methods below read
	Read() int64      // read the batches of Log with their checksums, and return the Sum of all records; timed
	Entries() []Entry // read the batches of Log
}

// The clock below is the thread's. Locked in init, main stays on the process's first thread, so that others can tell it
// from the collector's threads.
func init() { runtime.LockOSThread() }

// Serve answers requests until the input ends. module is the library's path in go.mod; open makes a client.
func Serve(module string, open func(entries []Entry, batch int) Client) {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<16), bufio.NewWriterSize(os.Stdout, 1<<16)
	text(out, fmt.Sprintf("%s (GOGC=%d, %d threads)", runtime.Version(), gcPercent(), runtime.GOMAXPROCS(0)))
	text(out, version(module))
	var client Client
	for {
		out.Flush()
		kind, err := in.ReadByte()
		if err == io.EOF {
			return
		}
		switch {
		case err == nil && kind == 'R':
			client = load(in, out, open)
		case err == nil && kind == 'S' && client != nil:
			sample(in, out, client)
		default:
			fail("no request begins with %d (%v)", kind, err)
		}
	}
}

func load(in io.Reader, out io.Writer, open func([]Entry, int) Client) Client {
	entries := make([]Entry, integer[int32](in))
	batch := int(integer[int32](in))
	for i := range entries {
		entries[i] = Entry{integer[int64](in), integer[int64](in), bytes(in), bytes(in)}
	}
	client := open(entries, batch)
	client.Write()
	sized(out, client.Log())
	sized(out, encoded(client.Entries()))
	put(out, client.Read())
	return client
}

func sample(in io.Reader, out io.Writer, client Client) {
	operation, _, calls := integer[int8](in), integer[int8](in), int(integer[int32](in))
	var sum int64
	wall, cpu := time.Now(), threadNs()
	for range calls {
		if operation == 0 {
			client.Write()
		} else {
			sum += client.Read()
		}
	}
	cpuNs, wallNs := threadNs()-cpu, time.Since(wall).Nanoseconds()
	runtime.KeepAlive(sum)
	put(out, cpuNs)
	put(out, wallNs)
}

func threadNs() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		fail("no clock of the thread: %v", err)
	}
	return now.Nano()
}

func gcPercent() int {
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return percent
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, each := range info.Deps {
		if each.Path == module {
			return each.Version
		}
	}
	return "unknown"
}

func encoded(entries []Entry) []byte {
	var data []byte
	for _, each := range entries {
		data = binary.BigEndian.AppendUint64(data, uint64(each.Offset))
		data = binary.BigEndian.AppendUint64(data, uint64(each.Timestamp))
		for _, item := range [][]byte{each.Key, each.Value} {
			data = append(binary.BigEndian.AppendUint32(data, uint32(int32(Length(item)))), item...)
		}
	}
	return data
}

func integer[T int8 | int32 | int64](in io.Reader) (number T) {
	if err := binary.Read(in, binary.BigEndian, &number); err != nil {
		fail("the request is cut short: %v", err)
	}
	return number
}

func bytes(in io.Reader) []byte {
	length := integer[int32](in)
	if length < 0 {
		return nil
	}
	item := make([]byte, length)
	if _, err := io.ReadFull(in, item); err != nil {
		fail("the request is cut short: %v", err)
	}
	return item
}

func put(out io.Writer, number any) { _ = binary.Write(out, binary.BigEndian, number) }

func sized(out io.Writer, data []byte) {
	put(out, int32(len(data)))
	_, _ = out.Write(data)
}

func text(out io.Writer, line string) {
	put(out, uint16(len(line)))
	_, _ = io.WriteString(out, line)
}

// Check ends the program if a library returned an error.
func Check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(1)
}
