use std::net::SocketAddr;

use super::*;
use crate::Environment;

crate::section! {
    /// The ARM front end.
    struct Front in "frontend" {
        /// Where it listens.
        listen: SocketAddr = ([127, 0, 0, 1], 8443).into(),
        /// Which region.
        location: String = "uksouth".to_owned(),
        /// How long requests may drain.
        drain_for: Period = Period::secs(20),
        /// Whether an ingress stands in front.
        behind_ingress: bool = false,
        /// Most connections at once.
        max_connections: u32 = 1024,
        /// Where the secret is.
        token_file: Option<SecretFile> = None,
    }
}

impl Section for Front {
    fn profile(profile: Profile) -> toml::Table {
        match profile {
            Profile::Dev => toml::Table::new(),
            Profile::Prod => toml::Table::from_iter([("drain_for".to_owned(), "31s".into())]),
        }
    }

    fn examine(&self, problems: &mut Problems) {
        if !self.listen.ip().is_loopback() && !self.behind_ingress {
            problems.add("listen", "must be a loopback address");
        }
        if self.location.is_empty() {
            problems.add("location", "must not be empty");
        }
    }
}

fn load(sources: &Sources) -> Result<Loaded, ConfigProblems> {
    Schema::new().with::<Front>().load(sources)
}

fn env(variables: &[(&str, &str)]) -> Sources {
    Sources { environment: variables.iter().copied().collect::<Environment>(), ..Sources::default() }
}

fn problems(sources: &Sources) -> Vec<String> {
    load(sources).unwrap_err().iter().map(ToString::to_string).collect()
}

fn file(text: &str) -> (tempfile::NamedTempFile, Sources) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let sources = Sources { file: Some(file.path().to_owned()), ..Sources::default() };
    (file, sources)
}

#[test]
fn each_layer_wins_over_the_one_before() {
    let drain = |sources: &Sources| load(sources).unwrap().section::<Front>().unwrap().drain_for.to_string();
    let (_file, mut sources) = file("[frontend]\ndrain_for = \"3s\"\n");
    let given = sources.file.take();
    assert_eq!(drain(&sources), "20s");
    sources.profile = Some(Profile::Prod);
    assert_eq!(drain(&sources), "31s");
    sources.file = given;
    assert_eq!(drain(&sources), "3s");
    sources.environment = Environment::from_iter([("ARO_FRONTEND__DRAIN_FOR", "4s")]);
    assert_eq!(drain(&sources), "4s");
    let sources = sources.set("frontend.drain_for", "5s").set("frontend.drain_for", "6s");
    assert_eq!(drain(&sources), "6s");
}

#[test]
fn text_becomes_whatever_type_the_key_wants() {
    let sources = env(&[
        ("ARO_FRONTEND__LOCATION", "42"),
        ("ARO_FRONTEND__MAX_CONNECTIONS", "42"),
        ("ARO_FRONTEND__BEHIND_INGRESS", "true"),
        ("ARO_FRONTEND__LISTEN", "0.0.0.0:0"),
    ]);
    let front = load(&sources).unwrap().section::<Front>().unwrap();
    assert_eq!((front.location.as_str(), front.max_connections, front.behind_ingress), ("42", 42, true));
}

#[test]
fn every_problem_is_reported_at_once_with_key_and_origin() {
    let (file, sources) = file(
        "[frontend]\nlisen = \"127.0.0.1:1\"\nmax_connections = \"many\"\nlisten = \"0.0.0.0:1\"\n[frontent]\nx = 1\n",
    );
    let found = problems(&sources.set("frontend.location", "").set("nonsense", "1"));
    let path = file.path().display();
    assert_eq!(
        found,
        [
            format!(
                "`frontend.lisen`: there is no such key; did you mean `frontend.listen`? (from file {path})"
            ),
            format!(
                "`frontend.max_connections`: invalid type: string \"many\", expected u32 (from file {path})"
            ),
            format!("`frontent`: there is no such key; did you mean `frontend`? (from file {path})"),
            "`nonsense`: there is no such key (from flag)".to_owned(),
            format!("`frontend.listen`: must be a loopback address (from file {path})"),
            "`frontend.location`: must not be empty (from flag)".to_owned(),
        ]
    );
}

#[test]
fn a_mistyped_variable_is_refused_and_foreign_ones_are_not() {
    assert_eq!(
        problems(&env(&[("ARO_FRONTEND__LISEN", "x"), ("ARO_CACHE", "/tmp"), ("PATH", "/bin")])),
        [
            "`frontend.lisen`: there is no such key; did you mean `frontend.listen`? (from env ARO_FRONTEND__LISEN)"
        ]
    );
}

#[test]
fn a_broken_or_missing_file_is_a_problem_with_its_place() {
    let (file, sources) = file("[frontend]\nlisten = \n");
    let found = problems(&sources);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with(&format!("`{}`: line 2:", file.path().display())), "{found:?}");
    let missing = Sources { file: Some("/no/such/file.toml".into()), ..Sources::default() };
    assert!(problems(&missing)[0].contains("cannot be read"));
}

#[test]
fn the_file_and_the_profile_may_come_from_the_environment() {
    let (file, _) = file("[frontend]\nlocation = \"westus\"\n");
    let path = file.path().display().to_string();
    let loaded = load(&env(&[("ARO_CONFIG", &path), ("ARO_PROFILE", "prod")])).unwrap();
    let front = loaded.section::<Front>().unwrap();
    assert_eq!((front.location.as_str(), front.drain_for), ("westus", Period::secs(31)));
    assert!(problems(&env(&[("ARO_PROFILE", "test")]))[0].contains("there is no profile `test`"));
}

#[test]
fn the_print_tells_origins_and_unset_keys() {
    let sources = env(&[("ARO_FRONTEND__LOCATION", "westus")]).set("frontend.max_connections", "7");
    let lines: Vec<String> = load(&sources)
        .unwrap()
        .print()
        .into_iter()
        .map(|line| format!("{} = {} # {}", line.key, line.value.unwrap_or_default(), line.origin))
        .collect();
    assert_eq!(
        lines,
        [
            "frontend.listen = \"127.0.0.1:8443\" # default",
            "frontend.location = \"westus\" # env ARO_FRONTEND__LOCATION",
            "frontend.drain_for = \"20s\" # default",
            "frontend.behind_ingress = false # default",
            "frontend.max_connections = 7 # flag",
            "frontend.token_file =  # default",
        ]
    );
}
