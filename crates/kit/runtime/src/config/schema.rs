//! All sections of a process, and how they are merged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::suggest::closest;
use super::variables::{self, PREFIX, SEPARATOR, SPECIAL, Target, variable_for};
use super::{Checked, ConfigProblems, Key, Origin, Problem, Profile, Section, Sources};

/// Every section a process knows, in the order they are documented.
#[derive(Debug, Default)]
pub struct Schema {
    pub(super) entries: Vec<Entry>,
}

/// One section without its type.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) table: &'static str,
    pub(super) about: String,
    pub(super) keys: Vec<Key>,
    pub(super) defaults: Table,
    profile: fn(Profile) -> Table,
    /// Whether a table (usually of one key) has the right types.
    accepts: fn(&Table) -> Result<(), String>,
    examine: fn(&Table) -> Result<(), ConfigProblems>,
}

/// A section as the reference documents it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentedSection {
    /// The table's name.
    pub table: &'static str,
    /// What it is about.
    pub about: String,
    /// Its keys, in declaration order.
    pub keys: Vec<DocumentedKey>,
}

/// A key as the reference documents it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentedKey {
    /// The key's name inside its table.
    pub name: &'static str,
    /// What it means.
    pub doc: String,
    /// Its default, in TOML; `None` if it is not set.
    pub default: Option<String>,
    /// What profiles set it to, in TOML.
    pub profiles: Vec<(Profile, String)>,
    /// Its environment variable.
    pub variable: String,
}

/// Merged values, each with its origin.
#[derive(Debug)]
pub struct Loaded {
    pub(super) values: BTreeMap<&'static str, BTreeMap<String, (Value, Origin)>>,
    pub(super) schema: Schema,
}

impl Schema {
    /// Knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a section.
    pub fn with<T: Section>(mut self) -> Self {
        self.entries.push(Entry {
            table: T::TABLE,
            about: T::about(),
            keys: T::keys(),
            // Sections are plain structs of serialisable fields; one that is not shows up in every test.
            defaults: Table::try_from(T::default()).unwrap_or_default(),
            profile: T::profile,
            accepts: |table| parse::<T>(table).map(drop),
            examine: |table| match parse::<T>(table) {
                Ok(section) => section.check().map(drop),
                Err(_) => Ok(()), // reported by `accepts`
            },
        });
        self
    }

    /// Every section as the reference documents it.
    pub fn reference(&self) -> Vec<DocumentedSection> {
        let documented = |entry: &Entry| DocumentedSection {
            table: entry.table,
            about: entry.about.clone(),
            keys: entry
                .keys
                .iter()
                .map(|key| DocumentedKey {
                    name: key.name,
                    doc: key.doc.clone(),
                    default: entry.defaults.get(key.name).map(ToString::to_string),
                    profiles: [Profile::Dev, Profile::Prod]
                        .into_iter()
                        .filter_map(|profile| {
                            Some((profile, (entry.profile)(profile).get(key.name)?.to_string()))
                        })
                        .collect(),
                    variable: variable_for(entry.table, key.name),
                })
                .collect(),
        };
        self.entries.iter().map(documented).collect()
    }

    /// Merges the sources and checks everything; reports all problems at once.
    pub fn load(self, sources: &Sources) -> Result<Loaded, ConfigProblems> {
        let mut merge = Merge { schema: &self, values: BTreeMap::new(), problems: Vec::new() };
        let profile = merge.profile(sources);
        for entry in &self.entries {
            merge.trusted(entry.table, &entry.defaults, &Origin::Default);
            merge.trusted(entry.table, &(entry.profile)(profile), &Origin::Profile(profile));
        }
        let file = sources.file.clone();
        if let Some(path) = file.or_else(|| sources.environment.get(variables::CONFIG).map(PathBuf::from)) {
            merge.file(&path);
        }
        merge.environment(sources);
        for (key, text) in &sources.flags {
            merge.text(key, text, &Origin::Flag);
        }
        merge.examine();
        let Merge { values, problems, .. } = merge;
        ConfigProblems::unless_empty(problems)?;
        Ok(Loaded { values, schema: self })
    }
}

impl Loaded {
    /// One section, checked.
    pub fn section<T: Section>(&self) -> Result<Checked<T>, ConfigProblems> {
        let table = self.values.get(T::TABLE).map(plain).unwrap_or_default();
        let section = parse::<T>(&table).map_err(|message| {
            ConfigProblems::one(Problem { key: T::TABLE.to_owned(), message, origin: None })
        })?;
        section.check()
    }
}

struct Merge<'a> {
    schema: &'a Schema,
    values: BTreeMap<&'static str, BTreeMap<String, (Value, Origin)>>,
    problems: Vec<Problem>,
}

impl<'a> Merge<'a> {
    fn problem(&mut self, key: impl Into<String>, message: impl Into<String>, origin: &Origin) {
        self.problems.push(Problem {
            key: key.into(),
            message: message.into(),
            origin: Some(origin.clone()),
        });
    }

