//! From a path to the endpoint it names. Pure; knows nothing of HTTP beyond method names.
//!
//! Words match without regard to case, doubled slashes collapse (az sends them), names keep the case they were written in.
//! A known path with a wrong method is distinct from an unknown path, so that the answer can be 405 with `Allow`
//! instead of 404. The table is a tree by segments: the cost of a match does not grow with the number of types.

use std::sync::Arc;

use aro_arm::ResourceId;
use percent_encoding::percent_decode_str;

use crate::provider::Versions;

/// The name of the segment that holds the subscription id.
pub(crate) const SUBSCRIPTION: &str = "subscription";
/// The name of the segment that holds the resource group's name.
pub(crate) const GROUP: &str = "group";

/// One path of a provider and what must hold before its handler runs.
#[derive(Debug, Clone)]
pub struct Route<E, V> {
    pub endpoint: E,
    /// Words in their canonical case, names as `{name}`:
    /// `/subscriptions/{subscription}/resourceGroups/{group}/providers/Ns/types/{name}`.
    pub pattern: String,
    /// The methods it answers; every other one is 405.
    pub methods: &'static [&'static str],
    /// The api-versions it is served in; `None` when it needs none.
    pub versions: Option<Arc<Versions<V>>>,
    /// Whether the state of the subscription decides about the request.
    pub checks_subscription: bool,
}

impl<E, V> Route<E, V> {
    /// A route that needs neither an api-version nor a subscription in a certain state.
    pub fn unchecked(pattern: impl Into<String>, endpoint: E, methods: &'static [&'static str]) -> Self {
        Self { endpoint, pattern: pattern.into(), methods, versions: None, checks_subscription: false }
    }

    /// Requires an api-version.
    pub fn versioned(mut self, versions: &Arc<Versions<V>>) -> Self {
        self.versions = Some(versions.clone());
        self
    }

    /// Requires a subscription whose state allows the method.
    pub fn in_live_subscription(mut self) -> Self {
        self.checks_subscription = true;
        self
    }
}

/// Why a table cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("route pattern `{0}` does not begin with a slash or has an empty segment")]
    Malformed(String),
    #[error("route pattern `{0}` is registered twice")]
    Duplicate(String),
}

/// The shape of a path, shared by all requests that match it.
#[derive(Debug)]
struct Shape {
    /// The pattern in lower case: the label of metrics.
    label: Arc<str>,
    /// The names, in the order of the path.
    names: Vec<String>,
    namespace: Option<String>,
    /// The resource types below the namespace that a name follows.
    types: Vec<String>,
}

/// All routes of a provider.
#[derive(Debug)]
pub struct RouteTable<E, V> {
    nodes: Vec<Node>,
    routes: Vec<(Route<E, V>, Arc<Shape>)>,
    depth: usize,
}

#[derive(Debug, Default)]
struct Node {
    words: Vec<(String, usize)>,
    name: Option<usize>,
    route: Option<usize>,
}

/// Why a path names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoMatch {
    Unknown,
    /// It has percent-encoding that is no text, or that hides a slash or a control character.
    Malformed,
}

impl<E: Copy, V> RouteTable<E, V> {
    /// Builds the table. Where a word and a name are possible at the same place, the word wins.
    pub fn new(routes: impl IntoIterator<Item = Route<E, V>>) -> Result<Self, RouteError> {
        let mut table = Self { nodes: vec![Node::default()], routes: Vec::new(), depth: 0 };
        for route in routes {
            table.insert(route)?;
        }
        Ok(table)
    }

    fn insert(&mut self, route: Route<E, V>) -> Result<(), RouteError> {
        let segments: Vec<&str> = match route.pattern.strip_prefix('/') {
            Some(rest) if !rest.split('/').any(str::is_empty) => rest.split('/').collect(),
            _ => return Err(RouteError::Malformed(route.pattern)),
        };
        let mut at = 0;
        for segment in &segments {
            at = self.child(at, segment);
        }
        let shape = Arc::new(Shape::new(&route.pattern, &segments));
        self.depth = self.depth.max(segments.len());
        let index = self.routes.len();
        match self.nodes.get_mut(at).and_then(|node| node.route.replace(index)) {
            None => self.routes.push((route, shape)),
            Some(_) => return Err(RouteError::Duplicate(route.pattern)),
        }
        Ok(())
    }

    /// The node below another one, made if it does not exist.
    fn child(&mut self, parent: usize, segment: &str) -> usize {
        let next = self.nodes.len();
        let Some(node) = self.nodes.get_mut(parent) else { return parent };
        let existing = match name_in(segment) {
            Some(_) => node.name,
            None => node.word(segment),
        };
        if let Some(existing) = existing {
            return existing;
        }
        match name_in(segment) {
            Some(_) => node.name = Some(next),
            None => node.words.push((segment.to_owned(), next)),
        }
        self.nodes.push(Node::default());
        next
    }

