//! Dependencies only point down. The path of a crate tells its layer (ADR 0001).

/// A workspace member.
#[derive(Debug, Clone)]
pub struct Crate {
    pub name: String,
    /// Relative to the workspace, with `/`.
    pub path: String,
    /// On other members only.
    pub dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone)]
pub struct Dependency {
    pub name: String,
    pub dev: bool,
}

/// Where a crate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    Base,
    /// Kubernetes' own algorithms, and our custom resources as types: words for other pure crates, as base is.
    Machinery,
    Core,
    Kit,
    Port,
    Adapter,
    /// A part of a service that is a crate of its own; only the service it lies under knows it.
    Part,
    Service,
    App,
    Bin,
    Test,
    Bench,
    Tool,
}

impl Layer {
    /// The layer of a path; `None` if the path is in no layer.
    pub fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        Some(match parts.as_slice() {
            ["crates", "core", "base"] => Self::Base,
            ["crates", "core", "machinery" | "crds"] => Self::Machinery,
            ["crates", "core", _] => Self::Core,
            ["crates", "kit", _] => Self::Kit,
            ["crates", "port", _] => Self::Port,
            ["crates", "port", _, _] => Self::Adapter,
            ["crates", "svc", _] => Self::Service,
            ["crates", "svc", _, _] => Self::Part,
            ["crates", "app"] => Self::App,
            ["bin", _] => Self::Bin,
            ["test", _] => Self::Test,
            ["bench"] => Self::Bench,
            ["xtask"] => Self::Tool,
            _ => return None,
        })
    }

    /// The layers this one may build on.
    fn below(self) -> &'static [Self] {
        match self {
            Self::Base | Self::Tool => &[],
            Self::Machinery => &[Self::Base],
            Self::Core => &[Self::Base, Self::Machinery],
            Self::Kit => &[Self::Base, Self::Kit],
            Self::Port | Self::Adapter | Self::Part | Self::Service => {
                &[Self::Base, Self::Machinery, Self::Core, Self::Kit, Self::Port]
            }
            Self::App => &[
                Self::Base,
                Self::Machinery,
                Self::Core,
                Self::Kit,
                Self::Port,
                Self::Adapter,
                Self::Part,
                Self::Service,
            ],
            Self::Bin => &[Self::Base, Self::Kit, Self::App],
            Self::Test | Self::Bench => &[
                Self::Base,
                Self::Machinery,
                Self::Core,
                Self::Kit,
                Self::Port,
                Self::Adapter,
                Self::Part,
                Self::Service,
                Self::App,
                Self::Test,
            ],
        }
    }

    fn may_use(self, other: Self, dev: bool) -> bool {
        // Tests of any crate may use the shared test helpers and a real adapter behind a port.
        self.below().contains(&other) || (dev && matches!(other, Self::Test | Self::Adapter))
    }
}

/// Everything that breaks the rule, one sentence each.
pub fn violations(crates: &[Crate]) -> Vec<String> {
    let mut found = Vec::new();
    for member in crates {
        let Some(layer) = Layer::of(&member.path) else {
            found.push(format!(
                "{} ({}) is in no layer; see docs/adr/0001-layers.md",
                member.name, member.path
            ));
            continue;
        };
        for dependency in &member.dependencies {
            let target = crates.iter().find(|other| other.name == dependency.name);
            let Some(below) = target.and_then(|target| Layer::of(&target.path)) else { continue };
            let own_part = target.is_some_and(|target| target.path.starts_with(&format!("{}/", member.path)));
            if !(layer.may_use(below, dependency.dev) || (below == Layer::Part && own_part)) {
                let how = if dependency.dev { "in tests depend" } else { "depend" };
                found.push(format!(
                    "{} ({layer:?}) must not {how} on {} ({below:?}); see docs/adr/0001-layers.md",
                    member.name, dependency.name
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [(&str, &str); 12] = [
        ("base", "crates/core/base"),
        ("arm", "crates/core/arm"),
        ("runtime", "crates/kit/runtime"),
        ("web", "crates/kit/web"),
        ("store", "crates/port/store"),
        ("sqlite", "crates/port/store/sqlite"),
        ("frontend", "crates/svc/service/frontend"),
        ("backend", "crates/svc/backend"),
        ("worker", "crates/svc/backend/worker"),
        ("app", "crates/app"),
        ("aro", "bin/aro"),
        ("fixtures", "test/fixtures"),
    ];

    /// All crates; `from` depends on `to`.
    fn world(from: &str, to: &str, dev: bool) -> Vec<Crate> {
        let member = |(name, path): (&str, &str)| Crate {
            name: name.to_owned(),
            path: path.to_owned(),
            dependencies: (name == from)
                .then(|| Dependency { name: to.to_owned(), dev })
                .into_iter()
                .collect(),
        };
        PATHS.into_iter().map(member).collect()
    }

    fn allowed(from: &str, to: &str) -> bool {
        violations(&world(from, to, false)).is_empty()
    }

    #[test]
    fn downward_is_allowed() {
        for (from, to) in [
            ("arm", "base"),
            ("web", "runtime"),
            ("store", "arm"),
            ("sqlite", "store"),
            ("frontend", "store"),
            ("frontend", "web"),
            ("frontend", "arm"),
            ("backend", "worker"),
            ("app", "sqlite"),
            ("app", "frontend"),
            ("aro", "app"),
            ("fixtures", "sqlite"),
        ] {
            assert!(allowed(from, to), "{from} -> {to}");
        }
    }

    #[test]
    fn sideways_and_upward_is_forbidden() {
        for (from, to) in [
            ("base", "arm"),
            ("arm", "runtime"),
            ("runtime", "arm"),
            ("web", "store"),
            ("store", "sqlite"),
            ("sqlite", "frontend"),
            ("frontend", "backend"),
            ("frontend", "worker"),
            ("worker", "backend"),
            ("frontend", "sqlite"),
            ("frontend", "app"),
            ("app", "aro"),
            ("aro", "frontend"),
            ("frontend", "fixtures"),
        ] {
            assert!(!allowed(from, to), "{from} -> {to}");
        }
    }

    #[test]
    fn tests_may_use_fixtures_and_adapters_but_not_another_service() {
        assert!(violations(&world("frontend", "fixtures", true)).is_empty());
        assert!(violations(&world("frontend", "sqlite", true)).is_empty());
        assert!(!violations(&world("frontend", "backend", true)).is_empty());
        assert!(!violations(&world("runtime", "arm", true)).is_empty());
    }

    #[test]
    fn a_crate_outside_the_layers_is_reported_by_name() {
        let stray =
            Crate { name: "stray".to_owned(), path: "crates/misc".to_owned(), dependencies: Vec::new() };
        let found = violations(&[stray]);
        assert_eq!(found, ["stray (crates/misc) is in no layer; see docs/adr/0001-layers.md"]);
    }
}
