//! The process environment, read once and handed on.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A snapshot of environment variables. Tests make their own; the binary takes the process's.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Reads the process environment. For the binary only. Variables that are not UTF-8 are left out.
    #[expect(clippy::disallowed_methods, reason = "this is the place the rule points to")]
    pub fn of_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    /// The value of one variable; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Every variable that is not empty, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The default directory for data: `$XDG_DATA_HOME/aro`, else `$HOME/.local/share/aro`.
    pub fn data_home(&self) -> Option<PathBuf> {
        let absolute = |name: &str| self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("XDG_DATA_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
            .map(|data| data.join("aro"))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_home_follows_xdg_and_ignores_relative_paths() {
        let xdg = Environment::from_iter([("XDG_DATA_HOME", "/data"), ("HOME", "/home/ada")]);
        assert_eq!(xdg.data_home(), Some(PathBuf::from("/data/aro")));
        let relative = Environment::from_iter([("XDG_DATA_HOME", "data"), ("HOME", "/home/ada")]);
        assert_eq!(relative.data_home(), Some(PathBuf::from("/home/ada/.local/share/aro")));
        assert_eq!(Environment::default().data_home(), None);
    }
}
