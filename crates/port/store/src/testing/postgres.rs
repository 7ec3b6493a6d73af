//! A private PostgreSQL server for tests and benchmarks.
//!
//! The server listens on a unix socket in a directory of its own, with `fsync` on, and on request on a loopback address. A small shell script supervises
//! it: it restarts the server when it dies, and when its standard input closes (because this process ended, in
//! whatever way) it stops the server and removes the directory. So nothing is leaked even by `kill -9`.

use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Names a directory with PostgreSQL's programs; searched for in the usual places when unset.
pub const BIN_VARIABLE: &str = "ARO_TEST_PG_BIN";

/// The unprivileged user the server runs as when we are root, which PostgreSQL refuses to be.
const UNPRIVILEGED: u32 = 65534;

/// `$1` is the programs' directory, `$2` ours. Commands come line by line.
const SUPERVISOR: &str = r#"
bin=$1; dir=$2; : > "$dir/wanted"
keep() {
    while [ -e "$dir/wanted" ]; do
        "$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses="$(cat "$dir/listen" 2> /dev/null)" -c max_connections=300 >> "$dir/log" 2>&1
        sleep 0.05
    done
}
keep &
while read -r command; do
    pid=$(head -n 1 "$dir/data/postmaster.pid" 2> /dev/null)
    case $command in
        crash) [ -n "$pid" ] && kill -9 "$pid" ;;
        down) rm -f "$dir/wanted"; [ -n "$pid" ] && kill -INT "$pid"; wait ;;
        up) : > "$dir/wanted"; keep & ;;
    esac
done
rm -f "$dir/wanted"
pid=$(head -n 1 "$dir/data/postmaster.pid" 2> /dev/null)
[ -n "$pid" ] && kill -INT "$pid"
wait
rm -rf "$dir"
"#;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Neither the variable nor the usual places lead to PostgreSQL.
    #[error("no PostgreSQL found: install it or set {BIN_VARIABLE} to the directory of its programs")]
    NotInstalled,
    /// A file or process operation failed.
    #[error("{0}")]
    Io(&'static str, #[source] std::io::Error),
    /// A program ran and failed.
    #[error("{program} failed: {output}")]
    Failed {
        /// Which one.
        program: &'static str,
        /// Its output.
        output: String,
    },
    /// It started but never became ready.
    #[error("the server did not become ready; its log: {0}")]
    NotReady(String),
}

/// A running server; stopped when dropped or when the process ends.
#[derive(Debug)]
pub struct TestPostgres {
    bin: PathBuf,
    directory: PathBuf,
    supervisor: Mutex<(Child, Option<ChildStdin>)>,
    schemas: AtomicU32,
}

