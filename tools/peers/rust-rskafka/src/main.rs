//! Time rskafka: protocol::record::RecordBatch writes and reads.
//!
//! The module is public with the feature `unstable-fuzzing`. A batch is given its offset and time deltas when it is made, so
//! their computation is not timed.

use std::io::{self, Cursor};

use arms::{Client, Entry};
use rskafka::protocol::record::{
    ControlBatchOrRecords, Record, RecordBatch, RecordBatchCompression, RecordBatchTimestampType,
};
use rskafka::protocol::traits::{ReadType, WriteType};

struct Rskafka {
    batches: Vec<RecordBatch>,
    buffer: Vec<u8>,
    log: Vec<u8>,
}

fn batch(entries: &[Entry]) -> RecordBatch {
    let (first, last) = (&entries[0], &entries[entries.len() - 1]);
    let record = |each: &Entry| Record {
        timestamp_delta: each.timestamp - first.timestamp,
        offset_delta: (each.offset - first.offset) as i32,
        key: each.key.clone(),
        value: each.value.clone(),
        headers: Vec::new(),
    };
    RecordBatch {
        base_offset: first.offset,
        partition_leader_epoch: -1,
        last_offset_delta: (last.offset - first.offset) as i32,
        first_timestamp: first.timestamp,
        max_timestamp: entries.iter().map(|each| each.timestamp).max().unwrap_or(-1),
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        records: ControlBatchOrRecords::Records(entries.iter().map(record).collect()),
        compression: RecordBatchCompression::NoCompression,
        is_transactional: false,
        timestamp_type: RecordBatchTimestampType::CreateTime,
    }
}

impl Rskafka {
    /// Visit each record with its offset and timestamp.
    fn each(&self, mut visit: impl FnMut(i64, i64, Record)) {
        let mut data = Cursor::new(&self.log);
        while (data.position() as usize) < self.log.len() {
            let batch = RecordBatch::read(&mut data).expect("a batch");
            let ControlBatchOrRecords::Records(records) = batch.records else { panic!("a control batch") };
            for each in records {
                let offset = batch.base_offset + i64::from(each.offset_delta);
                visit(offset, batch.first_timestamp + each.timestamp_delta, each);
            }
        }
    }
}

impl Client for Rskafka {
    fn open(entries: &[Entry], size: usize) -> Self {
        Self { batches: entries.chunks(size).map(batch).collect(), buffer: Vec::new(), log: Vec::new() }
    }

    fn write(&mut self) {
        self.buffer.clear();
        for each in &self.batches {
            each.write(&mut self.buffer).expect("records");
        }
    }

    fn log(&mut self) -> Vec<u8> {
        self.log = self.buffer.clone();
        self.log.clone()
    }

    fn read(&self) -> i64 {
        let mut sum = 0;
        self.each(|offset, timestamp, each| sum += arms::sum(offset, timestamp, &each.key, &each.value));
        sum
    }

    fn entries(&self) -> Vec<Entry> {
        let mut found = Vec::new();
        self.each(|offset, timestamp, each| found.push(Entry { offset, timestamp, key: each.key, value: each.value }));
        found
    }
}

fn main() -> io::Result<()> {
    arms::serve::<Rskafka>("rskafka", include_str!("../Cargo.lock"))
}
