//! What an api-version shows of an object.

use serde_json::{Map, Value};

use super::{Body, Kind, Member, Version};

/// Per api-version: the members it does not know. Made once per resource, since answers are made all the time.
#[derive(Debug)]
pub struct Projection<V: Version> {
    body: &'static Body<V>,
    hidden: Vec<(V, Vec<Vec<&'static str>>)>,
}

impl<V: Version> Projection<V> {
    pub fn new(body: &'static Body<V>) -> Self {
        let hidden = V::ALL.iter().map(|&version| {
            let mut paths = Vec::new();
            hidden_in(body.members, version, &mut Vec::new(), &mut paths);
            (version, paths)
        });
        Self { body, hidden: hidden.collect() }
    }

    /// Drops what the version does not know and puts the rest where it has it.
    pub fn apply(&self, version: V, answer: &mut Value) {
        for moved in self.body.moves.iter().filter(|moved| moved.applies(version)) {
            moved.lower(answer);
        }
        let hidden = self.hidden.iter().find(|(known, _)| *known == version);
        if let (Some(answer), Some((_, paths))) = (answer.as_object_mut(), hidden) {
            for path in paths {
                remove(answer, path);
            }
        }
    }
}

fn hidden_in<V: Version>(
    members: &'static [Member<V>],
    version: V,
    path: &mut Vec<&'static str>,
    out: &mut Vec<Vec<&'static str>>,
) {
    for member in members {
        path.push(member.name);
        if !member.is_known(version) {
            out.push(path.clone());
        } else if let Kind::Object(members, _) = member.kind {
            hidden_in(members, version, path, out);
        }
        path.pop();
    }
}

fn remove(parent: &mut Map<String, Value>, path: &[&str]) {
    match path {
        [] => {}
        [name] => {
            parent.remove(*name);
        }
        [name, rest @ ..] => {
            if let Some(Value::Object(next)) = parent.get_mut(*name) {
                remove(next, rest);
            }
        }
    }
}
