//! The program as people run it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod process;
mod stopping;

use std::process::Command;

use nix::sys::signal::Signal;

use process::{Running, aro, finished, text};

#[test]
fn up_prints_its_endpoints_and_ctrl_c_ends_it_with_zero() {
    let mut running = Running::start(&["up", "--ephemeral", "--debug-ports"]);
    let endpoints = running.endpoints();
    assert_eq!(
        endpoints.keys().collect::<Vec<_>>(),
        [
            "admin",
            "azure-local",
            "clusters-service",
            "dns",
            "frontdoor",
            "frontend",
            "kube",
            "maestro",
            "proxy"
        ]
    );
    running.signal(Signal::SIGINT);
    let output = running.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains(&format!("http://{}", endpoints["frontend"])), "{said}");
    assert!(said.contains("\n  curl ") && !said.contains("port-forward"), "{said}");
}

#[test]
fn without_debug_ports_up_says_how_the_front_end_is_reached() {
    let mut running = Running::start(&["up", "--ephemeral"]);
    let endpoints = running.endpoints();
    assert_eq!(
        endpoints.keys().collect::<Vec<_>>(),
        ["admin", "azure-local", "dns", "frontdoor", "kube", "proxy"]
    );
    running.signal(Signal::SIGINT);
    let output = running.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let forward = "\n  kubectl --context svc port-forward -n aro-hcp svc/aro-hcp-frontend 8443:8443 &\n";
    assert!(said.contains(forward) && said.contains("\n  curl -X PUT 'http://localhost:8443/"), "{said}");
}

#[test]
fn a_role_alone_ends_with_zero_on_sigterm() {
    let mut running = Running::start(&["frontend", "--ephemeral"]);
    running.endpoints();
    running.signal(Signal::SIGTERM);
    let output = running.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_failed_start_is_one_line_with_its_cause() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("frontend.listen={}", taken.local_addr().unwrap());
    let up = ["up", "--ephemeral", "--debug-ports", "--log", "off", "--set", "kube.listen=127.0.0.1:0"];
    let output = aro().args(up).args(["--set", &listen]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("error: port "), "{said}");
}

#[test]
fn the_configuration_is_printed_with_origins_and_without_secrets() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[frontend]\nlocation = \"westus\"\n").unwrap();
    let output = aro()
        .args(["config", "print", "--set", "frontend.max_connections=7", "--config"])
        .arg(file.path())
        .env("ARO_LOG", "debug")
        .output()
        .unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let line = |key: &str| said.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    assert!(line("location = \"westus\" ").ends_with(&format!("# file {}", file.path().display())), "{said}");
    assert!(line("log ").ends_with("# env ARO_LOG"), "{said}");
    assert!(line("max_connections = 7 ").ends_with("# flag"), "{said}");
    assert!(line("grace").ends_with("# default"), "{said}");

    let secret =
        ["config", "print", "--set", "store.kind=postgres", "--set", "store.url=postgres://a:hunter2@db/x"];
    let output = aro().args(secret).output().unwrap();
    assert!(!output.status.success());
    assert!(!text(&output.stdout).contains("hunter2") && !text(&output.stderr).contains("hunter2"));
}

#[test]
fn the_check_lists_every_problem_on_its_own_line() {
    assert_eq!(text(&aro().args(["config", "check"]).output().unwrap().stdout), "ok\n");
    let wrong = ["config", "check", "--set", "frontend.lisen=1", "--set", "frontend.listen=0.0.0.0:1"];
    let output = aro().args(wrong).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].contains("did you mean `frontend.listen`?"), "{said}");
    assert!(lines[1].starts_with("`frontend.listen`: "), "{said}");
}

#[test]
fn migrate_prepares_the_embedded_store() {
    let dir = tempfile::tempdir().unwrap();
    let output = aro().arg("migrate").arg("--data-dir").arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(dir.path().join("store").exists());
}

#[test]
fn without_a_home_the_data_directory_must_be_named() {
    let mut command: Command = aro();
    let output = command.arg("migrate").env_remove("HOME").env_remove("XDG_DATA_HOME").output().unwrap();
    assert!(!finished(&output));
    assert!(text(&output.stderr).contains("--data-dir"), "{}", text(&output.stderr));
}
