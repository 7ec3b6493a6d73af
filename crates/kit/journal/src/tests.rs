use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{Receiver, channel};

use proptest::prelude::*;

use super::*;

type Log = Journal<u64>;

fn options(segment_bytes: u64) -> Options {
    Options { segment_bytes, flush: false }
}

/// A log, what was in it, and the tickets that come back.
type Opened = (Log, Vec<Vec<u8>>, Receiver<u64>);

fn open(dir: &Path, segment_bytes: u64) -> Result<Opened, OpenError> {
    let (sender, receiver) = channel();
    let mut records = Vec::new();
    let log = Journal::open(
        dir,
        options(segment_bytes),
        |record| records.push(record.to_vec()),
        move |tickets, outcome| {
            assert_eq!(outcome, Outcome::Durable);
            for ticket in tickets {
                // A test that does not look at its tickets has let go of the receiver.
                let _ = sender.send(ticket);
            }
        },
    )?;
    Ok((log, records, receiver))
}

fn write(log: &Log, records: &[Vec<u8>]) {
    for (ticket, record) in records.iter().enumerate() {
        log.append(&[record], ticket as u64).unwrap();
    }
}

fn numbered(count: u32) -> Vec<Vec<u8>> {
    (1..=count).map(|n| n.to_le_bytes().repeat(3)).collect()
}

#[test]
fn tickets_come_back_in_order_and_records_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (log, records, tickets) = open(dir.path(), 256).unwrap();
    assert!(records.is_empty());
    write(&log, &numbered(100));
    log.close();
    assert_eq!(tickets.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    let (log, records, _) = open(dir.path(), 256).unwrap();
    assert_eq!(records, numbered(100));
    assert!(log.segments().len() > 3);
}

#[test]
fn nobody_else_reads_the_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("a").join("b");
    let (log, ..) = open(&place, 256).unwrap();
    write(&log, &numbered(10));
    log.close();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place), 0o700);
    for entry in std::fs::read_dir(&place).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn a_record_larger_than_a_segment_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 64).unwrap();
    let records = vec![vec![1; 10], vec![2; 1000], vec![3; 10]];
    write(&log, &records);
    log.close();
    assert_eq!(open(dir.path(), 64).unwrap().1, records);
}

#[test]
fn a_second_process_is_refused_and_a_closed_log_frees_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 256).unwrap();
    assert!(matches!(open(dir.path(), 256), Err(OpenError::Locked { .. })));
    log.close();
    assert!(log.append(&[b"x"], 1).is_err());
    open(dir.path(), 256).unwrap();
}

fn only_file(dir: &Path) -> PathBuf {
    let id = *segment::list(dir).unwrap().first().unwrap();
    dir.join(format!("{:016x}.log", id.number()))
}

#[test]
fn a_torn_tail_is_cut_and_the_log_goes_on_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 1 << 16).unwrap();
    write(&log, &numbered(10));
    log.close();
    let path = only_file(dir.path());
    // Each record takes 8 + 12 bytes; the tenth loses its last byte.
    OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&[0xff], 199).unwrap();
    let (log, records, _) = open(dir.path(), 1 << 16).unwrap();
    assert_eq!(records, numbered(9));
    log.append(&[b"after"], 0).unwrap();
    log.close();
    let (_, records, _) = open(dir.path(), 1 << 16).unwrap();
    assert_eq!(records.len(), 10);
    assert_eq!(records[9], b"after");
}

#[test]
fn damage_inside_the_log_is_not_taken_for_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 64).unwrap();
    write(&log, &numbered(10));
    log.close();
    let path = only_file(dir.path());
    OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&[0xff], 9).unwrap();
    assert!(matches!(open(dir.path(), 64), Err(OpenError::Damaged { offset: 0, .. })));
}

#[test]
fn a_cleaned_segment_is_gone_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 64).unwrap();
    write(&log, &numbered(10));
    log.close();
    let (log, ..) = open(dir.path(), 64).unwrap();
    let oldest = log.segments()[0];
    let mut alive = Vec::new();
    log.read(oldest, |record| alive.push(record.to_vec())).unwrap();
    for record in &alive {
        log.append(&[record], 0).unwrap();
    }
    log.remove(oldest).unwrap();
    log.close();
    let (_, records, _) = open(dir.path(), 64).unwrap();
    assert_eq!(records.len(), 10);
    assert_eq!(records[10 - alive.len()..], alive[..]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever happens to the last segment, a prefix comes back and nothing else.
    #[test]
    fn any_damage_to_the_tail_leaves_a_prefix(at in 0_u64..400, byte in any::<u8>()) {
        let dir = tempfile::tempdir().unwrap();
        let (log, ..) = open(dir.path(), 1 << 16).unwrap();
        let all = numbered(20);
        write(&log, &all);
        log.close();
        let path = only_file(dir.path());
        OpenOptions::new().write(true).open(path).unwrap().write_all_at(&[byte], at).unwrap();
        let (_, records, _) = open(dir.path(), 1 << 16).unwrap();
        prop_assert_eq!(&records[..], &all[..records.len()]);
    }
}
