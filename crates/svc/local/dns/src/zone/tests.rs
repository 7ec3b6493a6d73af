use hickory_proto::rr::rdata::{A, AAAA, CNAME, NS, TXT};
use proptest::prelude::*;

use super::*;

fn name(text: &str) -> Name {
    parse_name(text).unwrap()
}

/// A record of `<name> <type> <data>`.
fn record(line: &str) -> Record {
    let mut parts = line.split_whitespace();
    let (owner, of, data) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    let data = match of {
        "A" => RData::A(A(data.parse().unwrap())),
        "AAAA" => RData::AAAA(AAAA(data.parse().unwrap())),
        "NS" => RData::NS(NS(name(data))),
        "CNAME" => RData::CNAME(CNAME(name(data))),
        "TXT" => RData::TXT(TXT::new(vec![data.to_owned()])),
        other => panic!("{other}"),
    };
    Record::from_rdata(name(owner), 60, data)
}

fn zone(origin: &str, servers: &[&str], lines: &[&str]) -> Arc<Zone> {
    let servers: Vec<Name> = servers.iter().map(|server| name(server)).collect();
    Arc::new(Zone::new(name(origin), &servers, lines.iter().map(|line| vec![record(line)])))
}

fn zones() -> Zones {
    Zones::new([
        zone(
            "example.com",
            &["ns1.example.net", "ns2.example.net"],
            &[
                "www.example.com A 192.0.2.1",
                "www.example.com A 192.0.2.2",
                "www.example.com AAAA 2001:db8::1",
                "alias.example.com CNAME www.example.com",
                "far.example.com CNAME www.elsewhere.org",
                "gone.example.com CNAME nothing.example.com",
                "loop1.example.com CNAME loop2.example.com",
                "loop2.example.com CNAME loop1.example.com",
                "*.apps.example.com A 192.0.2.9",
                "fixed.apps.example.com TXT here",
                "deep.below.example.com A 192.0.2.3",
                "*.c.example.com CNAME www.example.com",
                "out.example.com NS ns.out.example.com",
                "out.example.com NS ns.elsewhere.org",
                "ns.out.example.com A 192.0.2.53",
                "child.example.com NS ns1.example.net",
                "tochild.example.com CNAME www.child.example.com",
                "toout.example.com CNAME www.out.example.com",
            ],
        ),
        zone("child.example.com", &[], &["www.child.example.com A 192.0.2.77"]),
    ])
}

fn ask(question: &str, of: RecordType) -> Answer {
    zones().answer(&name(question), of)
}

fn texts(records: &[Record]) -> Vec<String> {
    let mut texts: Vec<String> = records
        .iter()
        .map(|record| format!("{} {} {}", record.name, record.record_type(), record.data))
        .collect();
    texts.sort();
    texts
}

#[test]
fn the_records_of_a_name_answer_in_any_case() {
    let answer = zones().answer(&Name::from_ascii("WwW.Example.COM.").unwrap(), RecordType::A);
    assert_eq!((answer.code, answer.authoritative), (ResponseCode::NoError, true));
    assert_eq!(texts(&answer.answers), ["www.example.com. A 192.0.2.1", "www.example.com. A 192.0.2.2"]);
    assert!(answer.authorities.is_empty());
}

#[test]
fn a_name_without_the_type_has_no_data_and_an_soa() {
    let answer = ask("www.example.com", RecordType::TXT);
    assert_eq!((answer.code, answer.authoritative), (ResponseCode::NoError, true));
    assert!(answer.answers.is_empty());
    assert_eq!(answer.authorities[0].record_type(), RecordType::SOA);
    assert_eq!(answer.authorities[0].ttl, 300, "no longer than the minimum of the SOA");
}

#[test]
fn a_name_that_does_not_exist_is_denied_with_an_soa() {
    let answer = ask("nothing.example.com", RecordType::A);
    assert_eq!((answer.code, answer.authoritative), (ResponseCode::NXDomain, true));
    assert_eq!(answer.authorities[0].name, name("example.com"));
}

