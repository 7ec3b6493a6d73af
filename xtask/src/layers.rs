//! Dependencies only point down. The path of a crate tells its layer (ADR 0001).
//!
//! No rule names a single crate. `crates/kube` holds pure crates and running parts side by side; which of the two a crate
//! is follows from what it depends on ([`Layers::is_running`]).

use std::collections::{HashMap, HashSet};

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

/// The layer of a crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    Base,
    Core,
    Kit,
    Port,
    /// An implementation of a port, or the conformance suite of one.
    Adapter,
    Lib,
    /// Embedded Kubernetes: types and algorithms without I/O.
    KubePure,
    /// Embedded Kubernetes: the parts that run.
    KubeRunning,
    Service,
    /// A part of one role that is a crate of its own: `crates/svc/<group>/<role>/<part>`. Only its role uses it.
    Part,
    App,
    Bin,
    Test,
    Bench,
    Tool,
}

/// The groups of roles, as the architecture documents group them.
const SERVICE_GROUPS: [&str; 5] = ["service", "management", "global", "local", "classic"];

impl Layer {
    /// The layer of a path; `None` if the path is in no layer.
    fn of(path: &str, running: bool) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        Some(match parts.as_slice() {
            ["crates", "core", "base"] => Self::Base,
            ["crates", "core", _] => Self::Core,
            ["crates", "kit", _] => Self::Kit,
            ["crates", "port", _] => Self::Port,
            ["crates", "port", _, _] => Self::Adapter,
            ["crates", "lib", _] => Self::Lib,
            ["crates", "kube", _] if running => Self::KubeRunning,
            ["crates", "kube", _] => Self::KubePure,
            ["crates", "svc", group, _] if SERVICE_GROUPS.contains(group) => Self::Service,
            ["crates", "svc", group, _, _] if SERVICE_GROUPS.contains(group) => Self::Part,
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
        use Layer::{Adapter, App, Base, Core, Kit, KubePure, KubeRunning, Lib, Port, Service, Test};
        match self {
            Base | Self::Tool => &[],
            KubePure => &[Base, KubePure],
            // Cargo refuses cycles, so crates of one layer may build on one another where that is allowed at all.
            Core => &[Base, Core, KubePure],
            Kit => &[Base, Kit],
            Port | Adapter => &[Base, Core, KubePure, Kit, Port],
            KubeRunning => &[Base, Core, KubePure, KubeRunning, Kit, Port],
            Lib | Service | Self::Part => &[Base, Core, KubePure, Kit, Port, Lib],
            App => &[Base, Core, KubePure, KubeRunning, Kit, Port, Adapter, Lib, Service],
            Self::Bin => &[Base, Kit, App],
            Test | Self::Bench => {
                &[Base, Core, KubePure, KubeRunning, Kit, Port, Adapter, Lib, Service, App, Test]
            }
        }
    }

    fn may_use(self, other: Self, dev: bool) -> bool {
        // Tests of any crate may use the shared test helpers and a real adapter behind a port.
        self.below().contains(&other) || (dev && matches!(other, Self::Test | Self::Adapter))
    }
}

/// The crates of the workspace by name, with their layers.
struct Layers<'a> {
    crates: HashMap<&'a str, &'a Crate>,
}

impl<'a> Layers<'a> {
    fn of(crates: &'a [Crate]) -> Self {
        Self { crates: crates.iter().map(|member| (member.name.as_str(), member)).collect() }
    }

    fn layer(&self, member: &Crate) -> Option<Layer> {
        Layer::of(&member.path, self.is_running(member, &mut HashSet::new()))
    }

    /// Whether a crate of `crates/kube` runs: it builds on mechanisms or ports, itself or through another of them.
    fn is_running(&self, member: &Crate, seen: &mut HashSet<String>) -> bool {
        let is_kube = |path: &str| path.starts_with("crates/kube/");
        if !is_kube(&member.path) || !seen.insert(member.name.clone()) {
            return false;
        }
        let runtime = member.dependencies.iter().filter(|dependency| !dependency.dev);
        runtime.filter_map(|dependency| self.crates.get(dependency.name.as_str())).any(|below| {
            below.path.starts_with("crates/kit/")
                || below.path.starts_with("crates/port/")
                || self.is_running(below, seen)
        })
    }
}

