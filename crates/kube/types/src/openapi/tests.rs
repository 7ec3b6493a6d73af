use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::registry::builtin;

fn types<'a>() -> impl Iterator<Item = Described<'a>> {
    builtin().resources().iter().map(Arc::as_ref).map(|resource| Described { resource, custom: None })
}

fn recorded(version: &GroupVersion) -> Option<Value> {
    let folder = aro_prerequisites::specs("kube/openapi-v3")?;
    let file = super::document_path(version).replace('/', "_");
    let text = std::fs::read_to_string(folder.join(format!("{file}.json"))).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// `method path action kind` of every operation.
fn operations(document: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (path, item) in
        document["paths"].as_object().unwrap().iter().filter(|(path, _)| !path.contains("/watch/"))
    {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(_, value)| value.is_object()) {
            let action = operation["x-kubernetes-action"].as_str().unwrap_or("-");
            // Connections are not described.
            if action != "connect" && !path.contains("/{path}") {
                let kind = operation["x-kubernetes-group-version-kind"]["kind"].as_str().unwrap_or("-");
                let id = operation["operationId"].as_str().unwrap_or("-");
                all.insert(format!("{method} {path} {action} {kind} {id}"));
            }
        }
    }
    all
}

#[test]
fn operations_are_those_of_a_real_server() {
    for group in builtin().groups() {
        for version in &group.versions {
            let version = GroupVersion::new(&*group.name, &**version);
            let own = operations(&v3_document(&version, types()).unwrap());
            // Recordings are not part of the repository.
            let Some(recorded) = recorded(&version) else { continue };
            let theirs = operations(&recorded);
            let connect = ["/attach", "/exec", "/portforward", "/proxy"];
            let own: BTreeSet<_> = own
                .into_iter()
                .filter(|of| !connect.iter().any(|end| of.contains(&format!("{end} "))))
                .collect();
            assert_eq!(
                own.difference(&theirs).collect::<Vec<_>>(),
                Vec::<&String>::new(),
                "{version}: too many"
            );
            assert_eq!(
                theirs.difference(&own).collect::<Vec<_>>(),
                Vec::<&String>::new(),
                "{version}: too few"
            );
        }
    }
}

#[test]
fn schemas_are_those_of_a_real_server() {
    let (mut described, mut all) = (0, 0);
    for group in builtin().groups() {
        for version in &group.versions {
            let version = GroupVersion::new(&*group.name, &**version);
            let own = v3_document(&version, types()).unwrap();
            let Some(recorded) = recorded(&version) else { continue };
            let own = own["components"]["schemas"].as_object().unwrap();
            for (name, schema) in recorded["components"]["schemas"].as_object().unwrap() {
                assert!(own.contains_key(name), "{version}: {name} is missing");
                for (field, property) in schema["properties"].as_object().into_iter().flatten() {
                    let text = &own[name]["properties"][field]["description"];
                    all += 1;
                    described += usize::from(*text == property["description"]);
                }
            }
        }
    }
    // Upstream lists the values of an enum once more in the text of this version.
    assert!(described * 100 >= all * 94, "{described} of {all} members are described as upstream does");
}

#[test]
fn patches_take_field_validation() {
    let document = v3_document(&GroupVersion::new("apps", "v1"), types()).unwrap();
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    let names: Vec<&str> =
        patch["parameters"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
}

#[test]
fn custom_types_are_published_with_their_descriptions() {
    let mut resource = builtin().resources()[2].as_ref().clone();
    resource.custom = true;
    resource.gvk = aro_kube_apimachinery::GroupVersionKind::new("stable.example.com", "v1", "CronTab");
    resource.plural = "crontabs".into();
    let schema = json!({"type": "object", "description": "A CronTab.", "properties": {"spec": {"type": "object",
        "properties": {"any": {"x-kubernetes-int-or-string": true}}}}});
    let custom = CustomDescription { schema: Some(&schema), list_kind: "CronTabList" };
    let described = Described { resource: &resource, custom: Some(custom) };
    let document = v3_document(&resource.group_version(), [described]).unwrap();
    let own = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!(own["description"], "A CronTab.");
    assert!(own["properties"]["kind"]["description"].as_str().unwrap().starts_with("Kind is a string value"));
    assert_eq!(own["properties"]["spec"]["properties"]["any"]["anyOf"][0]["type"], "integer");
    assert_eq!(own["x-kubernetes-group-version-kind"][0]["kind"], "CronTab");
    assert!(document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].is_object());
    let index = v3_index([described]);
    let url = index["paths"]["apis/stable.example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    assert!(url.starts_with("/openapi/v3/apis/stable.example.com/v1?hash="));
    let other = json!({"type": "object"});
    let other =
        Described { resource: &resource, custom: Some(CustomDescription { schema: Some(&other), ..custom }) };
    assert_ne!(v3_index([other]), index, "a changed schema changes the hash");
}

#[test]
fn version_two_has_definitions_and_no_references_to_components() {
    let document = v2_document(types());
    assert_eq!(document["swagger"], "2.0");
    assert!(!document.to_string().contains("#/components/"));
    let pod = &document["definitions"]["io.k8s.api.core.v1.Pod"];
    assert_eq!(pod["properties"]["spec"]["$ref"], "#/definitions/io.k8s.api.core.v1.PodSpec");
    let create = &document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"];
    assert_eq!(create["parameters"][0]["schema"]["$ref"], "#/definitions/io.k8s.api.core.v1.Pod");
    assert_eq!(create["responses"]["200"]["schema"]["$ref"], "#/definitions/io.k8s.api.core.v1.Pod");
}
