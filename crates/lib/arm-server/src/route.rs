//! From a path to the endpoint it names. Pure; knows nothing of HTTP beyond method names.
//!
//! Words match without regard to case, doubled slashes collapse (az sends them), names keep the case they were written in.
//! A known path with a wrong method is distinct from an unknown path, so that the answer can be 405 with `Allow`
//! instead of 404. The table is a tree by segments: the cost of a match does not grow with the number of types.

use std::borrow::Cow;
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
    /// Whether the pattern stands below any scope: a subscription, a group, a resource or nothing. Such a pattern begins with
    /// `/providers/`.
    pub at_any_scope: bool,
}

impl<E, V> Route<E, V> {
    /// A route that needs neither an api-version nor a subscription in a certain state.
    pub fn unchecked(pattern: impl Into<String>, endpoint: E, methods: &'static [&'static str]) -> Self {
        Self {
            endpoint,
            pattern: pattern.into(),
            methods,
            versions: None,
            checks_subscription: false,
            at_any_scope: false,
        }
    }

    /// Serves the pattern below any scope.
    pub fn at_any_scope(mut self) -> Self {
        self.at_any_scope = true;
        self
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

/// All routes of a provider. Patterns at any scope are a tree of their own: what stands before their `/providers/` is the
/// scope and not matched.
#[derive(Debug)]
pub struct RouteTable<E, V> {
    nodes: Vec<Node>,
    routes: Vec<(Route<E, V>, Arc<Shape>)>,
    depth: usize,
}

/// The roots of the two trees in [`RouteTable::nodes`].
const FIXED: usize = 0;
const AT_ANY_SCOPE: usize = 1;
/// The most segments of a path; the longest ids have fewer.
const LONGEST: usize = 64;

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
        let roots = vec![Node::default(), Node::default()];
        let mut table = Self { nodes: roots, routes: Vec::new(), depth: 0 };
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
        let mut at = if route.at_any_scope { AT_ANY_SCOPE } else { FIXED };
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
        let segments = decode(path)?;
        if let Some(found) = self.descend(FIXED, &segments, String::new()) {
            return Ok(found);
        }
        let providers = segments.iter().rposition(|segment| segment.eq_ignore_ascii_case("providers"));
        let (scope, below) = segments.split_at(providers.ok_or(NoMatch::Unknown)?);
        let scope = scope.iter().flat_map(|segment| ["/", segment.as_ref()]).collect();
        self.descend(AT_ANY_SCOPE, below, scope).ok_or(NoMatch::Unknown)
    }

    /// Follows the segments down from a root.
    fn descend(
        &self,
        root: usize,
        segments: &[Cow<'_, str>],
        scope: String,
    ) -> Option<(&Route<E, V>, Matched<E>)> {
        if segments.len() > self.depth {
            return None;
        }
        let mut names = Vec::with_capacity(6);
        let (route, shape) = self.routes.get(self.follow(root, segments, &mut names)?)?;
        Some((route, Matched { endpoint: route.endpoint, shape: shape.clone(), names, scope }))
    }

    /// The route at the end of the segments. A word that leads nowhere gives way to a name at the same place
    /// (`…/providers/{namespace}` beside `…/providers/Contoso.Farm/farms`). The table is a tree, so each node is visited once
    /// at most; the depth of the recursion is that of the longest pattern.
    fn follow(&self, at: usize, segments: &[Cow<'_, str>], names: &mut Vec<String>) -> Option<usize> {
        let node = self.nodes.get(at)?;
        let Some((segment, rest)) = segments.split_first() else { return node.route };
        if let Some(found) = node.word(segment).and_then(|next| self.follow(next, rest, names)) {
            return Some(found);
        }
        let next = node.name?;
        let known = names.len();
        names.push(segment.clone().into_owned());
        let found = self.follow(next, rest, names);
        if found.is_none() {
            names.truncate(known);
        }
        found
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

/// The segments of a path as text. The whole path is read, also of a route that does not exist: a malformed one is a
/// different mistake.
fn decode(path: &str) -> Result<Vec<Cow<'_, str>>, NoMatch> {
    let mut segments = Vec::with_capacity(12);
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let text = percent_decode_str(segment).decode_utf8().map_err(|_| NoMatch::Malformed)?;
        if text.chars().any(|c| c == '/' || c.is_control()) {
            return Err(NoMatch::Malformed);
        }
        if segments.len() >= LONGEST {
            return Err(NoMatch::Unknown);
        }
        segments.push(text);
    }
    Ok(segments)
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
    scope: String,
}

impl<E> Matched<E> {
    /// What the path has before the pattern of a route at any scope, as the caller wrote it; empty for other routes.
    pub fn scope(&self) -> &str {
        &self.scope
    }

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
