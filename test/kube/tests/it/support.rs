//! What the tests with real clients share.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aro_fixtures::wait;
use aro_harness::{Process, StoreChoice};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The real binary with embedded Kubernetes alone: API servers, and nobody who acts on what is written to them.
pub async fn region(clusters: &[&str]) -> Result<Process> {
    region_with(clusters, &[]).await
}

/// The same with settings of the test's own.
pub async fn region_with(clusters: &[&str], settings: &[(&str, &str)]) -> Result<Process> {
    let clusters = format!("{clusters:?}");
    let mut all =
        vec![("kube.clusters", clusters.as_str()), ("kube.workloads", "false"), ("kube.nodes", "0")];
    all.extend_from_slice(settings);
    Process::start_role("kube", &all).await
}

/// A whole region: `aro up` with its debug ports, two clusters, and the region's roles as pods.
pub async fn whole_region(settings: &[(&str, &str)]) -> Result<Process> {
    let mut all = vec![("kube.clusters", r#"["svc", "mgmt-1"]"#)];
    all.extend_from_slice(settings);
    Process::start_with(StoreChoice::Embedded, &all).await
}

/// The kubeconfig with all clusters of a region.
pub fn kubeconfig(region: &Process) -> PathBuf {
    region.data_dir().join("kube").join("kubeconfig.yaml")
}

/// A `kube` client of one of its clusters.
pub async fn client(region: &Process, cluster: &str) -> Result<kube::Client> {
    Ok(aro_kube::of_kubeconfig(&kubeconfig(region), Some(cluster)).await?)
}

#[allow(clippy::disallowed_methods, reason = "tests have no configuration of their own")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

pub use aro_prerequisites::{cache, kubectls, specs};

/// One kubectl, speaking to one cluster.
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    context: String,
    /// Its cache and its files; nobody else's.
    pub home: TempDir,
}

/// What a call said.
#[derive(Debug)]
pub struct Said {
    pub ok: bool,
    pub out: String,
    pub err: String,
}

/// No call may take longer.
const DEADLINE: Duration = Duration::from_mins(1);

impl Kubectl {
    pub fn new(program: &Path, kubeconfig: &Path, context: &str) -> Result<Self> {
        let home = tempfile::tempdir()?;
        Ok(Self {
            program: program.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            context: context.to_owned(),
            home,
        })
    }

    /// Writes a file beside it and says where it is.
    pub fn file(&self, name: &str, text: &str) -> Result<String> {
        let path = self.home.path().join(name);
        std::fs::write(&path, text)?;
        path.to_str().map(str::to_owned).context("a path that is text")
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("HOME", self.home.path()).env("KUBECONFIG", &self.kubeconfig);
        command.env("PATH", variable("PATH").unwrap_or_default());
        command.env("KUBE_EDITOR", self.home.path().join("editor"));
        command.args(["--context", &self.context]).args(words(line));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs it with something to read.
    pub async fn feed(&self, line: &str, input: &str) -> Result<Said> {
        let mut child =
            self.command(line).spawn().with_context(|| format!("start {}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that reads nothing has closed it already.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = tokio::time::timeout(DEADLINE, child.wait_with_output()).await;
        let output = output.with_context(|| format!("`kubectl {line}` did not end"))??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Said { ok: output.status.success(), out: text(&output.stdout), err: text(&output.stderr) })
    }

    pub async fn run(&self, line: &str) -> Result<Said> {
        self.feed(line, "").await
    }

    /// Runs it; it must succeed. Returns what it printed.
    pub async fn ok(&self, line: &str) -> Result<String> {
        let said = self.run(line).await?;
        ensure!(said.ok, "`kubectl {line}` failed: {}{}", said.out, said.err);
        Ok(said.out)
    }

    /// The same, and the output must hold this text.
    pub async fn shows(&self, line: &str, wanted: &str) -> Result<String> {
        let out = self.ok(line).await?;
        ensure!(out.contains(wanted), "`kubectl {line}` does not show {wanted:?}:\n{out}");
        Ok(out)
    }

    /// Runs it; it must fail and complain about this.
    pub async fn fails(&self, line: &str, wanted: &str) -> Result<String> {
        let said = self.run(line).await?;
        ensure!(!said.ok, "`kubectl {line}` should fail and said {}", said.out);
        ensure!(
            said.err.contains(wanted),
            "`kubectl {line}` complains about {} and not {wanted:?}",
            said.err
        );
        Ok(said.err)
    }

    /// Applies a manifest.
    pub async fn apply(&self, manifest: &str) -> Result<String> {
        // What starts like JSON would be read as JSON.
        let said = self.feed("apply -f -", &format!("---\n{manifest}")).await?;
        ensure!(said.ok, "apply failed: {}\n{manifest}", said.err);
        Ok(said.out)
    }

    /// Runs it until the output holds this text.
    pub async fn until(&self, line: &str, wanted: &str) -> Result<String> {
        wait::until(&format!("`kubectl {line}` to show {wanted:?}"), || async {
            let said = self.run(line).await?;
            Ok((said.ok && said.out.contains(wanted)).then_some(said.out))
        })
        .await
    }
}

/// Words of a command line; single quotes keep some together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quoted, mut started) = (false, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                started = true;
            }
            ' ' if !quoted => {
                if std::mem::take(&mut started) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                word.push(c);
                started = true;
            }
        }
    }
    if started {
        words.push(word);
    }
    words
}

/// Runs a test with every kubectl there is, each in a cluster of its own.
pub async fn with_each_kubectl(test: impl AsyncFn(&Kubectl) -> Result<()>) -> Result<()> {
    let programs = kubectls();
    if programs.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = (0..programs.len()).map(|index| format!("k{index}")).collect();
    let region = region(&names.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    for (program, name) in programs.iter().zip(&names) {
        let kubectl = Kubectl::new(program, &kubeconfig(&region), name)?;
        let tested = test(&kubectl).await;
        if let Err(error) = tested {
            bail!("with {}: {error:#}\nthe server's log:\n{}", program.display(), region.log_text());
        }
    }
    Ok(())
}

#[test]
fn quotes_keep_words_together() {
    assert_eq!(words("a 'b c'  d=''e ''"), ["a", "b c", "d=e", ""]);
}
