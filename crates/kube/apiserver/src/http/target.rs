//! What a path names: an object, a collection, or something that is no resource.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// What a request is about, as its path says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'a> {
    /// `/version`, `/healthz`, `/api`, `/openapi/v3`, …
    NonResource(&'a str),
    Resource(ResourcePath<'a>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourcePath<'a> {
    pub group: &'a str,
    pub version: &'a str,
    /// Empty: none given.
    pub namespace: Cow<'a, str>,
    pub resource: &'a str,
    /// Empty: the collection.
    pub name: Cow<'a, str>,
    pub subresource: &'a str,
    /// The deprecated `/watch/` form of the path.
    pub watch: bool,
    /// Whether the path places the resource inside a namespace: `/namespaces/{namespace}/{resource}`. A namespace
    /// itself has a `namespace`, for its roles, and is not inside of it.
    pub inside_namespace: bool,
    /// Whether there is more after the subresource. Only proxies have that.
    pub has_more: bool,
}

fn decode(part: &str) -> Cow<'_, str> {
    percent_decode_str(part).decode_utf8_lossy()
}

impl<'a> Target<'a> {
    /// Reads a path.
    pub fn parse(path: &'a str) -> Self {
        Self::resource(path).map_or(Self::NonResource(path), Self::Resource)
    }

    fn resource(path: &'a str) -> Option<ResourcePath<'a>> {
        let mut parts = path.strip_prefix('/')?.trim_end_matches('/').split('/');
        let mut found = ResourcePath::default();
        match parts.next()? {
            "api" => found.version = parts.next()?,
            "apis" => {
                found.group = parts.next()?;
                found.version = parts.next()?;
            }
            _ => return None,
        }
        let mut rest: Vec<&'a str> = parts.collect();
        if rest.first() == Some(&"watch") {
            rest.remove(0);
            found.watch = true;
        }
        // As upstream reads it, in every group: `/namespaces/x/status` and `/namespaces/x/finalize` are the namespace's own;
        // all else below it is inside it.
        match rest.as_slice() {
            [] => return None,
            ["namespaces", namespace, resource, more @ ..] if !matches!(*resource, "status" | "finalize") => {
                found.namespace = decode(namespace);
                found.inside_namespace = true;
                found.resource = resource;
                found.take_name(more);
            }
            ["namespaces", more @ ..] => {
                found.resource = "namespaces";
                found.take_name(more);
                found.namespace.clone_from(&found.name);
            }
            [resource, more @ ..] => {
                found.resource = resource;
                found.take_name(more);
            }
        }
        Some(found)
    }
}

impl<'a> ResourcePath<'a> {
    fn take_name(&mut self, parts: &[&'a str]) {
        if let Some(name) = parts.first() {
            self.name = decode(name);
        }
        if let Some(subresource) = parts.get(1) {
            self.subresource = subresource;
        }
        self.has_more = parts.len() > 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> String {
        match Target::parse(path) {
            Target::NonResource(path) => format!("non {path}"),
            Target::Resource(r) => {
                format!(
                    "{}|{}|{}|{}|{}|{}",
                    r.group, r.version, r.namespace, r.resource, r.name, r.subresource
                )
            }
        }
    }

    #[test]
    fn paths_are_read() {
        for (path, expected) in [
            ("/api", "non /api"),
            ("/apis/apps/v1", "non /apis/apps/v1"),
            ("/version", "non /version"),
            ("/api/v1/pods", "|v1||pods||"),
            ("/api/v1/namespaces", "|v1||namespaces||"),
            ("/api/v1/namespaces/a", "|v1|a|namespaces|a|"),
            ("/api/v1/namespaces/a/status", "|v1|a|namespaces|a|status"),
            ("/api/v1/namespaces/a/pods/b/log", "|v1|a|pods|b|log"),
            ("/apis/apps/v1/namespaces/a/deployments/b%2Fc", "apps|v1|a|deployments|b/c|"),
            ("/apis/apps/v1/deployments/", "apps|v1||deployments||"),
            ("/apis/x.io/v1/namespaces/a/status/s", "x.io|v1|a|namespaces|a|status"),
            ("/apis/apps/v1/namespaces/a", "apps|v1|a|namespaces|a|"),
            ("/api/v1/namespaces/a/namespaces/b", "|v1|a|namespaces|b|"),
        ] {
            assert_eq!(read(path), expected, "{path}");
        }
    }

    #[test]
    fn a_namespace_is_not_inside_of_itself_but_everything_below_it_is() {
        for (path, expected) in [
            ("/api/v1/namespaces", false),
            ("/api/v1/namespaces/a", false),
            ("/api/v1/namespaces/a/finalize", false),
            ("/api/v1/namespaces/a/namespaces", true),
            ("/api/v1/namespaces/a/namespaces/a", true),
            ("/api/v1/watch/namespaces/a/nodes", true),
            ("/api/v1/nodes/a", false),
        ] {
            let Target::Resource(read) = Target::parse(path) else { panic!("{path} names a resource") };
            assert_eq!(read.inside_namespace, expected, "{path}");
        }
    }
}
