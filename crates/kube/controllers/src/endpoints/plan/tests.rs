use super::*;
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};

fn service(more: &Value) -> Service {
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "svc", "labels": {"team": "a"}},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "http", "port": 80, "targetPort": "web"}]},
    });
    for (key, part) in more.as_object().unwrap() {
        value["spec"][key] = part.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn pod(number: usize, port: i32, ready: bool) -> Backend {
    let word = if ready { "True" } else { "False" };
    let pod = json!({
        "metadata": {"name": format!("p{number}"), "namespace": "n", "uid": format!("u{number}")},
        "spec": {"nodeName": "node", "hostname": "h", "subdomain": "web",
            "containers": [{"name": "c", "ports": [{"name": "web", "containerPort": port}]}]},
        "status": {"phase": "Running", "podIPs": [{"ip": format!("10.1.{}.{}", number / 250, number % 250)}],
            "conditions": [{"type": "Ready", "status": word}]},
    });
    Backend { pod: Arc::new(serde_json::from_value(pod).unwrap()), zone: Some("z1".to_owned()) }
}

/// What is there after a plan was carried out.
fn carried_out(slices: &[Arc<EndpointSlice>], plan: &Plan, made: &mut usize) -> Vec<Arc<EndpointSlice>> {
    let gone = |slice: &EndpointSlice| {
        plan.delete.iter().any(|deleted| deleted.name_any() == slice.name_any())
            || plan.update.iter().any(|updated| updated.name_any() == slice.name_any())
    };
    let mut left: Vec<_> = slices.iter().filter(|slice| !gone(slice)).cloned().collect();
    left.extend(plan.update.iter().cloned().map(Arc::new));
    for slice in &plan.create {
        let mut slice = slice.clone();
        *made += 1;
        slice.metadata.name = Some(format!("web-{made}"));
        left.push(Arc::new(slice));
    }
    left
}

fn settled(
    service: &Service,
    backends: &[Backend],
    slices: &[Arc<EndpointSlice>],
) -> Vec<Arc<EndpointSlice>> {
    let mut made = slices.len();
    let after = carried_out(slices, &plan(service, backends, slices), &mut made);
    assert_eq!(plan(service, backends, &after), Plan::default(), "a second look finds nothing to do");
    after
}

#[test]
fn an_endpoint_says_everything_about_its_pod() {
    let slices = settled(&service(&json!({})), &[pod(1, 8080, true)], &[]);
    let slice = serde_json::to_value(&*slices[0]).unwrap();
    assert_eq!(
        slice["metadata"]["labels"],
        json!({"team": "a", "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"})
    );
    assert_eq!(slice["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    assert_eq!(
        slice["endpoints"],
        json!([{"addresses": ["10.1.0.1"], "conditions": {"ready": true, "serving": true, "terminating": false},
            "hostname": "h", "nodeName": "node", "zone": "z1",
            "targetRef": {"kind": "Pod", "name": "p1", "namespace": "n", "uid": "u1"}}])
    );
    assert_eq!(slice["metadata"]["generateName"], "web-");
}

#[test]
fn conditions_follow_the_pod_and_the_service() {
    let conditions = |service: &Service, change: fn(&mut Pod)| {
        let mut backend = pod(1, 80, false);
        change(Arc::make_mut(&mut backend.pod));
        let slices = settled(service, &[backend], &[]);
        let endpoints = slices[0].endpoints.clone().unwrap_or_default();
        endpoints.first().and_then(|endpoint| endpoint.conditions.clone()).map(|conditions| {
            (conditions.ready.unwrap(), conditions.serving.unwrap(), conditions.terminating.unwrap())
        })
    };
    let ready = |pod: &mut Pod| {
        pod.status.as_mut().unwrap().conditions.as_mut().unwrap()[0].status = "True".to_owned();
    };
    let going = |pod: &mut Pod| {
        pod.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(aro_base::Timestamp::UNIX_EPOCH));
        pod.status.as_mut().unwrap().conditions.as_mut().unwrap()[0].status = "True".to_owned();
    };
    let ended = |pod: &mut Pod| pod.status.as_mut().unwrap().phase = Some("Failed".to_owned());
    let plain = service(&json!({}));
    let eager = service(&json!({"publishNotReadyAddresses": true}));
    assert_eq!(conditions(&plain, |_| {}), Some((false, false, false)));
    assert_eq!(conditions(&plain, ready), Some((true, true, false)));
    assert_eq!(conditions(&plain, going), Some((false, true, true)));
    assert_eq!(conditions(&eager, |_| {}), Some((true, false, false)));
    assert_eq!(conditions(&eager, going), Some((true, true, true)));
    assert_eq!(conditions(&eager, ended), None);
}

#[test]
fn a_service_with_nothing_behind_it_has_one_empty_slice_which_is_used_later() {
    let service = service(&json!({"clusterIP": "None"}));
    let empty = settled(&service, &[], &[]);
    assert_eq!((empty.len(), empty[0].labels().contains_key(HEADLESS)), (1, true));
    let plan = plan(&service, &[pod(1, 80, true)], &empty);
    assert_eq!((plan.create.len(), plan.update.len(), plan.delete.len()), (0, 1, 0));
}

#[test]
fn pods_with_other_ports_are_in_other_slices() {
    let service = service(&json!({}));
    let backends = [pod(1, 8080, true), pod(2, 9090, true), pod(3, 8080, true)];
    let mut sizes: Vec<_> = settled(&service, &backends, &[]).iter().map(|slice| count(slice)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2]);
}

