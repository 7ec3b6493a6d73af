//! The objects by path, and their changes in order.

use std::collections::BTreeMap;

use aro_ocm::patch::{CLUSTER, EXTERNAL_AUTH, merge, merge_node_pool};
use aro_ocm::{Href, Root};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Reply, refusal};

const CREATED: &str = "2026-11-15T10:00:00Z";

#[derive(Default)]
pub struct Objects {
    by_path: BTreeMap<String, Value>,
    events: Vec<Value>,
    /// Events before this one are forgotten.
    forgotten: usize,
}

impl Objects {
    pub fn answer(&mut self, method: &Method, path: &str, body: &Value) -> Reply {
        let path = path.replace(Root::ClustersMgmt.path(), Root::AroHcp.path());
        let collection =
            ["/clusters", "/node_pools", "/external_auths", "/inflight_checks", "/versions", "_policies"]
                .iter()
                .any(|end| path.ends_with(end));
        match (method.as_str(), collection) {
            ("GET", true) => self.list(&path),
            ("POST", _) => self.create(&path, body),
            ("GET", false) => self.found(&path),
            ("PATCH", _) => self.update(&path, body),
            ("DELETE", _) => self.delete(&path),
            _ => refusal(404, "no such route"),
        }
    }

    fn list(&self, path: &str) -> Reply {
        let items: Vec<Value> = if path.ends_with("/versions") {
            versions()
        } else {
            let own =
                |key: &&String| key.strip_prefix(path).is_some_and(|rest| rest.matches('/').count() == 1);
            self.by_path.keys().filter(own).filter_map(|key| self.by_path.get(key)).cloned().collect()
        };
        (
            StatusCode::OK,
            json!({"kind": "List", "page": 1, "size": items.len(), "total": items.len(), "items": items}),
        )
    }

    fn found(&self, path: &str) -> Reply {
        match self.by_path.get(path) {
            Some(object) => (StatusCode::OK, object.clone()),
            None => refusal(404, "not found"),
        }
    }

    fn create(&mut self, path: &str, body: &Value) -> Reply {
        let id = body["id"].as_str().map_or_else(|| format!("id-{}", self.events.len()), ToOwned::to_owned);
        let at = format!("{path}/{id}");
        if self.by_path.contains_key(&at) {
            return refusal(409, "it exists already");
        }
        if let Some((_, Href::NodePool(cluster, _) | Href::ExternalAuth(cluster, _))) = Href::parse(&at)
            && !self.by_path.contains_key(&Href::Cluster(cluster).under(Root::AroHcp))
        {
            return refusal(404, "no such cluster");
        }
        let mut object = body.clone();
        object["href"] = json!(at);
        object["id"] = json!(id);
        object["creation_timestamp"] = json!(CREATED);
        let state = if at.contains("external_auths") { "ready" } else { "validating" };
        set_state(&at, &mut object, state);
        self.put(&at, object.clone());
        (StatusCode::ACCEPTED, object)
    }

    fn update(&mut self, path: &str, body: &Value) -> Reply {
        let Some(stored) = self.by_path.get(path) else { return refusal(404, "not found") };
        let merged = match Href::parse(path) {
            Some((_, Href::NodePool(..))) => merge_node_pool(stored, body),
            Some((_, Href::ExternalAuth(..))) => merge(EXTERNAL_AUTH, stored, body),
            _ => merge(CLUSTER, stored, body),
        };
        match merged {
            Ok(mut object) => {
                if !path.contains("external_auths") {
                    set_state(path, &mut object, "updating");
                }
                self.put(path, object.clone());
                (StatusCode::ACCEPTED, object)
            }
            Err(problems) => refusal(400, &format!("{problems:?}")),
        }
    }

    fn delete(&mut self, path: &str) -> Reply {
        if !self.by_path.contains_key(path) {
            return refusal(404, "not found");
        }
        for at in self.paths(path) {
            self.change(&at, |object| set_state(&at, object, "uninstalling"));
        }
        (StatusCode::ACCEPTED, Value::Null)
    }

    fn paths(&self, path: &str) -> Vec<String> {
        let below = format!("{path}/");
        self.by_path.keys().filter(|key| *key == path || key.starts_with(&below)).cloned().collect()
    }

    pub fn put(&mut self, path: &str, object: Value) {
        self.by_path.insert(path.to_owned(), object.clone());
        self.events.push(json!({"href": path, "kind": "Object", "generation": 1, "object": object}));
    }

    pub fn change(&mut self, path: &str, change: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.by_path.get(path).cloned() {
            change(&mut object);
            self.put(path, object);
        }
    }

    pub fn remove(&mut self, path: &str) {
        for at in self.paths(path) {
            self.by_path.remove(&at);
            self.events.push(json!({"href": at, "kind": "Object", "generation": 0, "deleted": true}));
        }
    }

    pub fn below(&self, path: &str) -> Vec<(String, Value)> {
        self.paths(path)
            .into_iter()
            .filter_map(|at| Some((at.clone(), self.by_path.get(&at)?.clone())))
            .collect()
    }

    pub fn head(&self) -> String {
        self.events.len().to_string()
    }

    pub fn expire(&mut self) {
        self.forgotten = self.events.len() + 1;
        // The position moves on, so that cursors from now on are valid.
        self.events.push(json!({"href": "/none", "kind": "Object", "generation": 0, "deleted": true}));
    }

    /// The events after a cursor, the last one twice: delivery is at least once. `None` for an expired cursor.
    pub fn after(&self, cursor: &str) -> Option<(Vec<Value>, String)> {
        let at: usize = cursor.parse().ok()?;
        if at < self.forgotten {
            return None;
        }
        let mut items: Vec<Value> = self.events.get(at..)?.to_vec();
        items.extend(items.last().cloned());
        for item in &mut items {
            item["cursor"] = json!(self.head());
        }
        Some((items, self.head()))
    }
}

/// Sets the state as each kind shows it.
pub fn set_state(path: &str, object: &mut Value, state: &str) {
    if path.contains("node_pools") || path.contains("external_auths") {
        object["status"]["state"]["value"] = json!(state);
    } else {
        object["state"] = json!(state);
        object["status"]["state"] = json!(state);
    }
}

fn versions() -> Vec<Value> {
    let release = |raw: &str, enabled: bool| json!({"kind": "Version", "id": format!("openshift-v{raw}"), "raw_id": raw, "channel_group": "stable", "enabled": enabled});
    vec![
        release("4.21.0", true),
        release("4.22.9", true),
        release("4.22.10", true),
        release("4.22.11", true),
        release("4.19.3", false),
    ]
}
