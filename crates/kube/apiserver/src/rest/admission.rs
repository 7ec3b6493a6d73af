//! What the server itself has to say about a write, beyond the type's own rules: namespaces that must be there, names it
//! makes up, addresses it gives out, and fields it fills in.

mod priority;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::{Cause, Status};
use serde_json::{Value, json};

use super::call::Call;
use crate::identity::nodes::restriction;
use crate::identity::signing::admission as signing;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
}

/// Namespaces that are always there.
pub const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Changes or refuses an object that is about to be written.
pub fn admit(
    call: &mut Call,
    operation: Operation,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if operation == Operation::Create {
        namespace_is_alive(call, object)?;
    }
    if call.served.resource.custom {
        return Ok(());
    }
    restriction::admit(call, operation, object, old)?;
    let resource = call.served.resource.clone();
    match (resource.gvk.group.as_str(), resource.plural.as_str(), operation) {
        ("", "pods", Operation::Create) => pod(call, object)?,
        ("", "pods", Operation::Update) => {
            if let Some(old) = old.filter(|_| call.subresource.is_empty()) {
                priority::keep(object, old);
            }
        }
        ("", "nodes", Operation::Create) => node(object),
        ("", "persistentvolumeclaims", Operation::Create) => protect(object, "kubernetes.io/pvc-protection"),
        ("", "persistentvolumes", Operation::Create) => protect(object, "kubernetes.io/pv-protection"),
        ("", "services", _) => crate::addresses::service(call, object, old)?,
        ("apiextensions.k8s.io", "customresourcedefinitions", _) => definition(call, object, old)?,
        ("certificates.k8s.io", "certificatesigningrequests", Operation::Update) => {
            if let Some(old) = old.filter(|_| !call.subresource.is_empty()) {
                signing::prepare(call, object, old);
            }
        }
        ("rbac.authorization.k8s.io", ..) => crate::identity::escalation::check(call, object, old)?,
        _ => {}
    }
    Ok(())
}

/// Refuses an object that its type's own rules let pass: upstream's validating plugins. `old` is absent on creation.
pub fn validate(call: &Call, object: &Value, old: Option<&Value>) -> Result<(), Status> {
    if call.served.custom.is_some() {
        return Ok(());
    }
    match (call.served.resource.gvk.group.as_str(), call.served.resource.plural.as_str(), old) {
        ("certificates.k8s.io", "certificatesigningrequests", None) => {
            signing::restrict_subject(call, object)
        }
        ("certificates.k8s.io", "certificatesigningrequests", Some(old)) => {
            signing::validate(call, object, old)
        }
        ("scheduling.k8s.io", "priorityclasses", old) => priority::check_class(call, object, old.is_none()),
        _ => Ok(()),
    }
}

