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
    nth_file(dir, 0)
}

fn nth_file(dir: &Path, index: usize) -> PathBuf {
    let id = segment::list(dir).unwrap()[index];
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

/// Writes one record after another, each in a flush of its own.
fn write_singly(log: &Log, tickets: &Receiver<u64>, records: &[Vec<u8>]) {
    for (ticket, record) in records.iter().enumerate() {
        log.append(&[record], ticket as u64).unwrap();
        assert_eq!(tickets.recv_timeout(LONG).unwrap(), ticket as u64);
    }
}

/// Longer than any test takes that does not hang.
const LONG: std::time::Duration = std::time::Duration::from_secs(20);

#[test]
fn damage_that_acknowledged_records_follow_is_refused_and_nothing_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _, tickets) = open(dir.path(), 1 << 16).unwrap();
    write_singly(&log, &tickets, &numbered(10));
    log.close();
    let path = only_file(dir.path());
    let whole = std::fs::read(&path).unwrap();
    // Of each record of 8 + 12 bytes: its length, its checksum, its content; then all of it, as of a lost page.
    for (at, damage) in [(60, &[0xff][..]), (65, &[0xff]), (70, &[0xff]), (60, &[0; 20]), (60, &[0; 120])] {
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(damage, at).unwrap();
        let damaged = std::fs::read(&path).unwrap();
        let refused = open(dir.path(), 1 << 16).unwrap_err();
        assert!(matches!(refused, OpenError::Damaged { offset: 60, .. }), "{at}: {refused}");
        let text = refused.to_string();
        let advice = format!("truncate --size=60 {}", path.display());
        assert!(text.contains("damaged at byte 60") && text.contains(&advice), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), damaged, "the file is left as it is");
        file.write_all_at(&whole, 0).unwrap();
    }
    // What the error advises works.
    OpenOptions::new().write(true).open(&path).unwrap().set_len(60).unwrap();
    assert_eq!(open(dir.path(), 1 << 16).unwrap().1, numbered(3));
}

/// Writes a segment of flushes, as a crash may leave it.
fn segment_of(dir: &Path, flushes: &[&[Vec<u8>]]) -> PathBuf {
    let id = segment::SegmentId::FIRST;
    let mut bytes = Vec::new();
    for flush in flushes {
        for (index, record) in flush.iter().enumerate() {
            let mut frame = vec![0; frame::HEADER];
            frame.extend_from_slice(record);
            frame::seal(&mut frame, id, index == 0);
            bytes.extend_from_slice(&frame);
        }
    }
    let path = dir.join(format!("{:016x}.log", id.number()));
    bytes.resize(1 << 16, 0);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_flush_whose_pages_reached_the_disk_out_of_order_is_cut_off() {
    let all = numbered(6);
    // Of the second flush, the first record is lost, the second, or both, and the last is whole.
    for (at, length, left) in [(60, 20, 3), (65, 1, 3), (80, 20, 4), (85, 1, 4), (60, 40, 3)] {
        let dir = tempfile::tempdir().unwrap();
        let path = segment_of(dir.path(), &[&all[..3], &all[3..]]);
        let lost = if length == 1 { vec![0xff] } else { vec![0; length] };
        OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&lost, at).unwrap();
        let (log, records, _) = open(dir.path(), 1 << 16).unwrap();
        assert_eq!(records, all[..left], "{at}");
        log.append(&[b"after"], 0).unwrap();
        log.close();
        let (_, records, _) = open(dir.path(), 1 << 16).unwrap();
        assert_eq!(records.len(), left + 1, "the cut segment is sound once others follow it");
    }
}

#[test]
fn records_of_a_release_that_did_not_mark_flushes_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let id = segment::SegmentId::FIRST;
    let mut bytes = Vec::new();
    for record in numbered(3) {
        let mut frame = vec![0; frame::HEADER];
        frame.extend_from_slice(&record);
        frame::seal(&mut frame, id, false);
        bytes.extend_from_slice(&frame);
    }
    std::fs::write(dir.path().join(format!("{:016x}.log", id.number())), bytes).unwrap();
    assert_eq!(open(dir.path(), 1 << 16).unwrap().1, numbered(3));
}

#[test]
fn zeros_inside_an_older_segment_are_not_taken_for_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 64).unwrap();
    write(&log, &numbered(10));
    log.close();
    let path = only_file(dir.path());
    OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&[0; 20], 20).unwrap();
    let refused = open(dir.path(), 64).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { offset: 20, .. }), "{refused}");
}

#[test]
fn a_segment_that_is_missing_between_others_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 64).unwrap();
    write(&log, &numbered(10));
    log.close();
    let missing = nth_file(dir.path(), 1);
    std::fs::remove_file(&missing).unwrap();
    let refused = open(dir.path(), 64).unwrap_err();
    assert!(matches!(&refused, OpenError::Missing { path, .. } if *path == missing), "{refused}");
    assert!(refused.to_string().contains(&missing.display().to_string()), "{refused}");
}