#[test]
fn one_more_pod_is_one_write_and_no_endpoint_moves() {
    let service = service(&json!({}));
    let mut backends: Vec<_> = (0..250).map(|number| pod(number, 80, true)).collect();
    let slices = settled(&service, &backends, &[]);
    let mut sizes: Vec<_> = slices.iter().map(|slice| count(slice)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [50, 100, 100]);
    backends.push(pod(999, 80, true));
    let one_more = plan(&service, &backends, &slices);
    assert_eq!((one_more.create.len(), one_more.update.len(), one_more.delete.len()), (0, 1, 0));
    assert_eq!(count(&one_more.update[0]), 51);
    backends[7] = pod(7, 80, false);
    backends.pop();
    let flipped = plan(&service, &backends, &slices);
    assert_eq!((flipped.create.len(), flipped.update.len(), flipped.delete.len()), (0, 1, 0));
}

#[test]
fn slices_of_an_earlier_service_of_the_same_name_go() {
    let mut earlier = service(&json!({}));
    earlier.metadata.uid = Some("earlier".to_owned());
    let old = settled(&earlier, &[pod(1, 80, true)], &[]);
    let plan = plan(&service(&json!({})), &[pod(1, 80, true)], &old);
    assert_eq!((plan.create.len(), plan.update.len(), plan.delete.len()), (1, 0, 1));
}

#[test]
fn changed_labels_of_a_service_reach_its_slices() {
    let mut service = service(&json!({}));
    let slices = settled(&service, &[pod(1, 80, true)], &[]);
    service.metadata.labels = None;
    let plan = plan(&service, &[pod(1, 80, true)], &slices);
    assert!(!plan.update[0].labels().contains_key("team"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn after_any_change_each_pod_is_in_exactly_one_slice_and_none_is_too_full(
        first in prop::collection::btree_map(0..400_usize, (0..2_i32, any::<bool>()), 0..300),
        second in prop::collection::btree_map(0..400_usize, (0..2_i32, any::<bool>()), 0..300),
    ) {
        let service = service(&json!({}));
        let backends = |pods: &BTreeMap<usize, (i32, bool)>| -> Vec<Backend> {
            pods.iter().map(|(number, (port, ready))| pod(*number, 80 + port, *ready)).collect()
        };
        let before = settled(&service, &backends(&first), &[]);
        let after = settled(&service, &backends(&second), &before);
        let mut found: Vec<String> = after
            .iter()
            .flat_map(|slice| slice.endpoints.iter().flatten())
            .map(|endpoint| endpoint.target_ref.clone().unwrap().uid.unwrap())
            .collect();
        found.sort();
        let mut expected: Vec<String> = second.keys().map(|number| format!("u{number}")).collect();
        expected.sort();
        prop_assert_eq!(found, expected);
        prop_assert!(after.iter().all(|slice| count(slice) <= FULL));
        prop_assert!(!after.is_empty());
    }
}
