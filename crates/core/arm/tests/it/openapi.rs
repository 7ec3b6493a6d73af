//! The tables of members against the published OpenAPI documents, version by version.
//!
//! The documents are not part of this repository: they are looked for in `ARO_SPECS` or beside the workspace, and
//! the tests say so when they are not there. Where we differ on purpose, [`DIFFERENCES`] says why; a difference that
//! is not listed fails, and so does a listed one that is no more.

mod differences;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use aro_arm::hcp::members::{Body, Kind, Member};
use aro_arm::hcp::version::ApiVersion;
use aro_arm::hcp::{cluster, external_auth, node_pool};
use aro_arm::schema::{Access, Scalar};
use serde_json::{Map, Value};

use differences::DIFFERENCES;

#[allow(clippy::disallowed_methods, reason = "tests find their inputs by the environment")]
pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The directory of the published documents.
pub fn specs() -> Option<PathBuf> {
    aro_prerequisites::specs("arm-hcp")
}

/// A document and those it refers to.
struct Documents {
    folder: PathBuf,
    loaded: RefCell<BTreeMap<PathBuf, Value>>,
}

/// A definition: the file it is in, for references out of it, and its text.
#[derive(Clone)]
struct Definition {
    file: PathBuf,
    text: Value,
}

impl Documents {
    fn load(&self, file: &Path) -> Value {
        let mut loaded = self.loaded.borrow_mut();
        let read = || serde_json::from_slice(&std::fs::read(self.folder.join(file)).unwrap()).unwrap();
        loaded.entry(file.to_owned()).or_insert_with(read).clone()
    }

    fn named(&self, file: &Path, name: &str) -> Definition {
        let text = self.load(file)["definitions"][name].clone();
        assert!(text.is_object(), "no definition {name} in {}", file.display());
        Definition { file: file.to_owned(), text }
    }

    /// Follows a `$ref`; what stands beside it wins.
    fn resolve(&self, at: &Definition) -> Definition {
        let Some(reference) = at.text.get("$ref").and_then(Value::as_str) else { return at.clone() };
        let (file, name) = reference.split_once("#/definitions/").unwrap();
        let file = if file.is_empty() { at.file.clone() } else { at.file.parent().unwrap().join(file) };
        let mut found = self.resolve(&self.named(&file, name));
        let beside = at.text.as_object().unwrap().iter().filter(|(key, _)| *key != "$ref");
        found.text.as_object_mut().unwrap().extend(beside.map(|(key, value)| (key.clone(), value.clone())));
        found
    }

    /// The properties of a definition and of all it builds on, and which of them are required.
    fn properties(&self, at: &Definition) -> (BTreeMap<String, Definition>, BTreeSet<String>) {
        let (mut properties, mut required) = (BTreeMap::new(), BTreeSet::new());
        let part = |text: &Value| Definition { file: at.file.clone(), text: text.clone() };
        for base in at.text["allOf"].as_array().into_iter().flatten() {
            let (inner, needed) = self.properties(&self.resolve(&part(base)));
            properties.extend(inner);
            required.extend(needed);
        }
        for (name, text) in at.text["properties"].as_object().unwrap_or(&Map::new()) {
            properties.insert(name.clone(), self.resolve(&part(text)));
        }
        required.extend(
            at.text["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|name| Some(name.as_str()?.to_owned())),
        );
        (properties, required)
    }
}

/// One comparison: what is found is collected as (path, aspect, text).
struct Comparison<'a> {
    documents: &'a Documents,
    version: ApiVersion,
    body: &'static Body,
    /// A patch holds parts: nothing is required of it, and it need not have everything.
    partial: bool,
    found: Vec<(String, &'static str, String)>,
}

impl Comparison<'_> {
    fn differ(
        &mut self,
        path: &str,
        aspect: &'static str,
        theirs: impl std::fmt::Debug,
        ours: impl std::fmt::Debug,
    ) {
        self.found.push((
            path.to_owned(),
            aspect,
            format!("{}: they have {theirs:?}, we have {ours:?}", self.version),
        ));
    }

