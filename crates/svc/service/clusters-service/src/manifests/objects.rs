//! Objects beside the HostedCluster: secrets, and what brings certificates out of the vault.

use aro_base::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::namespaces::POLICIES;
use super::work::Part;
use super::{ClusterInput, Context, feedback};

pub(super) const PULL_SECRET: &str = "pull-secret";
pub(super) const SSH_KEY: &str = "ssh-key";
pub(super) const SIGNING_KEY: &str = "service-account-signing-key";
/// The secret with the API server's certificate for its public name.
pub(super) const API_CERTIFICATE: &str = "cluster-api-cert";

/// Everything in the cluster's namespace, and the inputs of ingress policies.
pub(super) fn parts(input: &ClusterInput<'_>) -> Vec<Part> {
    let (cx, secrets) = (&input.cx, input.secrets);
    let text = |text: &str| Secret::new(text.to_owned());
    let mut parts = vec![
        secret(
            cx,
            PULL_SECRET,
            "kubernetes.io/dockerconfigjson",
            &[(".dockerconfigjson", &secrets.pull_secret)],
        ),
        secret(cx, SSH_KEY, "Opaque", &[("id_rsa.pub", &text(&secrets.ssh_key))]),
        secret(cx, SIGNING_KEY, "Opaque", &[("key", &secrets.service_account_key)]),
    ];
    if let Some(certificate) = &input.facts.api_certificate {
        parts.extend(from_vault(input, &cx.namespace(), API_CERTIFICATE, certificate));
    }
    parts.push(ingress_config(input));
    if let Some(certificate) = &input.facts.ingress_certificate {
        let name = format!("default-ingress-tls-cert-{}", cx.id);
        parts.extend(from_vault(input, POLICIES, &name, certificate));
    }
    parts.push(serving_certificate(cx));
    parts
}

fn secret(cx: &Context<'_>, name: &str, kind: &str, data: &[(&str, &Secret<String>)]) -> Part {
    let data: Value =
        data.iter().map(|(key, value)| ((*key).to_owned(), json!(STANDARD.encode(value.expose())))).collect();
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": cx.namespace(), "labels": cx.labels() },
        "type": kind, "data": data,
    });
    Part::owned("secrets", manifest)
}

/// What the ingress policy of the management cluster reads.
fn ingress_config(input: &ClusterInput<'_>) -> Part {
    let cx = &input.cx;
    let ingresses = input.cluster.ingresses.as_ref().and_then(|ingresses| ingresses.items.as_deref());
    let default = ingresses.into_iter().flatten().find(|ingress| ingress.default != Some(false));
    let internal = default.and_then(|ingress| ingress.listening) == Some(aro_ocm::ListeningMethod::Internal);
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("default-ingress-config-{}", cx.id),
            "namespace": POLICIES,
            "labels": cx.labels(),
        },
        "data": {
            "disable-certificates": input.facts.ingress_certificate.is_none().to_string(),
            "endpoint-publishing-strategy": if internal { "internal" } else { "external" },
        },
    });
    Part::owned("configmaps", manifest)
}

/// A certificate of the vault as a TLS secret.
fn from_vault(input: &ClusterInput<'_>, namespace: &str, name: &str, certificate: &str) -> [Part; 2] {
    let (cx, facts) = (&input.cx, input.facts);
    let object = |kind: &str| {
        let text = format!(
            "objectName: {certificate}\nobjectType: {kind}\nobjectAlias: tls.{}\n",
            match kind {
                "cert" => "crt",
                _ => "key",
            }
        );
        format!("- |\n  {}", text.trim_end().replace('\n', "\n  "))
    };
    let objects = format!("array:\n{}\n{}\n", object("cert"), object("secret"));
    let metadata = json!({ "name": name, "namespace": namespace, "labels": cx.labels() });
    let provider = json!({
        "apiVersion": "secrets-store.csi.x-k8s.io/v1", "kind": "SecretProviderClass",
        "metadata": metadata,
        "spec": {
            "provider": "azure",
            "parameters": {
                "usePodIdentity": "false",
                "useVMManagedIdentity": "true",
                "userAssignedIdentityID": facts.vault_reader_client_id,
                "keyvaultName": facts.certificates_vault,
                "tenantId": facts.vault_tenant,
                "objects": objects,
            },
        },
    });
    let sync = json!({
        "apiVersion": "secret-sync.x-k8s.io/v1alpha1", "kind": "SecretSync",
        "metadata": metadata,
        "spec": {
            "secretProviderClassName": name,
            "serviceAccountName": "default",
            "secretObject": {
                "type": "kubernetes.io/tls",
                "data": [
                    { "sourcePath": "tls.crt", "targetKey": "tls.crt" },
                    { "sourcePath": "tls.key", "targetKey": "tls.key" },
                ],
            },
        },
    });
    [Part::owned("secretproviderclasses", provider), Part::owned("secretsyncs", sync)]
}

/// The certificate of the API server, which HyperShift makes; only reported.
fn serving_certificate(cx: &Context<'_>) -> Part {
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "kube-apiserver-tls-cert", "namespace": cx.control_plane_namespace() },
    });
    Part::observed("secrets", manifest, &feedback::of_serving_certificate())
}
