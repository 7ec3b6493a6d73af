//! Where values come from, lowest precedence first.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Environment;

/// A set of values for a purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// One machine, one person, nothing to lose.
    #[default]
    Dev,
    /// A service others rely on.
    Prod,
}

/// An unknown profile.
#[derive(Debug, thiserror::Error)]
#[error("there is no profile `{0}`; use `dev` or `prod`")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        match text {
            "dev" => Ok(Self::Dev),
            "prod" => Ok(Self::Prod),
            _ => Err(UnknownProfile(text.to_owned())),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dev => "dev",
            Self::Prod => "prod",
        })
    }
}

/// Where one value came from. The order is the order of precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// Set by the profile.
    Profile(Profile),
    /// Written in the file.
    File(PathBuf),
    /// Set by this environment variable.
    Env(String),
    /// Given on the command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Profile(profile) => write!(f, "profile {profile}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// What a configuration is merged from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The profile; without one the environment's, else `dev`.
    pub profile: Option<Profile>,
    /// The file; without one the environment's, else none.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Environment,
    /// `table.key` and value, as given on the command line; a later one wins.
    pub flags: Vec<(String, String)>,
}

impl Sources {
    /// Adds a value with the precedence of a flag.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.flags.push((key.into(), value.into()));
        self
    }
}
