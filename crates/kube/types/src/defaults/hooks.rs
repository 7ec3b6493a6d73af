//! Defaults that depend on other members, one small function for each definition that has some.

mod batch;
mod core;
mod other;
mod pods;

use aro_kube_apimachinery::meta::Object;

/// Changes an object of one definition before its members are looked at.
pub type Hook = fn(&mut Object);

/// The function of a definition, by its OpenAPI name.
pub fn hook(definition: &str) -> Option<Hook> {
    let Some(name) = definition.strip_prefix("io.k8s.api.") else {
        return match definition.rsplit_once(".pkg.apis.")?.1 {
            "apiextensions.v1.CustomResourceDefinition" => Some(other::custom_resource_definition),
            "apiextensions.v1.ServiceReference" | "apiregistration.v1.ServiceReference" => {
                Some(other::service_reference)
            }
            _ => None,
        };
    };
    Some(match name {
        "core.v1.Pod" => pods::pod,
        "core.v1.PodSpec" => pods::pod_spec,
        "core.v1.Container" | "core.v1.EphemeralContainer" => pods::container,
        "core.v1.Probe" => pods::probe,
        "core.v1.HTTPGetAction" => pods::http_get,
        "core.v1.Volume" => pods::volume,
        "core.v1.HostPathVolumeSource" => pods::host_path,
        "core.v1.SecretVolumeSource"
        | "core.v1.ConfigMapVolumeSource"
        | "core.v1.DownwardAPIVolumeSource"
        | "core.v1.ProjectedVolumeSource" => pods::default_mode,
        "core.v1.ServiceAccountTokenProjection" => pods::token_projection,
        "core.v1.ObjectFieldSelector" => pods::field_selector,
        "core.v1.Service" => core::service,
        "core.v1.ReplicationController" => core::replication_controller,
        "core.v1.Secret" => core::secret,
        "core.v1.Namespace" => core::namespace,
        "core.v1.NamespaceStatus" => core::namespace_status,
        "core.v1.NodeStatus" => core::node_status,
        "core.v1.PersistentVolume" => core::persistent_volume,
        "core.v1.PersistentVolumeClaim" => core::claim,
        "core.v1.PersistentVolumeClaimSpec" => core::claim_spec,
        "core.v1.EndpointPort" | "networking.v1.NetworkPolicyPort" => core::endpoint_port,
        "core.v1.LimitRangeItem" => core::limit_range_item,
        "apps.v1.DeploymentSpec" => batch::deployment,
        "apps.v1.DaemonSetSpec" => batch::daemon_set,
        "apps.v1.StatefulSetSpec" => batch::stateful_set,
        "apps.v1.ReplicaSetSpec" => batch::replica_set,
        "batch.v1.Job" => batch::job,
        "batch.v1.CronJobSpec" => batch::cron_job,
        "batch.v1.PodFailurePolicyOnPodConditionsPattern" => batch::pod_condition_pattern,
        "autoscaling.v1.HorizontalPodAutoscalerSpec" => other::autoscaler_v1,
        "autoscaling.v2.HorizontalPodAutoscalerSpec" => other::autoscaler_v2,
        "networking.v1.NetworkPolicySpec" => other::network_policy,
        "networking.v1.IngressClassParametersReference" => other::ingress_class_parameters,
        "rbac.v1.RoleRef" => other::role_ref,
        "rbac.v1.Subject" => other::subject,
        "storage.v1.StorageClass" => other::storage_class,
        "storage.v1.CSIDriverSpec" => other::csi_driver,
        "scheduling.v1.PriorityClass" => other::priority_class,
        "discovery.v1.EndpointPort" => other::slice_port,
        "admissionregistration.v1.ValidatingWebhook" => other::validating_webhook,
        "admissionregistration.v1.MutatingWebhook" => other::mutating_webhook,
        "admissionregistration.v1.RuleWithOperations"
        | "admissionregistration.v1.NamedRuleWithOperations" => other::rule,
        "admissionregistration.v1.ServiceReference" => other::service_reference,
        "admissionregistration.v1.MatchResources" => other::match_resources,
        "admissionregistration.v1.ValidatingAdmissionPolicySpec"
        | "admissionregistration.v1.MutatingAdmissionPolicySpec" => other::admission_policy,
        "flowcontrol.v1.FlowSchemaSpec" => other::flow_schema,
        "flowcontrol.v1.ExemptPriorityLevelConfiguration" => other::exempt_level,
        "flowcontrol.v1.LimitedPriorityLevelConfiguration" => other::limited_level,
        "flowcontrol.v1.QueuingConfiguration" => other::queuing,
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest" => other::device_request,
        _ => return None,
    })
}
