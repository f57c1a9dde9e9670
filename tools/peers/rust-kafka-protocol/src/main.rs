//! Time kafka-protocol: RecordBatchEncoder writes, RecordBatchDecoder reads. Both take batch after batch from one buffer.

use std::io;

use arms::{Client, Entry};
use bytes::{Bytes, BytesMut};
use indexmap::IndexMap;
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Record, RecordBatchDecoder,
    RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

const OPTIONS: RecordEncodeOptions = RecordEncodeOptions { version: 2, compression: Compression::None };

struct KafkaProtocol {
    records: Vec<Record>,
    batch: usize,
    buffer: BytesMut,
    log: Bytes,
}

/// Make a record. The encoder ends a batch where sequence minus offset changes, so a missing sequence counts like the offset.
fn record(entry: &Entry) -> Record {
    Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
        producer_id: NO_PRODUCER_ID,
        producer_epoch: NO_PRODUCER_EPOCH,
        timestamp_type: TimestampType::Creation,
        offset: entry.offset,
        sequence: NO_SEQUENCE + entry.offset as i32,
        timestamp: entry.timestamp,
        key: entry.key.clone().map(Bytes::from),
        value: entry.value.clone().map(Bytes::from),
        headers: IndexMap::new(),
    }
}

impl KafkaProtocol {
    fn each(&self, mut visit: impl FnMut(Record)) {
        let sets = RecordBatchDecoder::decode_all(&mut self.log.clone()).expect("batches");
        sets.into_iter().flat_map(|set| set.records).for_each(&mut visit);
    }
}

impl Client for KafkaProtocol {
    fn open(entries: &[Entry], batch: usize) -> Self {
        Self { records: entries.iter().map(record).collect(), batch, buffer: BytesMut::new(), log: Bytes::new() }
    }

    fn write(&mut self) {
        self.buffer.clear();
        for records in self.records.chunks(self.batch) {
            RecordBatchEncoder::encode(&mut self.buffer, records, &OPTIONS).expect("records");
        }
    }

    fn log(&mut self) -> Vec<u8> {
        self.log = Bytes::copy_from_slice(&self.buffer);
        self.log.to_vec()
    }

    fn read(&self) -> i64 {
        let mut sum = 0;
        self.each(|each| sum += arms::sum(each.offset, each.timestamp, &each.key, &each.value));
        sum
    }

    fn entries(&self) -> Vec<Entry> {
        let mut found = Vec::new();
        self.each(|each| {
            found.push(Entry {
                offset: each.offset,
                timestamp: each.timestamp,
                key: each.key.map(|item| item.to_vec()),
                value: each.value.map(|item| item.to_vec()),
            });
        });
        found
    }
}

fn main() -> io::Result<()> {
    arms::serve::<KafkaProtocol>("kafka-protocol", include_str!("../Cargo.lock"))
}
