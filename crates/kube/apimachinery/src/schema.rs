//! What a type is, as data: one model for built-in types and for structural schemas of custom ones.
//!
//! A [`Schema`] is one node. Built-in types refer to each other by name, so a node is always looked at together with
//! its [`Definitions`]; [`Typed`] pairs the two and follows references.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// One node of a type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    pub kind: Kind,
    /// Name in [`Definitions`]. Then the rest of this node holds only what the referring place adds (a default,
    /// list or map semantics, patch hints).
    pub reference: Option<String>,
    /// `int32`, `int64`, `byte`, `date-time`, …
    pub format: Option<String>,
    pub nullable: bool,
    pub default: Option<Value>,
    pub properties: BTreeMap<String, Schema>,
    /// What members outside of `properties` may be.
    pub additional: Additional,
    pub items: Option<Box<Schema>>,
    pub required: Vec<String>,
    pub list: Option<ListKind>,
    /// `x-kubernetes-map-type: atomic`: changed as a whole.
    pub atomic_map: bool,
    pub preserve_unknown: bool,
    pub embedded_resource: bool,
    pub patch: PatchHint,
    /// Checks on values. Absent on most nodes.
    pub rules: Option<Box<Rules>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// Says nothing about the JSON type.
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// `x-kubernetes-int-or-string`
    IntOrString,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum Additional {
    #[default]
    None,
    Any,
    Schema(Box<Schema>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListKind {
    Atomic,
    Set,
    /// Items are objects told apart by these members.
    Map(Vec<String>),
}

/// How strategic merge patches treat the field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchHint {
    pub merge_key: Option<String>,
    /// `merge`, `replace`, `retainKeys`, as written (comma separated in the wild).
    pub strategies: Vec<String>,
}

/// Checks on values, as JSON schema and Kubernetes' extensions name them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    pub choices: Option<Vec<Value>>,
    pub pattern: Option<String>,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
    pub expressions: Vec<Expression>,
}

/// One of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expression {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    /// `FieldValueInvalid`, …
    pub reason: String,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

/// Types by name (`io.k8s.api.core.v1.PodSpec`).
#[derive(Debug, Clone, Default)]
pub struct Definitions(HashMap<String, Schema>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct SchemaError {
    pub path: String,
    pub problem: String,
}

/// A node together with what its references point into.
#[derive(Debug, Clone, Copy)]
pub struct Typed<'a> {
    /// Never a bare reference.
    pub schema: &'a Schema,
    /// The place that referred to it: its default, list semantics and patch hints win.
    pub site: &'a Schema,
    pub definitions: &'a Definitions,
}

/// References in a row are followed this far: a guard against a table that refers to itself.
const MAX_REFERENCES: usize = 16;

/// What is not described: any value.
static ANYTHING: std::sync::LazyLock<Schema> =
    std::sync::LazyLock::new(|| Schema { preserve_unknown: true, ..Schema::default() });

impl<'a> Typed<'a> {
    pub fn new(site: &'a Schema, definitions: &'a Definitions) -> Self {
        let mut schema = site;
        for _ in 0..MAX_REFERENCES {
            let Some(name) = &schema.reference else { break };
            schema = definitions.get(name).unwrap_or(&ANYTHING);
        }
        Self { schema, site, definitions }
    }

    pub fn anything(definitions: &'a Definitions) -> Self {
        Self::new(&ANYTHING, definitions)
    }

    fn at(self, site: &'a Schema) -> Self {
        Self::new(site, self.definitions)
    }

    /// A declared member.
    pub fn property(self, name: &str) -> Option<Self> {
        self.schema.properties.get(name).map(|site| self.at(site))
    }

    /// The type of members that are not declared, when there is one.
    pub fn additional(self) -> Option<Self> {
        match &self.schema.additional {
            Additional::None => None,
            Additional::Any => Some(self.at(&ANYTHING)),
            Additional::Schema(site) => Some(self.at(site)),
        }
    }

    /// A member, declared or not. `None`: the type has no such member.
    pub fn member(self, name: &str) -> Option<Self> {
        self.property(name).or_else(|| self.additional())
    }

    pub fn items(self) -> Option<Self> {
        self.schema.items.as_deref().map(|site| self.at(site))
    }

