//! What a body refers to, and which ids a document owns. Pure.

use std::collections::BTreeSet;

use aro_arm::ResourceId;
use serde_json::{Map, Value};

use crate::refusal::Refusal;
use crate::spec::{Inline, Reference, TypeSpec};
use crate::walk;

/// A reference found in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where.
    pub place: String,
    pub target: ResourceId,
    /// The full action on the target that the caller needs.
    pub action: Option<String>,
}

/// Every reference of a body. An id that is no id, or of another type, is refused.
pub fn of_body(body: &Map<String, Value>, spec: &TypeSpec) -> Result<Vec<Found>, Refusal> {
    let mut found = Vec::new();
    for reference in spec.references {
        let mut problem = None;
        walk::visit_object(body, reference.path, &mut |place, value| {
            let id = value.as_str().and_then(|text| ResourceId::parse(text).ok());
            if let Some(target) = id.filter(|id| id.is_type(reference.target)) {
                found.push(found_at(place, target, reference));
            } else {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                problem.get_or_insert_with(|| Refusal::malformed_reference(place, &text, reference.target));
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
    }
    Ok(found)
}

fn found_at(place: &str, target: ResourceId, reference: &Reference) -> Found {
    let action = reference.action.map(|action| format!("{}/{action}", reference.target));
    Found { place: place.to_owned(), target, action }
}

/// The ids of the children inside of a document, in lower case, with their spec and name.
pub fn inline_ids<'s>(
    id: &ResourceId,
    body: &Map<String, Value>,
    spec: &'s TypeSpec,
) -> Vec<(String, &'s Inline, String)> {
    let mut ids = Vec::new();
    for inline in spec.inline {
        for name in items(body, inline).filter_map(|item| item.get("name").and_then(Value::as_str)) {
            ids.push((id.child(inline.member, name).to_lower(), inline, name.to_owned()));
        }
    }
    ids
}

/// The children of one type inside of a body.
pub fn items<'b>(body: &'b Map<String, Value>, inline: &Inline) -> impl Iterator<Item = &'b Value> + use<'b> {
    let list = body.get("properties").and_then(|properties| properties.get(inline.member));
    list.and_then(Value::as_array).into_iter().flatten()
}

/// Whether the children have names, and each its own.
pub fn check_inline(body: &Map<String, Value>, spec: &TypeSpec) -> Result<(), Refusal> {
    for inline in spec.inline {
        let mut names = BTreeSet::new();
        for (index, item) in items(body, inline).enumerate() {
            let place = format!("properties.{}[{index}].name", inline.member);
            let name = item.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| Refusal::missing_member(&place))?;
            crate::check::name(name, &crate::spec::PLAIN.naming)?;
            if !names.insert(name.to_lowercase()) {
                let message =
                    format!("Cannot parse the request: '{}' has two items named '{name}'.", inline.member);
                return Err(
                    Refusal::new(http::StatusCode::BAD_REQUEST, "InvalidRequestFormat", message).at(place)
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::find;

    fn body(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn references_are_found_with_their_place_and_the_action_they_need() {
        let spec = find("Microsoft.Network/virtualNetworks").unwrap();
        let nsg = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkSecurityGroups/n";
        let found = of_body(
            &body(json!({"properties": {"subnets": [{"name": "a"}, {"name": "b", "properties": {"networkSecurityGroup": {"id": nsg}}}]}})),
            spec,
        )
        .unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "properties.subnets[1].properties.networkSecurityGroup.id");
        assert_eq!(found[0].action.as_deref(), Some("Microsoft.Network/networkSecurityGroups/join/action"));
    }

    #[test]
    fn an_id_of_another_type_is_refused_with_its_place() {
        let spec = find("Microsoft.Network/virtualNetworks").unwrap();
        for wrong in [
            json!("x"),
            json!(7),
            json!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/routeTables/r"),
        ] {
            let subnets = json!([{"name": "a", "properties": {"networkSecurityGroup": {"id": wrong}}}]);
            let refusal = of_body(&body(json!({"properties": {"subnets": subnets}})), spec).unwrap_err();
            assert_eq!(refusal.0.code, "LinkedInvalidPropertyId");
        }
    }

    #[test]
    fn children_need_names_of_their_own() {
        let spec = find("Microsoft.Network/virtualNetworks").unwrap();
        for wrong in [json!([{}]), json!([{"name": 1}]), json!([{"name": "a"}, {"name": "A"}]), json!([7])] {
            assert!(check_inline(&body(json!({"properties": {"subnets": wrong}})), spec).is_err());
        }
    }
}