/// Everything that breaks the rule, one sentence each.
pub fn violations(crates: &[Crate]) -> Vec<String> {
    let layers = Layers::of(crates);
    let mut found = Vec::new();
    for member in crates {
        let Some(layer) = layers.layer(member) else {
            found.push(format!(
                "{} ({}) is in no layer; see docs/adr/0001-layers.md",
                member.name, member.path
            ));
            continue;
        };
        if let Some(wanted) = name_by_path(&member.path)
            && member.name != wanted
        {
            found.push(format!("{} ({}) must be named {wanted}", member.name, member.path));
        }
        for dependency in &member.dependencies {
            let target = layers.crates.get(dependency.name.as_str());
            let Some(below) = target.and_then(|target| layers.layer(target)) else { continue };
            let is_own_part = below == Layer::Part
                && target.is_some_and(|target| target.path.starts_with(&format!("{}/", member.path)));
            if !layer.may_use(below, dependency.dev) && !is_own_part {
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

/// The package name that a path under `crates/` prescribes: `aro-<folder>`; with the group before it where a folder name
/// alone would be ambiguous (embedded Kubernetes, classic ARO, adapters of a port).
fn name_by_path(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["crates", group @ "kube", folder]
        | ["crates", "svc", group @ "classic", folder]
        | ["crates", "port", group, folder] => Some(format!("aro-{group}-{folder}")),
        ["crates", "svc", _, role, part] => Some(format!("aro-{role}-{part}")),
        ["crates", "svc", _, folder] | ["crates", _, folder] | ["crates", folder] => {
            Some(format!("aro-{folder}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [(&str, &str); 18] = [
        ("aro-base", "crates/core/base"),
        ("aro-arm", "crates/core/arm"),
        ("aro-crds", "crates/core/crds"),
        ("aro-runtime", "crates/kit/runtime"),
        ("aro-web", "crates/kit/web"),
        ("aro-store", "crates/port/store"),
        ("aro-store-sqlite", "crates/port/store/sqlite"),
        ("aro-rp-store", "crates/lib/rp-store"),
        ("aro-arm-server", "crates/lib/arm-server"),
        ("aro-frontend", "crates/svc/service/frontend"),
        ("aro-backend", "crates/svc/service/backend"),
        ("aro-azure-local", "crates/svc/local/azure-local"),
        ("aro-azure-local-engine", "crates/svc/local/azure-local/engine"),
        ("aro-kube-types", "crates/kube/types"),
        ("aro-kube-apiserver", "crates/kube/apiserver"),
        ("aro-app", "crates/app"),
        ("aro", "bin/aro"),
        ("aro-fixtures", "test/fixtures"),
    ];

    /// All crates; `from` depends on `to`. The API server is a running part, as it builds on the runtime.
    fn world(from: &str, to: &str, dev: bool) -> Vec<Crate> {
        let member = |(name, path): (&str, &str)| {
            let mut dependencies = Vec::new();
            if name == "aro-kube-apiserver" {
                dependencies.push(Dependency { name: "aro-runtime".to_owned(), dev: false });
            }
            if name == from {
                dependencies.push(Dependency { name: to.to_owned(), dev });
            }
            Crate { name: name.to_owned(), path: path.to_owned(), dependencies }
        };
        PATHS.into_iter().map(member).collect()
    }

    fn allowed(from: &str, to: &str) -> bool {
        violations(&world(from, to, false)).is_empty()
    }

    #[test]
    fn downward_is_allowed() {
        for (from, to) in [
            ("aro-arm", "aro-base"),
            ("aro-crds", "aro-kube-types"),
            ("aro-kube-types", "aro-base"),
            ("aro-web", "aro-runtime"),
            ("aro-store", "aro-web"),
            ("aro-store-sqlite", "aro-store"),
            ("aro-rp-store", "aro-store"),
            ("aro-arm-server", "aro-rp-store"),
            ("aro-frontend", "aro-store"),
            ("aro-frontend", "aro-arm-server"),
            ("aro-frontend", "aro-kube-types"),
            ("aro-kube-apiserver", "aro-kube-types"),
            ("aro-kube-apiserver", "aro-store"),
            ("aro-app", "aro-store-sqlite"),
            ("aro-app", "aro-frontend"),
            ("aro-app", "aro-kube-apiserver"),
            ("aro", "aro-app"),
            ("aro-fixtures", "aro-store-sqlite"),
            ("aro-azure-local", "aro-azure-local-engine"),
            ("aro-azure-local-engine", "aro-arm-server"),
        ] {
            assert!(allowed(from, to), "{from} -> {to}");
        }
    }

    #[test]
    fn sideways_and_upward_is_forbidden() {
        for (from, to) in [
            ("aro-base", "aro-arm"),
            ("aro-arm", "aro-runtime"),
            ("aro-arm", "aro-kube-apiserver"),
            ("aro-kube-types", "aro-crds"),
            ("aro-runtime", "aro-arm"),
            ("aro-web", "aro-store"),
            ("aro-store", "aro-store-sqlite"),
            ("aro-store", "aro-rp-store"),
            ("aro-store-sqlite", "aro-frontend"),
            ("aro-rp-store", "aro-frontend"),
            ("aro-frontend", "aro-backend"),
            ("aro-frontend", "aro-store-sqlite"),
            ("aro-frontend", "aro-kube-apiserver"),
            ("aro-kube-apiserver", "aro-rp-store"),
            ("aro-frontend", "aro-app"),
            ("aro-app", "aro"),
            ("aro", "aro-frontend"),
            ("aro-frontend", "aro-fixtures"),
            ("aro-frontend", "aro-azure-local-engine"),
            ("aro-app", "aro-azure-local-engine"),
            ("aro-azure-local-engine", "aro-azure-local"),
        ] {
            assert!(!allowed(from, to), "{from} -> {to}");
        }
    }

    #[test]
    fn tests_may_use_fixtures_and_adapters_but_not_another_service() {
        assert!(violations(&world("aro-frontend", "aro-fixtures", true)).is_empty());
        assert!(violations(&world("aro-frontend", "aro-store-sqlite", true)).is_empty());
        assert!(!violations(&world("aro-frontend", "aro-backend", true)).is_empty());
        assert!(!violations(&world("aro-runtime", "aro-arm", true)).is_empty());
    }

    #[test]
    fn a_kube_crate_that_uses_a_running_one_is_running() {
        let found = violations(&world("aro-kube-types", "aro-kube-apiserver", false));
        assert!(found.is_empty(), "a running part may use another one: {found:?}");
        let mut crates = world("aro-kube-types", "aro-kube-apiserver", false);
        let frontend = crates.iter_mut().find(|member| member.name == "aro-frontend").unwrap();
        frontend.dependencies.push(Dependency { name: "aro-kube-types".to_owned(), dev: false });
        assert_eq!(violations(&crates).len(), 1, "no service uses it from then on");
    }

    fn only(name: &str, path: &str) -> Vec<String> {
        let member = Crate { name: name.to_owned(), path: path.to_owned(), dependencies: Vec::new() };
        violations(&[member])
    }

    #[test]
    fn a_crate_outside_the_layers_is_reported_by_name() {
        for path in ["crates/misc", "crates/svc/frontend", "crates/svc/other/frontend"] {
            assert_eq!(
                only("stray", path),
                [format!("stray ({path}) is in no layer; see docs/adr/0001-layers.md")]
            );
        }
    }

    #[test]
    fn a_package_is_named_after_its_path() {
        for (name, path) in [
            ("aro-frontend", "crates/svc/service/frontend"),
            ("aro-classic-frontend", "crates/svc/classic/frontend"),
            ("aro-kube-types", "crates/kube/types"),
            ("aro-store-sqlite", "crates/port/store/sqlite"),
            ("aro-app", "crates/app"),
        ] {
            assert!(only(name, path).is_empty(), "{path}");
        }
        assert_eq!(
            only("aro-hive", "crates/svc/classic/hive"),
            ["aro-hive (crates/svc/classic/hive) must be named aro-classic-hive"]
        );
    }
}
