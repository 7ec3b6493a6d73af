use http::HeaderValue;
use serde_json::json;

use super::*;

const STATUS: &str = "https://management.azure.com/subscriptions/s/providers/p/locations/l/operationStatuses/1?api-version=1&t=2";
const LOCATION: &str =
    "https://management.azure.com/subscriptions/s/providers/p/locations/l/operationResults/1";

fn base() -> Url {
    Url::parse("https://management.azure.com/subscriptions/s/resourceGroups/g?api-version=1").unwrap()
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

fn begin(method: Method, status: u16, pairs: &[(&'static str, &'static str)], body: Value) -> Step {
    let headers = headers(pairs);
    let reply = Reply { status: StatusCode::from_u16(status).unwrap(), headers: &headers, body: &body };
    start(&method, &reply, &base())
}

fn go_on(method: Method, poll: &Poll, finish: &Finish, status: u16, body: Value) -> Step {
    let reply =
        Reply { status: StatusCode::from_u16(status).unwrap(), headers: &HeaderMap::new(), body: &body };
    step(&method, poll, finish, &reply, &base())
}

fn state(state: &str) -> Value {
    json!({"properties": {"provisioningState": state}})
}

#[test]
fn a_write_with_a_status_link_polls_it_and_reads_the_resource() {
    for (method, status) in [(Method::PUT, 200), (Method::PUT, 201), (Method::PUT, 202), (Method::PATCH, 202)]
    {
        let links = [("azure-asyncoperation", STATUS), ("location", LOCATION)];
        let expected = Step::Running { poll: Poll::Status(url(STATUS)), finish: Finish::Resource };
        assert_eq!(begin(method, status, &links, state("Accepted")), expected);
    }
}

#[test]
fn an_action_reads_its_result_at_the_location_and_a_deletion_reads_nothing() {
    let links = [("azure-asyncoperation", STATUS), ("location", LOCATION)];
    let expected = Step::Running { poll: Poll::Status(url(STATUS)), finish: Finish::Location(url(LOCATION)) };
    assert_eq!(begin(Method::POST, 202, &links, Value::Null), expected);
    let expected = Step::Running { poll: Poll::Status(url(STATUS)), finish: Finish::Nothing };
    assert_eq!(begin(Method::DELETE, 202, &links, Value::Null), expected);
    assert_eq!(begin(Method::DELETE, 204, &[], Value::Null), Step::Done(Finish::Reply));
}

#[test]
fn without_links_the_resource_tells() {
    let running = Step::Running { poll: Poll::Resource, finish: Finish::Reply };
    assert_eq!(begin(Method::PUT, 201, &[], state("Creating")), running);
    assert_eq!(begin(Method::PUT, 200, &[], state("Succeeded")), Step::Done(Finish::Reply));
    assert_eq!(begin(Method::PUT, 200, &[], json!({"id": "/x"})), Step::Done(Finish::Reply));
    assert!(matches!(begin(Method::PUT, 200, &[], state("Failed")), Step::Failed { .. }));
    assert!(matches!(begin(Method::POST, 202, &[], Value::Null), Step::Broken(_)));
    assert_eq!(begin(Method::DELETE, 202, &[], Value::Null), running);
}

#[test]
fn only_three_states_end_an_operation() {
    let (poll, finish) = (Poll::Status(url(STATUS)), Finish::Resource);
    let status = |status: u16, body: Value| go_on(Method::PUT, &poll, &finish, status, body);
    for word in ["Accepted", "Provisioning", "Updating", "Deleting", "AwaitingSecret", "NewWord"] {
        assert!(matches!(status(200, json!({"status": word})), Step::Running { .. }), "{word}");
    }
    assert_eq!(status(200, json!({"status": "succeeded"})), Step::Done(Finish::Resource));
    assert!(matches!(status(200, Value::Null), Step::Broken(_)));
    assert!(matches!(status(202, Value::Null), Step::Running { .. }));
    let body = json!({"status": "Failed", "error": {"code": "QuotaExceeded", "message": "no cores"}});
    let Step::Failed { state, error } = status(200, body) else { panic!("it failed") };
    assert_eq!(
        (state.as_str(), error.code.as_str(), error.message.as_str()),
        ("Failed", "QuotaExceeded", "no cores")
    );
}

#[test]
fn a_forgotten_operation_is_followed_by_its_resource() {
    let poll = Poll::Status(url(STATUS));
    let running = Step::Running { poll: Poll::Resource, finish: Finish::Reply };
    assert_eq!(go_on(Method::PUT, &poll, &Finish::Resource, 404, Value::Null), running);
    assert_eq!(go_on(Method::DELETE, &poll, &Finish::Nothing, 404, Value::Null), running);
    assert!(matches!(go_on(Method::POST, &poll, &Finish::Nothing, 404, Value::Null), Step::Failed { .. }));
}

#[test]
fn a_location_is_polled_until_it_is_not_accepted_any_more() {
    let poll = Poll::Location(url(LOCATION));
    assert!(matches!(go_on(Method::POST, &poll, &Finish::Reply, 202, Value::Null), Step::Running { .. }));
    assert_eq!(go_on(Method::POST, &poll, &Finish::Reply, 200, json!({"a": 1})), Step::Done(Finish::Reply));
    assert_eq!(go_on(Method::DELETE, &poll, &Finish::Reply, 204, Value::Null), Step::Done(Finish::Reply));
    assert_eq!(go_on(Method::DELETE, &poll, &Finish::Reply, 404, Value::Null), Step::Done(Finish::Nothing));
    assert!(matches!(go_on(Method::DELETE, &poll, &Finish::Reply, 409, Value::Null), Step::Failed { .. }));
}

#[test]
fn a_deletion_ends_when_the_resource_is_gone() {
    let gone = |status, body| go_on(Method::DELETE, &Poll::Resource, &Finish::Nothing, status, body);
    assert_eq!(gone(404, Value::Null), Step::Done(Finish::Nothing));
    assert!(matches!(gone(200, state("Deleting")), Step::Running { .. }));
    assert!(matches!(gone(200, state("Succeeded")), Step::Running { .. }));
    assert!(matches!(gone(200, state("Failed")), Step::Failed { .. }));
}

#[test]
fn a_relative_link_belongs_to_the_host_of_the_request() {
    let step = begin(Method::DELETE, 202, &[("location", "/subscriptions/s/op")], Value::Null);
    let Step::Running { poll: Poll::Location(link), .. } = step else { panic!("{step:?}") };
    assert_eq!(link.as_str(), "https://management.azure.com/subscriptions/s/op");
}