#[test]
fn a_name_above_an_existing_one_exists() {
    let answer = ask("below.example.com", RecordType::A);
    assert_eq!(answer.code, ResponseCode::NoError, "an empty non-terminal is not denied");
    assert_eq!(ask("x.below.example.com", RecordType::A).code, ResponseCode::NXDomain);
}

#[test]
fn names_in_no_zone_are_refused() {
    for outside in ["elsewhere.org", "com", "notexample.com"] {
        let answer = ask(outside, RecordType::A);
        assert_eq!((answer.code, answer.authoritative), (ResponseCode::Refused, false), "{outside}");
        assert!(answer.authorities.is_empty());
    }
}

#[test]
fn a_cname_is_followed_inside_the_zones() {
    let answer = ask("alias.example.com", RecordType::A);
    let expected = [
        "alias.example.com. CNAME www.example.com.",
        "www.example.com. A 192.0.2.1",
        "www.example.com. A 192.0.2.2",
    ];
    assert_eq!(texts(&answer.answers), expected);
    assert_eq!(answer.answers[0].record_type(), RecordType::CNAME, "the alias comes first");
    let itself = ask("alias.example.com", RecordType::CNAME);
    assert_eq!(texts(&itself.answers), ["alias.example.com. CNAME www.example.com."]);
    let child = ask("tochild.example.com", RecordType::A);
    assert_eq!(texts(&child.answers).len(), 2, "into another zone served here");
}

#[test]
fn a_cname_that_leaves_the_zones_is_returned_alone() {
    let answer = ask("far.example.com", RecordType::A);
    assert_eq!((answer.code, answer.authoritative), (ResponseCode::NoError, true));
    assert_eq!(texts(&answer.answers), ["far.example.com. CNAME www.elsewhere.org."]);
    let denied = ask("gone.example.com", RecordType::A);
    assert_eq!((denied.code, denied.answers.len()), (ResponseCode::NXDomain, 1));
    let out = ask("toout.example.com", RecordType::A);
    assert_eq!((out.answers.len(), out.authoritative), (1, true), "the alias itself is authoritative");
}

#[test]
fn a_loop_of_cnames_ends() {
    let answer = ask("loop1.example.com", RecordType::A);
    assert_eq!(answer.answers.len(), MOST_CNAMES + 1);
}

#[test]
fn a_wildcard_answers_for_names_that_do_not_exist_below_it() {
    for question in ["console.apps.example.com", "a.b.apps.example.com"] {
        let answer = ask(question, RecordType::A);
        assert_eq!(
            texts(&answer.answers),
            [format!("{question}. A 192.0.2.9")],
            "the owner is the name asked for"
        );
    }
    let no_data = ask("console.apps.example.com", RecordType::AAAA);
    assert_eq!((no_data.code, no_data.answers.len()), (ResponseCode::NoError, 0));
    let literal = ask("*.apps.example.com", RecordType::A);
    assert_eq!(texts(&literal.answers), ["*.apps.example.com. A 192.0.2.9"]);
    let alias = ask("any.c.example.com", RecordType::A);
    assert_eq!(texts(&alias.answers)[0], "any.c.example.com. CNAME www.example.com.");
}

#[test]
fn an_existing_name_hides_the_wildcard() {
    let exists = ask("fixed.apps.example.com", RecordType::A);
    assert_eq!((exists.code, exists.answers.len()), (ResponseCode::NoError, 0));
    let below_it = ask("x.fixed.apps.example.com", RecordType::A);
    assert_eq!(below_it.code, ResponseCode::NXDomain, "the closest encloser has no wildcard");
    assert_eq!(
        ask("apps.example.com", RecordType::A).answers.len(),
        0,
        "a wildcard does not answer for its parent"
    );
}

