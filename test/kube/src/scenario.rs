//! Scenarios: lists of calls, as files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// One step of a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Unique in its scenario; differences name it.
    pub name: String,
    /// `<method> <path>`. `${x}` stands for a saved value here and in bodies.
    #[serde(default)]
    pub call: String,
    #[serde(default)]
    pub body: Option<Value>,
    /// A body that is not to be understood.
    #[serde(default)]
    pub text: Option<String>,
    /// `Content-Type`; or one of `merge`, `json`, `strategic`, `apply` for patches.
    #[serde(default, rename = "type")]
    pub content_type: Option<String>,
    /// `Accept`; or one of `table`, `metadata`, `yaml`.
    #[serde(default)]
    pub accept: Option<String>,
    /// Without the administrator's certificate.
    #[serde(default)]
    pub bare: bool,
    /// Whom the administrator speaks for.
    #[serde(default, rename = "as")]
    pub user: Option<String>,
    #[serde(default)]
    pub groups: Vec<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Names for values of the answer, by path.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// The call is made again until the answer is like this.
    #[serde(default)]
    pub until: Option<Until>,
    /// Opens a watch under this name.
    #[serde(default)]
    pub watch: Option<String>,
    /// Reads events of an open watch.
    #[serde(default)]
    pub events: Option<String>,
    /// How many. Without it, all until the watch ends.
    #[serde(default)]
    pub count: Option<usize>,
    /// Only what the code says is compared: for preparations whose answers are compared elsewhere.
    #[serde(default)]
    pub quiet: bool,
    /// Items of lists are sorted by name before they are compared.
    #[serde(default)]
    pub sorted: bool,
    /// Only these paths of the body are compared.
    #[serde(default)]
    pub only: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    #[serde(default)]
    pub code: Option<u16>,
    /// A path in the answer, and what it has to be there; `null`: nothing.
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub is: Value,
}

#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: String,
    pub steps: Vec<Step>,
}

/// Reads every scenario of a folder, in the order of their names.
pub fn load(folder: &Path) -> Result<Vec<Scenario>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read(path).with_context(|| format!("scenario {}", path.display()))).collect()
}

fn read(path: &Path) -> Result<Scenario> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let steps: Vec<Step> = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
    let mut seen = std::collections::BTreeSet::new();
    for step in &steps {
        anyhow::ensure!(seen.insert(&step.name), "two steps are called {:?}", step.name);
    }
    Ok(Scenario { name, steps })
}

/// The value at `a.b[0].c`, where a name may hold dots if it is in quotes.
pub fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = value;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('[') {
            let (index, tail) = tail.split_once(']')?;
            value = match index.parse::<usize>() {
                Ok(index) => value.get(index)?,
                Err(_) => value.get(index)?,
            };
            rest = tail.trim_start_matches('.');
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        value = value.get(&rest[..end])?;
        rest = rest[end..].trim_start_matches('.');
    }
    Some(value)
}
