//! Tables: the columns of a resource and the cells of an object, as `kubectl get` shows them.
//!
//! The server makes rows out of them (metadata, the object itself when asked for). Custom types bring their own columns
//! and are not known here. Descriptions are left out, but for names and ages.

mod age;
mod core;
mod look;
mod pods;
mod rest;
mod workloads;

use std::collections::HashMap;
use std::sync::LazyLock;

use aro_base::Timestamp;
use aro_kube_apimachinery::ResourceType;
use serde_json::{Value, json};

pub use age::human_duration;
use look::Look;

static TABLES: &str = include_str!("../gen/tables.json");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    pub name: String,
    /// `string`, `integer`, `date`, …
    pub kind: String,
    /// `name` marks the column that names the object.
    pub format: String,
    pub description: String,
    /// 0 is always shown, 1 only on request.
    pub priority: i32,
}

impl ColumnDefinition {
    /// The object that goes over the wire.
    pub fn to_value(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": self.description,
            "priority": self.priority})
    }
}

static COLUMNS: LazyLock<HashMap<String, Vec<ColumnDefinition>>> = LazyLock::new(|| {
    let table: Value = serde_json::from_str(TABLES).expect("a generated table is JSON; a test reads it");
    let columns = |of: &Value| of.as_array().into_iter().flatten().map(column).collect();
    table.as_object().into_iter().flatten().map(|(name, of)| (name.clone(), columns(of))).collect()
});

static DEFAULT_COLUMNS: LazyLock<Vec<ColumnDefinition>> = LazyLock::new(|| {
    [json!(["Name", "string", "name", 0]), json!(["Created At", "date", "", 0])].iter().map(column).collect()
});

fn column(of: &Value) -> ColumnDefinition {
    let text = |index: usize| of[index].as_str().unwrap_or_default().to_owned();
    let name = text(0);
    let documented = match &*name {
        "Name" => "name",
        "Age" | "Created At" => "creationTimestamp",
        _ => "",
    };
    let metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let description = crate::openapi::field_description(metadata, documented).unwrap_or_default().to_owned();
    let priority = of[3].as_i64().unwrap_or_default() as i32;
    ColumnDefinition { kind: text(1), format: text(2), priority, description, name }
}

/// The columns of a built-in resource. `Name` and `Created At` for resources without columns of their own.
pub fn columns(resource: &ResourceType) -> &'static [ColumnDefinition] {
    let name = format!("{}/{}", resource.api_version(), resource.plural);
    COLUMNS.get(&name).unwrap_or(&DEFAULT_COLUMNS)
}

/// One cell for each column.
pub fn cells(resource: &ResourceType, object: &Value, now: Timestamp) -> Vec<Value> {
    let look = Look::new(object, now);
    let cells = match &*resource.gvk.group {
        "" => core::cells(&resource.gvk.kind, look),
        "apps" | "batch" | "autoscaling" => workloads::cells(&resource.gvk.kind, look),
        group => rest::cells(group, &resource.gvk.kind, look),
    };
    cells.unwrap_or_else(|| {
        let created = look.text("metadata/creationTimestamp");
        vec![json!(look.name()), json!(if created.is_empty() { "0001-01-01T00:00:00Z" } else { created })]
    })
}

/// What a row says about its object besides cells: that a Pod has ended.
pub fn row_conditions(resource: &ResourceType, object: &Value) -> Option<Value> {
    if !resource.gvk.group.is_empty() || resource.gvk.kind != "Pod" {
        return None;
    }
    let phase = object.pointer("/status/phase").and_then(Value::as_str)?;
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

#[cfg(test)]
mod tests;