    fn object(&mut self, path: &str, members: &'static [Member], definition: &Definition) {
        let (properties, required) = self.documents.properties(definition);
        for (name, property) in &properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match self.find(&path, members, name) {
                Some(member) => self.member(&path, member, property, required.contains(name)),
                None => self.differ(&path, "presence", "it", "nothing"),
            }
        }
        let (version, partial) = (self.version, self.partial);
        for member in members.iter().filter(|member| member.is_known(version) && !partial) {
            let path =
                if path.is_empty() { member.name.to_owned() } else { format!("{path}.{}", member.name) };
            let moved = self.body.moves.iter().any(|moved| {
                moved.applies(self.version) && [moved.parent, moved.new].concat().join(".") == path
            });
            if !moved && !properties.contains_key(member.name) {
                self.differ(&path, "presence", "nothing", "it");
            }
        }
    }

    /// The member by its name, or, where an older version has it elsewhere, by its newer place.
    fn find(&self, path: &str, members: &'static [Member], name: &str) -> Option<&'static Member> {
        let moved = self.body.moves.iter().filter(|moved| moved.applies(self.version));
        for moved in moved {
            if [moved.parent, moved.old].concat().join(".") == path {
                let place = [moved.parent, moved.new].concat();
                let (last, way) = place.split_last()?;
                let mut members = self.body.members;
                for name in way {
                    let member = members.iter().find(|member| member.name == *name)?;
                    let Kind::Object(inner, _) = member.kind else { return None };
                    members = inner;
                }
                return members.iter().find(|member| member.name == *last);
            }
        }
        members.iter().find(|member| member.name == name && member.is_known(self.version))
    }

    fn member(&mut self, path: &str, member: &'static Member, theirs: &Definition, required: bool) {
        let text = &theirs.text;
        let their_access = match (&text["readOnly"], text["x-ms-mutability"].as_array()) {
            (Value::Bool(true), _) => Access::ReadOnly,
            (_, Some(words)) if !words.contains(&"update".into()) => Access::Create,
            _ => Access::Update,
        };
        let our_access = access(member, self.version);
        if their_access != our_access {
            self.differ(path, "access", their_access, our_access);
        }
        if our_access != Access::ReadOnly && !self.partial && required != member.is_required(self.version) {
            self.differ(path, "required", required, !required);
        }
        let default = text.get("default").cloned();
        let our_default = member.default.map(Scalar::value);
        if default != our_default && !self.partial {
            self.differ(path, "default", default, our_default);
        }
        self.kind(path, member.kind, theirs, our_access == Access::ReadOnly);
    }

    fn kind(&mut self, path: &str, kind: Kind, theirs: &Definition, shown: bool) {
        let text = &theirs.text;
        let number = |name: &str| text[name].as_i64();
        let json_type = text["type"].as_str().unwrap_or("object");
        let expected = match kind {
            Kind::Text { .. } | Kind::Word(_) | Kind::Id(_) => "string",
            Kind::Int { .. } => "integer",
            Kind::Bool => "boolean",
            Kind::Object(..) | Kind::Map(_) | Kind::IdMap(_) => "object",
            Kind::List { .. } => "array",
            Kind::Shown(json_type) => json_type,
        };
        if json_type != expected {
            self.differ(path, "type", json_type, expected);
        }
        let words: BTreeSet<&str> =
            text["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let limits = |least: &str, most: &str| (number(least).filter(|n| *n > 0), number(most));
        let int_limits = (number("minimum"), number("maximum"));
        let found_type = &text["x-ms-arm-id-details"]["allowedResources"][0]["type"];
        match kind {
            Kind::Text { min, max, pattern } => {
                let ours = ((min > 0).then_some(min as i64), max.map(|max| max as i64));
                if limits("minLength", "maxLength") != ours {
                    self.differ(path, "length", limits("minLength", "maxLength"), ours);
                }
                if text["pattern"].as_str() != pattern.map(|pattern| pattern.text) {
                    self.differ(
                        path,
                        "pattern",
                        text["pattern"].as_str(),
                        pattern.map(|pattern| pattern.text),
                    );
                }
            }
            Kind::Word(ours) if words != ours.iter().copied().collect() => {
                self.differ(path, "enum", words.clone(), ours);
            }
            Kind::Int { min, max } if int_limits != (min.map(i64::from), max.map(i64::from)) => {
                self.differ(path, "range", int_limits, (min, max));
            }
            Kind::Id(ours) if found_type.as_str() != Some(ours) => {
                self.differ(path, "arm type", found_type, ours);
            }
            Kind::Object(members, _) if !shown || !members.is_empty() => self.object(path, members, theirs),
            Kind::List { item, min, max } => {
                let ours = ((min > 0).then_some(min as i64), max.map(|max| max as i64));
                if limits("minItems", "maxItems") != ours {
                    self.differ(path, "items", limits("minItems", "maxItems"), ours);
                }
                let item_text = Definition { file: theirs.file.clone(), text: text["items"].clone() };
                self.kind(&format!("{path}[]"), *item, &self.documents.resolve(&item_text), shown);
            }
            Kind::Map(value) => {
                let inner =
                    Definition { file: theirs.file.clone(), text: text["additionalProperties"].clone() };
                self.kind(&format!("{path}[]"), *value, &self.documents.resolve(&inner), shown);
            }
            _ => {}
        }
        if !matches!(kind, Kind::Word(_)) && !words.is_empty() && !shown {
            self.differ(path, "enum", words, "any text");
        }
    }
}

/// An object can be written where something in it can.
fn access(member: &Member, version: ApiVersion) -> Access {
    match (member.kind, member.access(version)) {
        (_, Access::ReadOnly) => Access::ReadOnly,
        (Kind::Object(members, _), own) if !member.atomic => {
            let inner =
                members.iter().filter(|inner| inner.is_known(version)).map(|inner| access(inner, version));
            inner.max().unwrap_or(own)
        }
        (_, own) => own,
    }
}

const RESOURCES: [(&str, &Body); 3] = [
    ("HcpOpenShiftCluster", &cluster::schema::BODY),
    ("NodePool", &node_pool::schema::BODY),
    ("ExternalAuth", &external_auth::schema::BODY),
];

#[test]
fn the_tables_agree_with_the_published_documents_or_say_why_not() {
    let Some(folder) = specs() else { return };
    let documents = Documents { folder, loaded: RefCell::default() };
    let mut used = BTreeSet::new();
    let mut unexpected = Vec::new();
    for version in ApiVersion::ALL.into_iter().filter(|version| *version != ApiVersion::NEWEST) {
        let file = PathBuf::from(format!("./{version}.json"));
        for (name, body) in RESOURCES {
            for (suffix, partial) in [("", false), ("Update", true)] {
                let mut comparison =
                    Comparison { documents: &documents, version, body, partial, found: Vec::new() };
                let definition = documents.named(&file, &format!("{name}{suffix}"));
                comparison.object("", body.members, &definition);
                for (path, aspect, text) in comparison.found {
                    let listed = DIFFERENCES.iter().position(|difference| {
                        difference.resource == name && difference.path == path && difference.aspect == aspect
                    });
                    match listed {
                        Some(index) => {
                            used.insert(index);
                        }
                        None => unexpected.push(format!("{name}{suffix} {path} {aspect} — {text}")),
                    }
                }
            }
        }
    }
    assert!(unexpected.is_empty(), "unlisted differences:\n{}", unexpected.join("\n"));
    let stale: Vec<_> = DIFFERENCES.iter().enumerate().filter(|(index, _)| !used.contains(index)).collect();
    assert!(stale.is_empty(), "listed differences that are none: {stale:?}");
}

#[test]
fn the_newest_version_adds_these_members_and_drops_none() {
    fn members(prefix: &str, all: &[Member], version: ApiVersion, out: &mut BTreeSet<String>) {
        for member in all.iter().filter(|member| member.is_known(version)) {
            let path = format!("{prefix}{}", member.name);
            if let Kind::Object(inner, _) = member.kind {
                members(&format!("{path}."), inner, version, out);
            }
            out.insert(path);
        }
    }
    let added: [&[&str]; 3] = [
        &[
            "properties.etcd.dataEncryption.customerManaged.kms.keyVaultType",
            "properties.platform.containerRegistry",
            "properties.platform.containerRegistry.managedIdentity",
            "properties.status.activeVersions",
        ],
        &["properties.status.activeVersions"],
        &[],
    ];
    for ((name, body), added) in RESOURCES.into_iter().zip(added) {
        let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
        members("", body.members, ApiVersion::V2026_09_01Preview, &mut before);
        members("", body.members, ApiVersion::V2026_10_01, &mut after);
        assert!(before.is_subset(&after), "{name}");
        assert_eq!(after.difference(&before).collect::<Vec<_>>(), added, "{name}");
    }
}
