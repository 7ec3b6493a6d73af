//! TLS to a real server.

use std::net::Ipv4Addr;

use aro_base::{ManualClock, SignedDuration, Timestamp, chain};
use aro_pki::{Authority, Leaf, Subject, Usage, Validity};
use aro_store::DocumentStore as _;
use aro_store::testing::postgres::TestPostgres;
use aro_store_postgres::{OpenError, PostgresOptions, PostgresStore};

/// The machine's time, since the certificates are verified by it.
fn now() -> Timestamp {
    let elapsed = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
    Timestamp::UNIX_EPOCH.saturating_add(elapsed).expect("a time")
}

fn authority(name: &str) -> Authority {
    Authority::generate(name, Validity::from_now(now(), SignedDuration::from_hours(1))).expect("generated")
}

/// The authority's certificate in a file.
fn file_of(authority: &Authority) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), authority.certificate()).expect("written");
    file
}

/// A server whose certificate is for `localhost`.
fn tls_server(authority: &Authority) -> (TestPostgres, Ipv4Addr) {
    let issued = authority.issue(&Leaf {
        subject: Subject::new("postgres", [""; 0]),
        dns_names: vec!["localhost".to_owned()],
        addresses: Vec::new(),
        usage: Usage::Server,
        validity: Validity::from_now(now(), SignedDuration::from_hours(1)),
    });
    let issued = issued.expect("issued");
    let server = TestPostgres::launch().expect("PostgreSQL starts");
    let address = server.listen(Some((&issued.certificate, issued.key.expose()))).expect("listens");
    (server, address)
}

fn options(
    host: &str,
    address: Ipv4Addr,
    ca: Option<&tempfile::NamedTempFile>,
    more: &str,
) -> PostgresOptions {
    let connection = format!("host={host} hostaddr={address} user=aro dbname=postgres {more}");
    let ca_file = ca.map(|file| file.path().to_owned());
    PostgresOptions { ca_file, ..PostgresOptions::new(connection) }
}

/// The error of an attempt that must fail, with its causes.
async fn refused(options: &PostgresOptions) -> String {
    let refused = PostgresStore::migrate(options).await.expect_err("no connection is made");
    assert!(matches!(refused, OpenError::Connect(_)), "{refused}");
    chain(&refused).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_authorities_only_a_server_that_they_vouch_for_is_spoken_to() {
    let (right, wrong) = (authority("right"), authority("wrong"));
    let (right_file, wrong_file) = (file_of(&right), file_of(&wrong));
    let (server, address) = tls_server(&right);

    let good = options("localhost", address, Some(&right_file), "");
    PostgresStore::migrate(&good).await.expect("the right authority");
    let store = PostgresStore::connect(good, ManualClock::at(now())).await.expect("connects");
    store.ping().await.expect("answers");
    let plain = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                 WHERE NOT ssl AND application_name = 'aro-store'";
    assert_eq!(server.sql(plain).expect("counted"), "0", "no connection of the store is plain");
    assert_ne!(server.sql(&plain.replace("NOT ssl", "ssl")).expect("counted"), "0");
    store.close().await;

    let text = refused(&options("localhost", address, Some(&wrong_file), "")).await;
    assert!(text.contains("UnknownIssuer"), "{text}");
    let text = refused(&options("db.example.test", address, Some(&right_file), "")).await;
    assert!(text.contains("not valid for name"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_authorities_a_server_without_tls_is_refused_instead_of_spoken_to_in_plain() {
    let right = file_of(&authority("right"));
    let server = TestPostgres::launch().expect("PostgreSQL starts");
    let address = server.listen(None).expect("listens");
    PostgresStore::migrate(&options("localhost", address, None, ""))
        .await
        .expect("plain without authorities");
    for more in ["", "sslmode=prefer", "sslmode=require"] {
        let text = refused(&options("localhost", address, Some(&right), more)).await;
        assert!(text.contains("server does not support TLS"), "{text}");
    }
    let asked_for_plain = options("localhost", address, Some(&right), "sslmode=disable");
    let refused = PostgresStore::migrate(&asked_for_plain).await.expect_err("contradicts itself");
    assert!(matches!(refused, OpenError::PlainWithAuthorities), "{refused}");
}

#[tokio::test]
async fn a_file_without_certificates_is_refused_before_anything_is_sent() {
    let empty = tempfile::NamedTempFile::new().expect("a file");
    let options = options("localhost", Ipv4Addr::LOCALHOST, Some(&empty), "");
    let refused = PostgresStore::migrate(&options).await.expect_err("nothing could be verified");
    assert!(matches!(refused, OpenError::Authorities { .. }), "{refused}");
}