    fn profile(&mut self, sources: &Sources) -> Profile {
        if let Some(profile) = sources.profile {
            return profile;
        }
        match sources.environment.get(variables::PROFILE).map(str::parse).transpose() {
            Ok(profile) => profile.unwrap_or_default(),
            Err(error) => {
                let error: super::UnknownProfile = error;
                self.problem("profile", error.to_string(), &Origin::Env(variables::PROFILE.to_owned()));
                Profile::default()
            }
        }
    }

    /// Values of ours: types are right by construction.
    fn trusted(&mut self, table: &'static str, values: &Table, origin: &Origin) {
        let section = self.values.entry(table).or_default();
        for (key, value) in values {
            section.insert(key.clone(), (value.clone(), origin.clone()));
        }
    }

    fn file(&mut self, path: &Path) {
        let origin = Origin::File(path.to_owned());
        let place = path.display().to_string();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.problem(place, format!("cannot be read: {error}"), &origin),
        };
        let root: Table = match text.parse() {
            Ok(root) => root,
            Err(error) => {
                let error: toml::de::Error = error;
                let line = error
                    .span()
                    .map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
                return self.problem(place, format!("line {line}: {}", error.message()), &origin);
            }
        };
        for (table, values) in root {
            let Value::Table(values) = values else {
                self.unknown(&table, &origin);
                continue;
            };
            if self.schema.entries.iter().all(|entry| entry.table != table) {
                self.unknown(&table, &origin);
                continue;
            }
            for (key, value) in values {
                self.value(&format!("{table}.{key}"), &[value], &origin);
            }
        }
    }

    fn environment(&mut self, sources: &Sources) {
        for special in SPECIAL {
            if let (Target::Key(key), Some(text)) = (special.target, sources.environment.get(special.name))
                && self.find(key).is_some()
            {
                self.text(key, text, &Origin::Env(special.name.to_owned()));
            }
        }
        for (name, text) in sources.environment.iter() {
            let Some(rest) = name.strip_prefix(PREFIX).filter(|rest| rest.contains(SEPARATOR)) else {
                continue;
            };
            let origin = Origin::Env(name.to_owned());
            let keys = self.schema.entries.iter();
            let mut keys = keys.flat_map(|entry| entry.keys.iter().map(move |key| (entry.table, key.name)));
            match keys.find(|(table, key)| variable_for(table, key) == name) {
                Some((table, key)) => self.text(&format!("{table}.{key}"), text, &origin),
                None => self.unknown(&rest.to_ascii_lowercase().replacen(SEPARATOR, ".", 1), &origin),
            }
        }
    }

    /// A value given as text: taken as a string if the key wants one, else read as TOML (`true`, `42`, `[…]`).
    fn text(&mut self, key: &str, text: &str, origin: &Origin) {
        let mut candidates = vec![Value::String(text.to_owned())];
        candidates
            .extend(format!("v = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("v")));
        self.value(key, &candidates, origin);
    }

    /// Takes the first candidate whose type is right.
    fn value(&mut self, path: &str, candidates: &[Value], origin: &Origin) {
        let Some((entry, key)) = self.find(path) else { return self.unknown(path, origin) };
        let mut refused = String::new();
        for value in candidates {
            match (entry.accepts)(&Table::from_iter([(key.name.to_owned(), value.clone())])) {
                Ok(()) => {
                    let section = self.values.entry(entry.table).or_default();
                    section.insert(key.name.to_owned(), (value.clone(), origin.clone()));
                    return;
                }
                Err(message) => refused = message,
            }
        }
        self.problem(path, refused, origin);
    }

    fn find(&self, path: &str) -> Option<(&'a Entry, &'a Key)> {
        let (table, name) = path.split_once('.')?;
        let entry = self.schema.entries.iter().find(|entry| entry.table == table)?;
        Some((entry, entry.keys.iter().find(|key| key.name == name)?))
    }

    fn unknown(&mut self, path: &str, origin: &Origin) {
        let known: Vec<String> = self
            .schema
            .entries
            .iter()
            .flat_map(|entry| {
                let keys = entry.keys.iter().map(|key| format!("{}.{}", entry.table, key.name));
                std::iter::once(entry.table.to_owned()).chain(keys)
            })
            .collect();
        let message = match closest(path, known.iter().map(String::as_str)) {
            Some(close) => format!("there is no such key; did you mean `{close}`?"),
            None => "there is no such key".to_owned(),
        };
        self.problem(path, message, origin);
    }

    /// Lets every section judge its merged values.
    fn examine(&mut self) {
        for entry in &self.schema.entries {
            let Some(section) = self.values.get(entry.table) else { continue };
            let Err(found) = (entry.examine)(&plain(section)) else { continue };
            for mut problem in found.into_vec() {
                let key = problem.key.split_once('.').map(|(_, key)| key.to_owned()).unwrap_or_default();
                problem.origin = section.get(&key).map(|(_, origin)| origin.clone());
                self.problems.push(problem);
            }
        }
    }
}

fn plain(section: &BTreeMap<String, (Value, Origin)>) -> Table {
    section.iter().map(|(key, (value, _))| (key.clone(), value.clone())).collect()
}

fn parse<T: Section>(table: &Table) -> Result<T, String> {
    T::deserialize(table.clone()).map_err(|error: toml::de::Error| error.message().to_owned())
}
