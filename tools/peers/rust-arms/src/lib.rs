//! Let another process time a Rust library, one sample per request.
//!
//! Requests and answers are those of the Go package in tools/peers/go-arms.

use std::hint::black_box;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::time::Instant;

/// A record without headers. The key or value `None` is null.
#[derive(Clone)]
pub struct Entry {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

/// What the timed read adds up for each record. A null counts -1.
pub fn sum<T: AsRef<[u8]>>(offset: i64, timestamp: i64, key: &Option<T>, value: &Option<T>) -> i64 {
    offset + timestamp + length(key) + length(value)
}

fn length<T: AsRef<[u8]>>(item: &Option<T>) -> i64 {
    item.as_ref().map_or(-1, |data| data.as_ref().len() as i64)
}

/// A library with the records of one request.
pub trait Client {
    /// Prepare the records. `batch` is the number of records per batch.
    fn open(entries: &[Entry], batch: usize) -> Self;
    /// Write all batches into a reused buffer; timed.
    fn write(&mut self);
    /// Return a copy of the batches that `write` wrote, which the methods below read.
    fn log(&mut self) -> Vec<u8>;
    /// Read the batches of `log` with their checksums, and return the sum of all records; timed.
    fn read(&self) -> i64;
    /// Read the batches of `log`.
    fn entries(&self) -> Vec<Entry>;
}

/// Answer requests until the input ends. `library` is a crate's name in the text `lock` of Cargo.lock.
pub fn serve<C: Client>(library: &str, lock: &str) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let compiler = option_env!("KFBENCH_RUSTC").unwrap_or("rustc");
    text(&mut out, &format!("{compiler} (release, the system's allocator)"))?;
    text(&mut out, locked_version(library, lock))?;
    let mut client = None;
    loop {
        out.flush()?;
        let mut kind = [0];
        if input.read(&mut kind)? == 0 {
            return Ok(());
        }
        match (kind[0], &mut client) {
            (b'R', _) => client = Some(load::<C>(&mut input, &mut out)?),
            (b'S', Some(client)) => sample(&mut input, &mut out, client)?,
            (other, _) => return Err(io::Error::other(format!("no request begins with {other}"))),
        }
    }
}

fn load<C: Client>(input: &mut impl Read, out: &mut impl Write) -> io::Result<C> {
    let (records, batch) = (int(input)?, int(input)?);
    let entries = (0..records).map(|_| entry(input)).collect::<io::Result<Vec<_>>>()?;
    let mut client = C::open(&entries, batch as usize);
    client.write();
    sized(out, &client.log())?;
    sized(out, &encoded(&client.entries()))?;
    out.write_all(&client.read().to_be_bytes())?;
    Ok(client)
}

fn sample<C: Client>(input: &mut impl Read, out: &mut impl Write, client: &mut C) -> io::Result<()> {
    let mut operation_and_magic = [0; 2];
    input.read_exact(&mut operation_and_magic)?;
    let calls = int(input)?;
    let (wall, cpu) = (Instant::now(), thread_ns());
    for _ in 0..calls {
        if operation_and_magic[0] == 0 {
            client.write();
        } else {
            black_box(client.read());
        }
    }
    let (cpu_ns, wall_ns) = (thread_ns() - cpu, wall.elapsed().as_nanos() as i64);
    out.write_all(&cpu_ns.to_be_bytes())?;
    out.write_all(&wall_ns.to_be_bytes())
}

fn thread_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec that the call fills.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    assert_eq!(status, 0, "no clock of the thread");
    now.tv_sec as i64 * 1_000_000_000 + now.tv_nsec as i64
}

fn locked_version<'a>(library: &str, lock: &'a str) -> &'a str {
    let (_, after) = lock.split_once(&format!("name = \"{library}\"\nversion = \"")).expect("a crate of Cargo.lock");
    after.split('"').next().unwrap_or_default()
}

fn entry(input: &mut impl Read) -> io::Result<Entry> {
    Ok(Entry { offset: long(input)?, timestamp: long(input)?, key: bytes(input)?, value: bytes(input)? })
}

fn int(input: &mut impl Read) -> io::Result<i32> {
    let mut data = [0; 4];
    input.read_exact(&mut data)?;
    Ok(i32::from_be_bytes(data))
}

fn long(input: &mut impl Read) -> io::Result<i64> {
    let mut data = [0; 8];
    input.read_exact(&mut data)?;
    Ok(i64::from_be_bytes(data))
}

fn bytes(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let Ok(length) = usize::try_from(int(input)?) else { return Ok(None) };
    let mut item = vec![0; length];
    input.read_exact(&mut item)?;
    Ok(Some(item))
}

fn encoded(entries: &[Entry]) -> Vec<u8> {
    let mut data = Vec::new();
    for each in entries {
        data.extend(each.offset.to_be_bytes());
        data.extend(each.timestamp.to_be_bytes());
        for item in [&each.key, &each.value] {
            data.extend((length(item) as i32).to_be_bytes());
            data.extend(item.iter().flatten());
        }
    }
    data
}

fn sized(out: &mut impl Write, data: &[u8]) -> io::Result<()> {
    out.write_all(&(data.len() as i32).to_be_bytes())?;
    out.write_all(data)
}

fn text(out: &mut impl Write, line: &str) -> io::Result<()> {
    out.write_all(&(line.len() as u16).to_be_bytes())?;
    out.write_all(line.as_bytes())
}
