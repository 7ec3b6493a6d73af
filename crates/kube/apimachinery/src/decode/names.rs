//! Names of Go types, as decoding errors show them.

use crate::schema::{Kind, Typed};

/// The last part of a reference: `io.k8s.api.core.v1.PodSpec` is the struct `PodSpec`.
pub(super) fn struct_name(reference: &str) -> &str {
    reference.rsplit('.').next().unwrap_or(reference)
}

/// The type as Go prints it: `v1.PodSpec`, `[]string`, `map[string]string`, `int32`.
pub(super) fn go_type(typed: Typed<'_>) -> String {
    if let Some(reference) = &typed.site.reference
        && typed.kind() == Kind::Object
    {
        let mut parts = reference.rsplit('.');
        let name = parts.next().unwrap_or_default();
        return parts.next().map_or_else(|| name.to_owned(), |package| format!("{package}.{name}"));
    }
    match typed.kind() {
        Kind::String if typed.schema.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        Kind::Any | Kind::String => "string".to_owned(),
        Kind::Integer => typed.schema.format.as_deref().unwrap_or("int64").to_owned(),
        Kind::Number => "float64".to_owned(),
        Kind::Boolean => "bool".to_owned(),
        Kind::IntOrString => "int32".to_owned(),
        Kind::Array => {
            let items = typed.items().map_or_else(|| "interface {}".to_owned(), go_type);
            format!("[]{items}")
        }
        Kind::Object => {
            let values = typed.additional().map_or_else(|| "interface {}".to_owned(), go_type);
            format!("map[string]{values}")
        }
    }
}

/// The Go struct that a member of a struct is embedded by, when it is. Its name is a step of the path in errors.
pub(super) fn embedded(owner: &str, member: &str) -> Option<&'static str> {
    let inline = match owner {
        "Volume" if member != "name" => "VolumeSource",
        "Probe" if matches!(member, "exec" | "grpc" | "httpGet" | "tcpSocket") => "ProbeHandler",
        "EphemeralContainer" if member != "targetContainerName" => "EphemeralContainerCommon",
        "ConfigMapKeySelector"
        | "SecretKeySelector"
        | "ConfigMapEnvSource"
        | "SecretEnvSource"
        | "ConfigMapProjection"
        | "SecretProjection"
        | "ConfigMapVolumeSource"
            if member == "name" =>
        {
            "LocalObjectReference"
        }
        "RuleWithOperations" | "NamedRuleWithOperations"
            if matches!(member, "apiGroups" | "apiVersions" | "resources" | "scope") =>
        {
            "Rule"
        }
        "PersistentVolumeSpec" if is_volume_source(member) => "PersistentVolumeSource",
        _ => return None,
    };
    Some(inline)
}

fn is_volume_source(member: &str) -> bool {
    !matches!(
        member,
        "accessModes"
            | "capacity"
            | "claimRef"
            | "mountOptions"
            | "nodeAffinity"
            | "persistentVolumeReclaimPolicy"
            | "storageClassName"
            | "volumeAttributesClassName"
            | "volumeMode"
    )
}
