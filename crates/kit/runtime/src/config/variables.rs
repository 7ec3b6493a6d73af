//! The one registry of environment variables.
//!
//! A key `table.key` has the variable `ARO_TABLE__KEY`, by rule. The few variables that do not follow the rule are
//! listed in [`SPECIAL`]; nothing else is read from the environment.

/// What a special variable stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Another name for a configuration key. The variable made by rule wins over it.
    Key(&'static str),
    /// Read before there is a configuration.
    Bootstrap,
}

/// A variable whose name does not follow the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecialVariable {
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
    pub target: Target,
    /// What it does, one sentence.
    pub doc: &'static str,
}

pub(crate) const CONFIG: &str = "ARO_CONFIG";
pub(crate) const PROFILE: &str = "ARO_PROFILE";

/// Every variable whose name does not follow the rule.
pub const SPECIAL: &[SpecialVariable] = &[
    SpecialVariable {
        name: CONFIG,
        target: Target::Bootstrap,
        doc: "The configuration file, when `--config` is not given.",
    },
    SpecialVariable {
        name: PROFILE,
        target: Target::Bootstrap,
        doc: "The profile (`dev` or `prod`), when `--profile` is not given.",
    },
    SpecialVariable {
        name: "ARO_LOG",
        target: Target::Key("telemetry.log"),
        doc: "What to log, for example `info,aro_frontend=debug`.",
    },
    SpecialVariable {
        name: "OTEL_EXPORTER_OTLP_ENDPOINT",
        target: Target::Key("telemetry.otlp_endpoint"),
        doc: "Where to send traces, as OpenTelemetry tools call it.",
    },
    SpecialVariable {
        name: "XDG_DATA_HOME",
        target: Target::Bootstrap,
        doc: "Data lives in `$XDG_DATA_HOME/aro` when `--data-dir` is not given.",
    },
    SpecialVariable {
        name: "HOME",
        target: Target::Bootstrap,
        doc: "Data lives in `$HOME/.local/share/aro` when there is no `XDG_DATA_HOME` either.",
    },
];

/// The prefix and the separator of variables made by rule.
pub(super) const PREFIX: &str = "ARO_";
pub(super) const SEPARATOR: &str = "__";

/// The variable of a key, by rule.
pub fn variable_for(table: &str, key: &str) -> String {
    let upper = |text: &str| text.to_ascii_uppercase().replace('-', "_");
    format!("{PREFIX}{}{SEPARATOR}{}", upper(table), upper(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_follow_the_rule() {
        assert_eq!(variable_for("frontend", "listen"), "ARO_FRONTEND__LISTEN");
        assert_eq!(variable_for("clusters-service", "drain_for"), "ARO_CLUSTERS_SERVICE__DRAIN_FOR");
    }

    #[test]
    fn no_special_variable_looks_like_one_made_by_rule() {
        for special in SPECIAL {
            assert!(!special.name.contains(SEPARATOR), "{}", special.name);
        }
    }
}
