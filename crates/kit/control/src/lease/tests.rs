use super::*;

fn replica(name: &str) -> ReplicaId {
    ReplicaId::new(name)
}

fn renew(table: &mut LeaseTable, name: &str) {
    table.renew(&replica(name), &View::default());
}

fn holders(table: &LeaseTable) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for shard in &table.shards {
        *counts.entry(shard.holder.as_ref().map_or("-".to_owned(), ToString::to_string)).or_default() += 1;
    }
    counts
}

/// Every replica renews until nothing moves; a drained shard is handed over one renewal after it was noticed.
fn balance(table: &mut LeaseTable, names: &[&str]) {
    for _ in 0..3 {
        for name in names {
            let me = replica(name);
            let drained = (0..table.shards.len())
                .filter(|number| {
                    table.shards[*number].holder.as_ref() == Some(&me)
                        && table.preferred(*number) != Some(&me)
                })
                .collect();
            table.renew(&me, &View { dead: BTreeSet::new(), drained });
        }
    }
}

#[test]
fn the_only_replica_takes_every_shard_with_epoch_one() {
    let mut table = LeaseTable::new(8);
    renew(&mut table, "a");
    assert_eq!(holders(&table), BTreeMap::from([("a".to_owned(), 8)]));
    assert!(table.shards.iter().all(|shard| shard.epoch == Epoch(1)));
    renew(&mut table, "a");
    assert!(table.shards.iter().all(|shard| shard.epoch == Epoch(1)), "a renewal is no new holder");
    assert_eq!(table.members[&replica("a")], 2);
}

#[test]
fn a_live_holder_keeps_its_shards_until_it_has_drained_them() {
    let mut table = LeaseTable::new(32);
    renew(&mut table, "a");
    renew(&mut table, "b");
    assert_eq!(holders(&table), BTreeMap::from([("a".to_owned(), 32)]));
    balance(&mut table, &["a", "b"]);
    let counts = holders(&table);
    assert_eq!(counts.len(), 2, "{counts:?}");
    assert!(counts.values().all(|count| *count >= 8), "{counts:?}");
}

#[test]
fn shards_of_a_dead_member_move_with_a_new_epoch_and_the_others_stay() {
    let mut table = LeaseTable::new(32);
    balance(&mut table, &["a", "b", "c"]);
    let before = table.clone();
    for name in ["a", "b"] {
        let dead = BTreeSet::from([replica("c")]);
        table.renew(&replica(name), &View { dead, drained: BTreeSet::new() });
    }
    for (was, is) in before.shards.iter().zip(&table.shards) {
        if was.holder == Some(replica("c")) {
            assert_eq!(is.epoch.0, was.epoch.0 + 1);
            assert_ne!(is.holder, was.holder);
        } else {
            assert_eq!(is, was);
        }
    }
}

#[test]
fn a_release_frees_the_shards_and_keeps_their_epochs() {
    let mut table = LeaseTable::new(4);
    renew(&mut table, "a");
    table.release(&replica("a"));
    assert_eq!(holders(&table), BTreeMap::from([("-".to_owned(), 4)]));
    renew(&mut table, "b");
    assert!(table.shards.iter().all(|shard| shard.epoch == Epoch(2)));
}

#[test]
fn a_replica_that_was_declared_dead_finds_its_shards_gone() {
    let mut table = LeaseTable::new(1);
    renew(&mut table, "a");
    table.renew(&replica("b"), &View { dead: BTreeSet::from([replica("a")]), drained: BTreeSet::new() });
    renew(&mut table, "a");
    assert_eq!(table.shards[0], Shard { holder: Some(replica("b")), epoch: Epoch(2) });
}

#[test]
fn rendezvous_spreads_shards_evenly() {
    let mut table = LeaseTable::new(300);
    balance(&mut table, &["frontend-7c9f-1", "frontend-7c9f-2", "frontend-7c9f-3"]);
    let counts = holders(&table);
    assert!(counts.values().all(|count| (60..140).contains(count)), "{counts:?}");
}