    pub fn kind(self) -> Kind {
        self.schema.kind
    }

    pub fn list_kind(self) -> Option<&'a ListKind> {
        self.site.list.as_ref().or(self.schema.list.as_ref())
    }

    pub fn is_atomic_map(self) -> bool {
        self.site.atomic_map || self.schema.atomic_map
    }

    pub fn default_value(self) -> Option<&'a Value> {
        self.site.default.as_ref().or(self.schema.default.as_ref())
    }

    pub fn patch(self) -> &'a PatchHint {
        if self.site.patch == PatchHint::default() { &self.schema.patch } else { &self.site.patch }
    }

    pub fn preserves_unknown(self) -> bool {
        self.site.preserve_unknown || self.schema.preserve_unknown
    }

    pub fn nullable(self) -> bool {
        self.site.nullable || self.schema.nullable
    }
}

impl Definitions {
    pub fn get(&self, name: &str) -> Option<&Schema> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.0.iter().map(|(name, schema)| (&**name, schema))
    }

    /// Reads an object of named schemas.
    pub fn from_openapi(definitions: &Value) -> Result<Self, SchemaError> {
        let members = definitions.as_object().ok_or_else(|| problem("", "must be an object of schemas"))?;
        let read = |(name, schema): (&String, &Value)| Ok((name.clone(), Schema::read(schema, name)?));
        members.iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

impl FromIterator<(String, Schema)> for Definitions {
    fn from_iter<I: IntoIterator<Item = (String, Schema)>>(schemas: I) -> Self {
        Self(schemas.into_iter().collect())
    }
}

fn problem(path: &str, problem: impl Into<String>) -> SchemaError {
    SchemaError { path: path.to_owned(), problem: problem.into() }
}

impl Schema {
    /// Reads OpenAPI v3 as Kubernetes writes it: in CustomResourceDefinitions (`openAPIV3Schema`) and in its own
    /// documents (`$ref`, also wrapped as a lone `allOf`). Unknown keys are ignored.
    pub fn from_openapi(schema: &Value) -> Result<Self, SchemaError> {
        Self::read(schema, "")
    }

    fn read(schema: &Value, path: &str) -> Result<Self, SchemaError> {
        let members = schema.as_object().ok_or_else(|| problem(path, "must be an object"))?;
        let mut node = Self::default();
        let mut rules = Rules::default();
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let flag = |key: &str| members.get(key).and_then(Value::as_bool).unwrap_or_default();
        let text = |key: &str| members.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| members.get(key).and_then(Value::as_f64);
        let count = |key: &str| members.get(key).and_then(Value::as_u64);
        let list = |key: &str| members.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let texts =
            |key: &str| list(key).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
        let schemas = |key: &str| {
            let read = |(index, schema)| Self::read(schema, &below(&format!("{key}[{index}]")));
            list(key).iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()
        };

        node.kind = match members.get("type").and_then(Value::as_str) {
            None | Some("") => Kind::Any,
            Some("object") => Kind::Object,
            Some("array") => Kind::Array,
            Some("string") => Kind::String,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            Some(other) => return Err(problem(&below("type"), format!("unknown type {other:?}"))),
        };
        node.format = text("format").filter(|format| !format.is_empty());
        if flag("x-kubernetes-int-or-string") || node.format.as_deref() == Some("int-or-string") {
            node.kind = Kind::IntOrString;
        }
        node.reference = text("$ref").as_deref().map(reference_name);
        rules.all_of = schemas("allOf")?;
        // `allOf` of one reference only attaches a default or a description to it.
        if let [only] = rules.all_of.as_slice()
            && node.kind == Kind::Any
            && let Some(name) = &only.reference
        {
            node.reference = Some(name.clone());
            rules.all_of.clear();
        }
        node.nullable = flag("nullable");
        node.default = members.get("default").filter(|default| !default.is_null()).cloned();
        node.preserve_unknown = flag("x-kubernetes-preserve-unknown-fields");
        node.embedded_resource = flag("x-kubernetes-embedded-resource");
        node.atomic_map = members.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic");
        node.list = match members.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("atomic") => Some(ListKind::Atomic),
            Some("set") => Some(ListKind::Set),
            Some("map") => Some(ListKind::Map(texts("x-kubernetes-list-map-keys"))),
            _ => None,
        };
        node.patch = PatchHint {
            merge_key: text("x-kubernetes-patch-merge-key"),
            strategies: text("x-kubernetes-patch-strategy")
                .map(|all| all.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
        };
        node.required = texts("required");
        if let Some(properties) = members.get("properties") {
            let properties =
                properties.as_object().ok_or_else(|| problem(&below("properties"), "must be an object"))?;
            for (name, schema) in properties {
                node.properties
                    .insert(name.clone(), Self::read(schema, &below(&format!("properties[{name}]")))?);
            }
        }
        node.additional = match members.get("additionalProperties") {
            None | Some(Value::Bool(false) | Value::Null) => Additional::None,
            Some(Value::Bool(true)) => Additional::Any,
            Some(schema) => Additional::Schema(Box::new(Self::read(schema, &below("additionalProperties"))?)),
        };
        if let Some(items) = members.get("items").filter(|items| !items.is_null()) {
            node.items = Some(Box::new(Self::read(items, &below("items"))?));
        }

        rules.choices = members.get("enum").and_then(Value::as_array).cloned();
        rules.pattern = text("pattern").filter(|pattern| !pattern.is_empty());
        rules.minimum = number("minimum");
        rules.maximum = number("maximum");
        rules.exclusive_minimum = flag("exclusiveMinimum");
        rules.exclusive_maximum = flag("exclusiveMaximum");
        rules.multiple_of = number("multipleOf");
        rules.min_length = count("minLength");
        rules.max_length = count("maxLength");
        rules.min_items = count("minItems");
        rules.max_items = count("maxItems");
        rules.unique_items = flag("uniqueItems");
        rules.min_properties = count("minProperties");
        rules.max_properties = count("maxProperties");
        rules.any_of = schemas("anyOf")?;
        rules.one_of = schemas("oneOf")?;
        rules.not = match members.get("not").filter(|not| !not.is_null()) {
            Some(not) => Some(Box::new(Self::read(not, &below("not"))?)),
            None => None,
        };
        rules.expressions = list("x-kubernetes-validations").iter().map(Expression::read).collect();
        node.rules = (rules != Rules::default()).then(|| Box::new(rules));
        Ok(node)
    }
}

impl Expression {
    fn read(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: text("reason"),
            field_path: text("fieldPath"),
            optional_old_self: value.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }
}

/// `#/components/schemas/X` and `#/definitions/X` name X.
fn reference_name(reference: &str) -> String {
    reference.rsplit('/').next().unwrap_or(reference).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_keeps_what_its_place_adds() {
        let definitions = Definitions::from_openapi(&json!({
            "Port": {"type": "object", "properties": {"port": {"type": "integer", "format": "int32"}}},
            "Spec": {"type": "object", "properties": {
                "ports": {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/Port"}], "default": {}},
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
                    "x-kubernetes-patch-merge-key": "port", "x-kubernetes-patch-strategy": "merge,retainKeys"}}},
        }))
        .unwrap();
        let spec = Typed::new(definitions.get("Spec").unwrap(), &definitions);
        let ports = spec.property("ports").unwrap();
        assert_eq!(ports.list_kind(), Some(&ListKind::Map(vec!["port".into()])));
        assert_eq!(ports.patch().strategies, ["merge", "retainKeys"]);
        let port = ports.items().unwrap();
        assert_eq!(port.kind(), Kind::Object);
        assert_eq!(port.default_value(), Some(&json!({})));
        assert_eq!(port.property("port").unwrap().schema.format.as_deref(), Some("int32"));
        assert!(port.member("nope").is_none());
    }

    #[test]
    fn references_in_a_circle_end() {
        let definitions =
            Definitions::from_openapi(&json!({"A": {"$ref": "B"}, "B": {"$ref": "A"}})).unwrap();
        let typed = Typed::new(definitions.get("A").unwrap(), &definitions);
        assert_eq!(typed.kind(), Kind::Any);
    }

    #[test]
    fn a_wrong_type_is_named_with_its_path() {
        let error = Schema::from_openapi(&json!({"properties": {"a": {"type": "strin"}}})).unwrap_err();
        assert_eq!(error.path, "properties[a].type");
    }
}
