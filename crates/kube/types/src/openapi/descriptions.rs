//! Descriptions of the built-in types, as the `k8s-openapi` crate ships them.
//!
//! Made once, on first use: nothing but documents for people needs them.

use std::sync::LazyLock;

use k8s_openapi::schemars::SchemaGenerator;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::Value;

/// Definitions by name, in whatever form the crate has them: only descriptions are read.
static DOCUMENTED: LazyLock<Value> = LazyLock::new(|| {
    let mut settings = SchemaSettings::openapi3();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    describe_all(&mut generator);
    Value::Object(generator.take_definitions(true))
});

macro_rules! describe {
    ($generator:ident, $($($module:ident)::+: $($kind:ident)+;)+) => {
        $({
            use k8s_openapi::$($module)::+ as module;
            $(let _ = $generator.subschema_for::<module::$kind>();)+
        })+
    };
}

/// Every kind brings what it is made of.
fn describe_all(generator: &mut SchemaGenerator) {
    describe! {
        generator,
        api::admissionregistration::v1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration;
        api::apps::v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        api::authentication::v1: SelfSubjectReview TokenRequest TokenReview;
        api::authorization::v1: LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview;
        api::autoscaling::v1: HorizontalPodAutoscaler Scale;
        api::autoscaling::v2: HorizontalPodAutoscaler;
        api::batch::v1: CronJob Job;
        api::certificates::v1: CertificateSigningRequest;
        api::coordination::v1: Lease;
        api::core::v1: Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount;
        api::discovery::v1: EndpointSlice;
        api::events::v1: Event;
        api::flowcontrol::v1: FlowSchema PriorityLevelConfiguration;
        api::networking::v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
        api::node::v1: RuntimeClass;
        api::policy::v1: Eviction PodDisruptionBudget;
        api::rbac::v1: ClusterRole ClusterRoleBinding Role RoleBinding;
        api::resource::v1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        api::scheduling::v1: PriorityClass;
        api::storage::v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass;
        apiextensions_apiserver::pkg::apis::apiextensions::v1: CustomResourceDefinition;
        apimachinery::pkg::apis::meta::v1: APIGroup APIGroupList APIResourceList APIVersions DeleteOptions Status;
        kube_aggregator::pkg::apis::apiregistration::v1: APIService;
    }
}

/// What a definition is.
pub fn of_definition(name: &str) -> Option<&'static str> {
    DOCUMENTED.get(name)?.get("description")?.as_str()
}

/// What a member of a definition is.
pub fn of_field(name: &str, field: &str) -> Option<&'static str> {
    DOCUMENTED.get(name)?.get("properties")?.get(field)?.get("description")?.as_str()
}
