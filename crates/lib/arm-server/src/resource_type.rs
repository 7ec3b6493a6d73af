//! A resource type as data: where it lives, its lists, its actions. It becomes routes.

use std::sync::Arc;

use crate::provider::Versions;
use crate::route::Route;

/// A type's word in paths and the name of its instances in patterns, e.g. `("nodePools", "nodepool")`.
pub type TypeName = (&'static str, &'static str);

/// A resource type of a provider. Every route of it needs an api-version and, unless [`Self::in_any_subscription`] is
/// called, a subscription whose state allows the method.
#[derive(Debug)]
pub struct ResourceType<E, V> {
    versions: Arc<Versions<V>>,
    /// The type's own word, e.g. `nodePools`.
    word: &'static str,
    /// The way to the instances, without the type's own word.
    parent: String,
    /// The type's word and the name of its instances, e.g. `nodePools/{nodepool}`.
    instance: String,
    checks_subscription: bool,
    routes: Vec<(String, E, &'static [&'static str])>,
}

impl<E, V: Copy> ResourceType<E, V> {
    /// A type whose instances live in a resource group, below instances of its parent types if it has any.
    pub fn in_group(versions: &Arc<Versions<V>>, parents: &[TypeName], own: TypeName) -> Self {
        Self::below("/subscriptions/{subscription}/resourceGroups/{group}", versions, parents, own)
    }

    /// A type whose instances live directly below a subscription.
    pub fn in_subscription(versions: &Arc<Versions<V>>, parents: &[TypeName], own: TypeName) -> Self {
        Self::below("/subscriptions/{subscription}", versions, parents, own)
    }

    fn below(scope: &str, versions: &Arc<Versions<V>>, parents: &[TypeName], own: TypeName) -> Self {
        let segment = |(word, name): TypeName| format!("{word}/{{{name}}}");
        let mut parent = format!("{scope}/providers/{}", versions.namespace());
        for above in parents {
            parent = format!("{parent}/{}", segment(*above));
        }
        Self {
            versions: versions.clone(),
            word: own.0,
            parent,
            instance: segment(own),
            checks_subscription: true,
            routes: Vec::new(),
        }
    }

    /// Serves the type whatever the state of the subscription.
    pub fn in_any_subscription(mut self) -> Self {
        self.checks_subscription = false;
        self
    }

    /// Serves one instance.
    pub fn item(self, endpoint: E, methods: &'static [&'static str]) -> Self {
        let pattern = format!("{}/{}", self.parent, self.instance);
        self.with(pattern, endpoint, methods)
    }

    /// Serves the list of instances below their parent.
    pub fn list(self, endpoint: E) -> Self {
        let pattern = format!("{}/{}", self.parent, self.word);
        self.with(pattern, endpoint, &["GET"])
    }

    /// Serves the list of all instances in a subscription.
    pub fn list_in_subscription(self, endpoint: E) -> Self {
        let namespace = self.versions.namespace();
        let pattern = format!("/subscriptions/{{subscription}}/providers/{namespace}/{}", self.word);
        self.with(pattern, endpoint, &["GET"])
    }

    /// Serves an action on one instance.
    pub fn action(self, word: &str, endpoint: E) -> Self {
        let pattern = format!("{}/{}/{word}", self.parent, self.instance);
        self.with(pattern, endpoint, &["POST"])
    }

    fn with(mut self, pattern: String, endpoint: E, methods: &'static [&'static str]) -> Self {
        self.routes.push((pattern, endpoint, methods));
        self
    }

    /// The routes of the type.
    pub fn routes(self) -> impl Iterator<Item = Route<E, V>> {
        let (versions, checks_subscription) = (self.versions, self.checks_subscription);
        self.routes.into_iter().map(move |(pattern, endpoint, methods)| Route {
            endpoint,
            pattern,
            methods,
            versions: Some(versions.clone()),
            checks_subscription,
            at_any_scope: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_becomes_routes_for_its_instances_lists_and_actions() {
        let versions = Arc::new(Versions::new("Contoso.Farm", "farms", [("2025-01-01", ())]));
        let fields = ResourceType::in_group(&versions, &[("farms", "farm")], ("fields", "field"))
            .item("field", &["GET", "PUT"])
            .list("fields")
            .action("plough", "plough");
        let patterns: Vec<String> = fields.routes().map(|route| route.pattern).collect();
        let farm = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Contoso.Farm/farms/{farm}";
        assert_eq!(
            patterns,
            [
                format!("{farm}/fields/{{field}}"),
                format!("{farm}/fields"),
                format!("{farm}/fields/{{field}}/plough")
            ]
        );
        let farms = ResourceType::in_group(&versions, &[], ("farms", "farm")).list_in_subscription("all");
        let patterns: Vec<String> = farms.routes().map(|route| route.pattern).collect();
        assert_eq!(patterns, ["/subscriptions/{subscription}/providers/Contoso.Farm/farms"]);
    }
}