/// Refuses deletions that would leave the cluster unusable.
pub fn admit_delete(call: &Call) -> Result<(), Status> {
    restriction::admit_delete(call)?;
    if call.served.is("", "namespaces") && IMMORTAL.contains(&call.name.as_str()) {
        return Err(Status::forbidden(
            &call.resource_name(),
            &call.name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

fn namespace_is_alive(call: &Call, object: &Value) -> Result<(), Status> {
    if !call.served.resource.namespaced {
        return Ok(());
    }
    let watch_cache = call.cluster.store.watch_cache("namespaces");
    let Some(namespace) = call.cluster.store.latest(&watch_cache, &call.namespace) else {
        let namespaces = aro_kube_apimachinery::GroupResource::new("", "namespaces");
        return Err(Status::not_found(&namespaces, &call.namespace));
    };
    // Looking for the word first spares most creations a parse.
    if !contains(namespace.json(), b"\"deletionTimestamp\"")
        || meta::deletion_timestamp(&namespace.value()).is_none()
    {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {} because it is being terminated",
        call.namespace
    );
    let mut status = Status::forbidden(&call.resource_name(), meta::name(object), why);
    if let Some(details) = &mut status.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {} is being terminated", call.namespace),
            field: "metadata.namespace".to_owned(),
        });
    }
    Err(status)
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(bytes, word).is_some()
}

/// Letters and digits that make no words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A name from a prefix, as upstream makes it: five random characters after at most 58 of the prefix.
pub fn generate_name(prefix: &str) -> String {
    let random = uuid::Uuid::new_v4();
    let kept: String = prefix.chars().take(58).collect();
    let tail = random.as_bytes().iter().skip(9).take(5);
    let tail =
        tail.map(|byte| char::from(*ALPHABET.get(usize::from(*byte) % ALPHABET.len()).unwrap_or(&b'x')));
    kept + &tail.collect::<String>()
}

/// What upstream's default plugins do to pods: the service account and its token, tolerations, priority.
fn pod(call: &Call, object: &mut Value) -> Result<(), Status> {
    let account = meta::get(object, &["spec", "serviceAccountName"])
        .and_then(Value::as_str)
        .unwrap_or("default")
        .to_owned();
    let mirror = meta::annotations(object).is_some_and(|all| all.contains_key("kubernetes.io/config.mirror"));
    if !mirror {
        service_account(call, object, &account)?;
    }
    tolerations(object);
    priority::resolve(call, object)
}

fn service_account(call: &Call, object: &mut Value, account: &str) -> Result<(), Status> {
    let watch_cache = call.cluster.store.watch_cache("serviceaccounts");
    let key = format!("{}/{account}", call.namespace);
    let Some(found) = call.cluster.store.latest(&watch_cache, &key) else {
        let why = format!(
            "error looking up service account {}/{account}: serviceaccount {account:?} not found",
            call.namespace
        );
        return Err(Status::forbidden(&call.resource_name(), meta::name(object), why));
    };
    meta::set(object, &["spec", "serviceAccountName"], json!(account));
    meta::set(object, &["spec", "serviceAccount"], json!(account));
    let found = found.value();
    let wants = |value: &Value, path: &[&str]| meta::get(value, path).and_then(Value::as_bool);
    let mount = wants(object, &["spec", "automountServiceAccountToken"])
        .or_else(|| wants(&found, &["automountServiceAccountToken"]))
        .unwrap_or(true);
    if mount {
        mount_token(object);
    }
    let own = meta::get(object, &["spec", "imagePullSecrets"])
        .and_then(Value::as_array)
        .is_some_and(|all| !all.is_empty());
    if !own
        && let Some(secrets) = found
            .get("imagePullSecrets")
            .filter(|secrets| secrets.as_array().is_some_and(|all| !all.is_empty()))
    {
        meta::set(object, &["spec", "imagePullSecrets"], secrets.clone());
    }
    Ok(())
}

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Gives each container the account's token, unless it mounts something else there.
fn mount_token(object: &mut Value) {
    let volume = generate_name("kube-api-access-");
    let mut used = false;
    for list in ["initContainers", "containers"] {
        let containers = meta::get_mut(object, &["spec", list]).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = container.get("volumeMounts").and_then(Value::as_array).cloned().unwrap_or_default();
            if mounts.iter().any(|mount| mount.get("mountPath").and_then(Value::as_str) == Some(TOKEN_PATH)) {
                continue;
            }
            used = true;
            let mut mounts = mounts;
            mounts.push(json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH}));
            container["volumeMounts"] = json!(mounts);
        }
    }
    if !used {
        return;
    }
    let mut volumes =
        meta::get(object, &["spec", "volumes"]).and_then(Value::as_array).cloned().unwrap_or_default();
    volumes.push(json!({"name": volume, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}}));
    meta::set(object, &["spec", "volumes"], json!(volumes));
}

/// Pods stay for five minutes on a node that is lost, unless they say otherwise.
fn tolerations(object: &mut Value) {
    let mut tolerations =
        meta::get(object, &["spec", "tolerations"]).and_then(Value::as_array).cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let told = tolerations.iter().any(|toleration| {
            let text = |name: &str| toleration.get(name).and_then(Value::as_str).unwrap_or_default();
            (text("key") == key || text("key").is_empty()) && matches!(text("effect"), "" | "NoExecute")
        });
        if !told {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
    meta::set(object, &["spec", "tolerations"], json!(tolerations));
}

/// Volumes and claims stay while they are in use.
fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<String> = meta::finalizers(object).map(str::to_owned).collect();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(finalizer.to_owned());
        meta::set(object, &["metadata", "finalizers"], json!(finalizers));
    }
}

/// Nodes begin with a taint, until their readiness is reported.
fn node(object: &mut Value) {
    let mut taints =
        meta::get(object, &["spec", "taints"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let key = "node.kubernetes.io/not-ready";
    if !taints.iter().any(|taint| taint.get("key").and_then(Value::as_str) == Some(key)) {
        taints.push(json!({"key": key, "effect": "NoSchedule"}));
        meta::set(object, &["spec", "taints"], json!(taints));
    }
}

fn definition(call: &Call, object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    if !call.subresource.is_empty() {
        return Ok(());
    }
    let errors = aro_kube_crd::definition::admit(object, old);
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&call.served.resource.group_kind(), meta::name(object), &errors))
}

/// Who asks for a certificate is not for them to say. Runs after the type's own preparation, which takes away what the
/// client said.
pub fn requester(call: &Call, object: &mut Value) {
    if !call.served.is("certificates.k8s.io", "certificatesigningrequests") {
        return;
    }
    meta::set(object, &["spec", "username"], json!(call.user.name));
    meta::set(object, &["spec", "groups"], json!(call.user.groups));
    if call.user.uid.is_empty() {
        meta::remove(object, &["spec", "uid"]);
    } else {
        meta::set(object, &["spec", "uid"], json!(call.user.uid));
    }
    if call.user.extra.is_empty() {
        meta::remove(object, &["spec", "extra"]);
    } else {
        meta::set(object, &["spec", "extra"], json!(call.user.extra));
    }
}