#[test]
fn a_first_or_last_segment_that_is_missing_is_noticed() {
    for lost in [0, 9] {
        let dir = tempfile::tempdir().unwrap();
        let (log, ..) = open(dir.path(), 20).unwrap();
        write(&log, &numbered(10));
        log.close();
        let segments = log.segments();
        assert_eq!(segments.len(), 10);
        let missing = segments[lost].file(dir.path());
        std::fs::remove_file(&missing).unwrap();
        let refused = open(dir.path(), 20).unwrap_err();
        assert!(matches!(&refused, OpenError::Lost { path, .. } if *path == missing), "{refused}");
        // What the message says an operator may do.
        std::fs::remove_file(dir.path().join("range")).unwrap();
        assert_eq!(open(dir.path(), 20).unwrap().1.len(), 9);
    }
}

#[test]
fn a_log_that_lost_every_segment_is_not_taken_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 1 << 16).unwrap();
    write(&log, &numbered(3));
    log.close();
    std::fs::remove_file(log.segments()[0].file(dir.path())).unwrap();
    assert!(matches!(open(dir.path(), 1 << 16).unwrap_err(), OpenError::Lost { .. }));
}

#[test]
fn a_crash_between_a_segment_and_its_entry_in_the_range_is_not_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 20).unwrap();
    write(&log, &numbered(10));
    log.close();
    let segments = log.segments();
    // The newest one was adopted, and the oldest was not removed yet.
    Range { oldest: segments[1], newest: segments[8] }.write(dir.path()).unwrap();
    assert_eq!(open(dir.path(), 20).unwrap().1, numbered(10));
}

#[test]
fn only_the_oldest_segment_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 64).unwrap();
    write(&log, &numbered(10));
    log.close();
    let segments = log.segments();
    assert!(matches!(log.remove(segments[1]), Err(OpenError::NotOldest { .. })));
    log.remove(segments[0]).unwrap();
    log.remove(segments[1]).unwrap();
    open(dir.path(), 64).unwrap();
}

#[test]
fn an_empty_record_does_not_end_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path(), 1 << 16).unwrap();
    let records = vec![vec![1], Vec::new(), vec![2]];
    write(&log, &records);
    log.close();
    assert_eq!(open(dir.path(), 1 << 16).unwrap().1, records);
}

#[test]
fn a_panic_on_the_writers_thread_fails_every_writer_and_hangs_none() {
    let dir = tempfile::tempdir().unwrap();
    let (sender, outcomes) = channel();
    let (go, wait) = channel::<()>();
    let committed = move |tickets: Vec<u64>, outcome| {
        if outcome == Outcome::Durable && tickets.contains(&0) {
            // Until others wait in the queue.
            wait.recv_timeout(LONG).unwrap();
            panic!("a bug of the owner");
        }
        sender.send((tickets, outcome)).unwrap();
    };
    let log = Journal::open(dir.path(), options(1 << 16), |_| (), committed).unwrap();
    log.append(&[b"first"], 0).unwrap();
    // The writer has taken the first once it is alone in its batch; whatever gathers afterwards is queued.
    while !log.shared.queue.lock().tickets.is_empty() {
        std::thread::yield_now();
    }
    log.append(&[b"second"], 1).unwrap();
    go.send(()).unwrap();
    let mut returned = Vec::new();
    while returned.is_empty() {
        let (tickets, outcome) = outcomes.recv_timeout(LONG).expect("the owner learns of it");
        assert_eq!(outcome, Outcome::Failed);
        returned = tickets;
    }
    assert_eq!(returned, [1], "the ticket in the queue comes back");
    assert!(log.append(&[b"third"], 2).is_err(), "nothing more is accepted");
    log.close();
}

#[test]
fn a_disk_that_takes_no_new_segment_fails_every_writer() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("log");
    let (sender, outcomes) = channel();
    let committed = move |tickets: Vec<u64>, outcome| sender.send((tickets, outcome)).unwrap();
    let log = Journal::open(&dir, options(64), |_| (), committed).unwrap();
    std::fs::rename(&dir, home.path().join("gone")).unwrap();
    let mut accepted = Vec::new();
    for ticket in 0..1000 {
        if log.append(&[&[7; 40]], ticket).is_err() {
            break;
        }
        accepted.push(ticket);
    }
    let mut returned = Vec::new();
    let mut failed = false;
    while returned.len() < accepted.len() {
        let (tickets, outcome) = outcomes.recv_timeout(LONG).expect("every ticket comes back");
        failed |= outcome == Outcome::Failed;
        returned.extend(tickets);
    }
    assert_eq!(returned, accepted);
    assert!(failed && log.append(&[b"late"], 0).is_err());
    log.close();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever happens to the last segment, a prefix comes back and nothing else, or the damage is reported.
    #[test]
    fn any_damage_to_the_tail_leaves_a_prefix_or_is_reported(at in 0_u64..400, byte in any::<u8>()) {
        let dir = tempfile::tempdir().unwrap();
        let all = numbered(20);
        let path = segment_of(dir.path(), &[&all[..5], &all[5..12], &all[12..]]);
        OpenOptions::new().write(true).open(path).unwrap().write_all_at(&[byte], at).unwrap();
        // The last flush begins with the thirteenth record.
        match open(dir.path(), 1 << 16) {
            Ok((_, records, _)) => {
                prop_assert!(records.len() >= 12, "{}", records.len());
                prop_assert_eq!(&records[..], &all[..records.len()]);
            }
            Err(OpenError::Damaged { offset, .. }) => prop_assert_eq!(offset, at / 20 * 20),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
}
