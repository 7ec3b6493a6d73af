//! Tables: what `kubectl get` prints.

use serde_json::{Value, json};

use crate::rest::Call;

/// A table that is being filled.
pub struct Table<'a> {
    call: &'a Call,
    include: Include,
    rows: Vec<Value>,
    custom: Vec<aro_kube_crd::columns::Column>,
}

/// What a row carries beside its cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

impl<'a> Table<'a> {
    pub fn new(call: &'a Call) -> Self {
        let include = match call.query.get("includeObject") {
            Some("None") => Include::Nothing,
            Some("Object") => Include::Object,
            _ => Include::Metadata,
        };
        let custom =
            call.served.custom.as_ref().map(|custom| custom.compiled.columns().to_vec()).unwrap_or_default();
        Self { call, include, rows: Vec::new(), custom }
    }

    pub fn add(&mut self, object: &Value) {
        let cells = if self.call.served.custom.is_some() {
            let age =
                |value: Value| match value.as_str().and_then(|text| text.parse::<aro_base::Timestamp>().ok())
                {
                    Some(then) => {
                        json!(aro_kube_types::table::human_duration(self.call.now.duration_since(then)))
                    }
                    None => json!("<unknown>"),
                };
            let cell = |column: &aro_kube_crd::columns::Column| {
                let value = aro_kube_crd::columns::cell(object, column);
                if column.kind == "date" && !value.is_null() { age(value) } else { value }
            };
            self.custom.iter().map(cell).collect()
        } else {
            aro_kube_types::table::cells(&self.call.served.resource, object, self.call.now)
        };
        let mut row = json!({"cells": cells});
        match self.include {
            Include::Nothing => row["object"] = Value::Null,
            Include::Metadata => row["object"] = crate::rest::metadata_only(object),
            Include::Object => row["object"] = object.clone(),
        }
        self.rows.push(row);
    }

    pub fn finish(self, metadata: &Value) -> Value {
        let columns: Vec<Value> = if self.call.served.custom.is_some() {
            let column = |column: &aro_kube_crd::columns::Column| {
                json!({"name": column.name, "type": column.kind, "format": column.format,
                    "description": column.description, "priority": column.priority})
            };
            self.custom.iter().map(column).collect()
        } else {
            let columns = aro_kube_types::table::columns(&self.call.served.resource).iter();
            columns
                .map(|column| {
                    json!({"name": column.name, "type": column.kind, "format": column.format,
                        "description": column.description, "priority": column.priority})
                })
                .collect()
        };
        json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": columns, "rows": self.rows})
    }
}