#[test]
fn a_delegation_refers_with_glue_and_without_authority() {
    for question in ["out.example.com", "a.b.out.example.com", "ns.out.example.com"] {
        let answer = ask(question, RecordType::A);
        assert_eq!((answer.code, answer.authoritative), (ResponseCode::NoError, false), "{question}");
        assert!(answer.answers.is_empty());
        assert_eq!(
            texts(&answer.authorities),
            ["out.example.com. NS ns.elsewhere.org.", "out.example.com. NS ns.out.example.com."]
        );
        assert_eq!(texts(&answer.additionals), ["ns.out.example.com. A 192.0.2.53"]);
    }
}

#[test]
fn the_parent_answers_for_the_ds_record_at_a_cut() {
    for cut in ["out.example.com", "child.example.com"] {
        let answer = ask(cut, RecordType::DS);
        assert_eq!((answer.code, answer.authoritative), (ResponseCode::NoError, true), "{cut}");
        assert_eq!(answer.authorities[0].name, name("example.com"));
    }
}

#[test]
fn a_child_zone_served_here_answers_instead_of_a_referral() {
    let answer = ask("www.child.example.com", RecordType::A);
    assert!(answer.authoritative);
    assert_eq!(texts(&answer.answers), ["www.child.example.com. A 192.0.2.77"]);
    let denied = ask("x.child.example.com", RecordType::A);
    assert_eq!(denied.authorities[0].name, name("child.example.com"));
}

#[test]
fn the_apex_has_implicit_name_servers_and_an_implicit_soa() {
    let servers = ask("example.com", RecordType::NS);
    assert_eq!(
        texts(&servers.answers),
        ["example.com. NS ns1.example.net.", "example.com. NS ns2.example.net."]
    );
    assert!(servers.authoritative, "the apex is no delegation");
    let soa = ask("example.com", RecordType::SOA);
    let RData::SOA(soa) = &soa.answers[0].data else { panic!("{soa:?}") };
    assert_eq!((soa.mname.to_ascii().as_str(), soa.minimum), ("ns1.example.net.", 300));
    assert_eq!(ask("child.example.com", RecordType::SOA).answers.len(), 1);
}

#[test]
fn stated_name_servers_replace_the_implicit_ones() {
    let zones = Zones::new([zone("example.org", &["ns1.example.net"], &["example.org NS own.example.org"])]);
    let answer = zones.answer(&name("example.org"), RecordType::NS);
    assert_eq!(texts(&answer.answers), ["example.org. NS own.example.org."]);
}

#[test]
fn any_is_answered_with_one_record_set() {
    let answer = ask("www.example.com", RecordType::ANY);
    assert!(!answer.answers.is_empty());
    let first = answer.answers[0].record_type();
    assert!(answer.answers.iter().all(|record| record.record_type() == first));
    assert_eq!(ask("nothing.example.com", RecordType::ANY).code, ResponseCode::NXDomain);
}

#[test]
fn lookup_returns_addresses_of_our_zones_only() {
    let zones = zones();
    let found = |host: &str| zones.lookup(host).map(|found| found.len());
    assert_eq!(found("www.example.com"), Some(3));
    assert_eq!(found("ALIAS.example.com."), Some(3));
    assert_eq!(found("x.apps.example.com"), Some(1));
    for none in
        ["far.example.com", "nothing.example.com", "www.elsewhere.org", "x.out.example.com", "", "a b"]
    {
        assert_eq!(found(none), None, "{none}");
    }
}

proptest! {
    #[test]
    fn no_question_panics(labels in prop::collection::vec("[a-z*]{1,6}", 0..8), of in any::<u16>()) {
        let zones = zones();
        for suffix in ["example.com", "apps.example.com", "out.example.com"] {
            let text = format!("{}.{suffix}", labels.join("."));
            if let Some(name) = parse_name(text.trim_start_matches('.')) {
                let answer = zones.answer(&name, RecordType::from(of));
                prop_assert!(answer.code != ResponseCode::Refused);
            }
        }
        let _ = zones.answer(&Name::root(), RecordType::from(of));
    }
}