    /// Finds the route of a path.
    pub fn find(&self, path: &str) -> Result<(&Route<E, V>, Matched<E>), NoMatch> {
        let mut at = self.nodes.first();
        let mut names = Vec::with_capacity(6);
        for (index, segment) in path.split('/').filter(|segment| !segment.is_empty()).enumerate() {
            let text = percent_decode_str(segment).decode_utf8().map_err(|_| NoMatch::Malformed)?;
            if text.chars().any(|c| c == '/' || c.is_control()) {
                return Err(NoMatch::Malformed);
            }
            // The rest of an unknown path is still read: a malformed one is a different mistake.
            if index >= self.depth {
                return Err(NoMatch::Unknown);
            }
            let Some(node) = at else { continue };
            let next = node.word(&text).or_else(|| {
                let name = node.name?;
                names.push(text.into_owned());
                Some(name)
            });
            at = next.and_then(|next| self.nodes.get(next));
        }
        let index = at.and_then(|node| node.route).ok_or(NoMatch::Unknown)?;
        let (route, shape) = self.routes.get(index).ok_or(NoMatch::Unknown)?;
        Ok((route, Matched { endpoint: route.endpoint, shape: shape.clone(), names }))
    }

    /// All routes, in the order they were registered.
    pub fn routes(&self) -> impl Iterator<Item = &Route<E, V>> {
        self.routes.iter().map(|(route, _)| route)
    }
}

impl Node {
    fn word(&self, text: &str) -> Option<usize> {
        self.words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, next)| *next)
    }
}

/// The name in `{name}`.
fn name_in(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

impl Shape {
    fn new(pattern: &str, segments: &[&str]) -> Self {
        let names = segments.iter().filter_map(|segment| name_in(segment)).map(str::to_owned).collect();
        let mut below = segments.iter().skip_while(|segment| !segment.eq_ignore_ascii_case("providers"));
        below.next();
        let namespace = below.next().map(|namespace| (*namespace).to_owned());
        let below: Vec<&str> = below.copied().collect();
        let types = below.chunks_exact(2).map_while(|pair| match pair {
            [word, name] => name_in(name).map(|_| (*word).to_owned()),
            _ => None,
        });
        Self { label: pattern.to_lowercase().into(), names, namespace, types: types.collect() }
    }
}

/// A path taken apart.
#[derive(Debug, Clone)]
pub struct Matched<E> {
    pub endpoint: E,
    shape: Arc<Shape>,
    names: Vec<String>,
}

impl<E> Matched<E> {
    /// A name in the path, in the caller's case; empty if the route has none of this name.
    pub fn name(&self, name: &str) -> &str {
        let index = self.shape.names.iter().position(|known| known == name);
        index.and_then(|index| self.names.get(index)).map_or("", String::as_str)
    }

    /// Whether the route has a segment of this name.
    pub fn has(&self, name: &str) -> bool {
        self.shape.names.iter().any(|known| known == name)
    }

    /// The subscription in the path; empty if there is none.
    pub fn subscription(&self) -> &str {
        self.name(SUBSCRIPTION)
    }

    /// The resource group in the path; empty if there is none.
    pub fn group(&self) -> &str {
        self.name(GROUP)
    }

    /// The pattern of the route in lower case, for metrics.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.shape.label
    }

    /// The id of the resource that the path names or lies below: canonical words, names in the caller's case.
    pub fn resource_id(&self) -> ResourceId {
        self.id_of(self.shape.types.len())
    }

    /// The id of the top-level resource in the path: of the parent, where the path names a child.
    pub fn root_id(&self) -> ResourceId {
        self.id_of(1)
    }

    fn id_of(&self, levels: usize) -> ResourceId {
        let part = |name: &str| Some(self.name(name)).filter(|_| self.has(name));
        let first = usize::from(self.has(SUBSCRIPTION)) + usize::from(self.has(GROUP));
        let names = self.names.iter().skip(first).map(String::as_str);
        let types = self.shape.types.iter().map(String::as_str);
        ResourceId::from_parts(
            part(SUBSCRIPTION),
            part(GROUP),
            self.shape.namespace.as_deref(),
            types.zip(names).take(levels),
        )
    }
}

/// Whether a resource group's name is one: 1–90 letters, digits, `_-.()`, not ending with a full stop.
pub(crate) fn is_resource_group_name(name: &str) -> bool {
    let count = name.chars().count();
    (1..=90).contains(&count)
        && !name.ends_with('.')
        && name.chars().all(|c| c.is_alphanumeric() || "_-.()".contains(c))
}

#[cfg(test)]
mod tests;
