//! What a type's own function sees when it completes a body, and the helpers such functions share.

use aro_arm::ResourceId;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::refusal::Refusal;

/// A body on its way to the store.
#[derive(Debug)]
pub struct Draft<'a> {
    pub id: &'a ResourceId,
    /// The new body.
    pub body: &'a mut Map<String, Value>,
    /// The stored body, when this is an update.
    pub old: Option<&'a Map<String, Value>>,
    /// The location of the resource, or of its parent.
    pub location: &'a str,
    /// The tenant of the subscription.
    pub tenant: &'a str,
    /// A value that only this resource has, for what must be unique but stay the same.
    pub stable: Uuid,
    /// What the directory knows about the identity, for user-assigned identities.
    pub identity: Option<&'a IdentityFacts>,
    /// A free public address, for types that get one.
    pub address: Option<std::net::Ipv4Addr>,
}

/// A managed identity as the directory knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityFacts {
    pub principal_id: String,
    pub client_id: String,
}

impl Draft<'_> {
    /// `properties`, made if it does not exist.
    #[expect(clippy::expect_used, reason = "the member was set to an object on the line before")]
    pub fn properties(&mut self) -> &mut Map<String, Value> {
        if !self.body.get("properties").is_some_and(Value::is_object) {
            self.body.insert("properties".to_owned(), json!({}));
        }
        self.body.get_mut("properties").and_then(Value::as_object_mut).expect("an object")
    }

    /// Sets a property that the caller left out.
    pub fn default(&mut self, name: &str, value: Value) {
        let properties = self.properties();
        if properties.get(name).is_none_or(Value::is_null) {
            properties.insert(name.to_owned(), value);
        }
    }

    /// Sets a property that the caller cannot choose.
    pub fn set(&mut self, name: &str, value: Value) {
        self.properties().insert(name.to_owned(), value);
    }

    /// Keeps a property as it was: the caller's value is ignored; without an old one `first` is set.
    pub fn keep(&mut self, name: &str, first: Value) {
        let old = self.old_property(name).cloned();
        self.set(name, old.unwrap_or(first));
    }

    /// Refuses the change of a property. What is left out keeps its value.
    pub fn immutable(&mut self, name: &str) -> Result<(), Refusal> {
        let Some(old) = self.old_property(name).cloned() else { return Ok(()) };
        let new = self.properties().get(name).cloned().unwrap_or(Value::Null);
        if new.is_null() {
            self.set(name, old);
            return Ok(());
        }
        let same = match (&old, &new) {
            (Value::String(old), Value::String(new)) => old.eq_ignore_ascii_case(new),
            (old, new) => old == new,
        };
        match same {
            true => Ok(()),
            false => Err(Refusal::new(
                http::StatusCode::BAD_REQUEST,
                "PropertyChangeNotAllowed",
                format!("Changing property 'properties.{name}' is not allowed."),
            )
            .at(format!("properties.{name}"))),
        }
    }

    /// A text among the properties.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.properties().get(name).and_then(Value::as_str).map(str::to_owned)
    }

    fn old_property(&self, name: &str) -> Option<&Value> {
        self.old?.get("properties")?.get(name).filter(|value| !value.is_null())
    }

    /// A SKU that the caller left out.
    pub fn default_sku(&mut self, sku: Value) {
        if self.body.get("sku").is_none_or(Value::is_null) {
            self.body.insert("sku".to_owned(), sku);
        }
    }
}