impl TestPostgres {
    /// Makes a cluster and starts its server. Takes about a second.
    pub fn launch() -> Result<Self, LaunchError> {
        let bin = find_programs().ok_or(LaunchError::NotInstalled)?;
        // Short on purpose: a socket's path may have about a hundred characters.
        let name = format!("aro-pg-{}", uuid::Uuid::new_v4().simple());
        let directory = std::env::temp_dir().join(&name[..19]);
        fs::create_dir(&directory).map_err(|error| LaunchError::Io("make the directory", error))?;
        let permissions = fs::Permissions::from_mode(0o700);
        fs::set_permissions(&directory, permissions).map_err(|error| LaunchError::Io("protect it", error))?;
        if is_root() {
            chown(&directory, Some(UNPRIVILEGED), Some(UNPRIVILEGED))
                .map_err(|error| LaunchError::Io("give it away", error))?;
        }
        let mut initdb = unprivileged(&bin.join("initdb"));
        initdb.args(["-U", "aro", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-D"]);
        let made = run(initdb.arg(directory.join("data")), "initdb");
        if let Err(error) = made {
            let _ = fs::remove_dir_all(&directory);
            return Err(error);
        }
        let mut supervisor = unprivileged(Path::new("/bin/sh"))
            .args(["-c", SUPERVISOR, "supervisor"])
            .args([&bin, &directory])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Its own group: an interrupt from the keyboard must not kill it before it has cleaned up.
            .process_group(0)
            .spawn()
            .map_err(|error| LaunchError::Io("start the supervisor", error))?;
        let stdin = supervisor.stdin.take();
        let supervisor = Mutex::new((supervisor, stdin));
        let server = Self { bin, directory, supervisor, schemas: AtomicU32::new(0) };
        server.wait_ready()?;
        Ok(server)
    }

    /// Connection settings of a fresh, empty schema.
    pub fn fresh_schema(&self) -> Result<String, LaunchError> {
        let schema = format!("t{}", self.schemas.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!("CREATE SCHEMA {schema}"))?;
        let socket = self.directory.display();
        Ok(format!("host={socket} user=aro dbname=postgres options='-c search_path={schema}'"))
    }

    /// The directory of its socket, for clients that take host (this), port (5432), user (`aro`) and database
    /// (`postgres`) apart.
    pub fn socket(&self) -> &Path {
        &self.directory
    }

    /// Restarts the server so that it listens on a loopback address of its own (port 5432), too; with TLS when there are a
    /// certificate and its key.
    pub fn listen(&self, tls: Option<(&str, &str)>) -> Result<Ipv4Addr, LaunchError> {
        self.down()?;
        // All of 127.0.0.0/8 is loopback, and no other server uses a random address of it.
        let [_, a, b, c, ..] = *uuid::Uuid::new_v4().as_bytes();
        let address = Ipv4Addr::new(127, a, b, c.clamp(2, 254));
        let append = |name: &str, text: &str| {
            let file = fs::OpenOptions::new().append(true).open(self.directory.join("data").join(name));
            file.and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|error| LaunchError::Io("configure the server", error))
        };
        append("pg_hba.conf", "host all all 127.0.0.0/8 trust\n")?;
        self.write("listen", &address.to_string())?;
        if let Some((certificate, key)) = tls {
            self.write("data/server.crt", certificate)?;
            self.write("data/server.key", key)?;
            append("postgresql.conf", "ssl = on\n")?;
        }
        self.up()?;
        Ok(address)
    }

    /// Writes a file that only the server reads.
    fn write(&self, name: &str, text: &str) -> Result<(), LaunchError> {
        let path = self.directory.join(name);
        let written = fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)))
            .and_then(
                |()| if is_root() { chown(&path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)) } else { Ok(()) },
            );
        written.map_err(|error| LaunchError::Io("write a file of the server", error))
    }

    /// Runs a statement as the owner of everything and returns its output.
    pub fn sql(&self, statement: &str) -> Result<String, LaunchError> {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "aro", "-d", "postgres", "-h"]);
        run(psql.arg(&self.directory).args(["-c", statement]), "psql")
    }

    /// Kills the server without any chance to tidy up, as a power failure would, and waits until it runs again.
    pub fn crash_and_restart(&self) -> Result<(), LaunchError> {
        let before = self.server_pid();
        self.command("crash")?;
        let mut gone = false;
        for _ in 0..1000 {
            gone = self.server_pid() != before;
            if gone {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if !gone {
            return Err(LaunchError::NotReady(self.log()));
        }
        self.wait_ready()
    }

    /// Stops the server until [`TestPostgres::up`].
    pub fn down(&self) -> Result<(), LaunchError> {
        self.command("down")?;
        for _ in 0..1000 {
            if self.server_pid().is_none() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(LaunchError::NotReady(self.log()))
    }

    /// Starts the server after [`TestPostgres::down`].
    pub fn up(&self) -> Result<(), LaunchError> {
        self.command("up")?;
        self.wait_ready()
    }

    fn command(&self, word: &str) -> Result<(), LaunchError> {
        let mut supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stdin) = &mut supervisor.1 {
            writeln!(stdin, "{word}").map_err(|error| LaunchError::Io("write to the supervisor", error))?;
        }
        Ok(())
    }

    fn pid_file(&self) -> Option<Vec<String>> {
        let text = fs::read_to_string(self.directory.join("data/postmaster.pid")).ok()?;
        Some(text.lines().map(|line| line.trim().to_owned()).collect())
    }

    fn server_pid(&self) -> Option<String> {
        self.pid_file()?.into_iter().next()
    }

    /// The server writes `ready` into the eighth line of its pid file; the file of a dead one still holds it.
    fn is_ready(&self) -> bool {
        let Some(lines) = self.pid_file() else { return false };
        let alive = lines.first().is_some_and(|pid| Path::new("/proc").join(pid).exists());
        alive && lines.get(7).is_some_and(|state| state == "ready") && self.sql("SELECT 1").is_ok()
    }

    fn wait_ready(&self) -> Result<(), LaunchError> {
        for _ in 0..1500 {
            if self.is_ready() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(LaunchError::NotReady(self.log()))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for TestPostgres {
    fn drop(&mut self) {
        let mut supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        drop(supervisor.1.take());
        let _ = supervisor.0.wait();
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if is_root() {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    command
}

fn run(command: &mut Command, program: &'static str) -> Result<String, LaunchError> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| LaunchError::Io(program, error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(LaunchError::Failed { program, output: text(&output.stderr) })
    }
}

/// The variable, then Debian's place (newest first), then the search path.
fn find_programs() -> Option<PathBuf> {
    // A test's own knob, read by tests only, so it is not in the product's registry of variables.
    let named = std::env::var_os(BIN_VARIABLE).map(PathBuf::from);
    let mut debian: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    debian.sort();
    debian.reverse();
    let on_path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut places = named.into_iter().chain(debian).chain(on_path.unwrap_or_default());
    places.find(|place| place.join("initdb").exists() && place.join("postgres").exists())
}
