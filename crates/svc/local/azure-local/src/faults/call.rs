//! A request as rules see it. Pure.

use std::borrow::Cow;

use aro_arm::ResourceId;
use aro_arm_server::QueryParameters;
use percent_encoding::percent_decode_str;

use super::rule::Operation;
use crate::front_door::Service;

/// What a request does to what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub service: Service,
    pub method: String,
    pub operation: Operation,
    /// Empty outside of ARM.
    pub resource_type: String,
    /// The resource id; for other services host and path.
    pub resource: String,
}

impl Call {
    /// A request to ARM.
    pub(crate) fn of_arm(method: &http::Method, path: &str, query: &str) -> Self {
        let path = decoded(path);
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let polled = match segments.as_slice() {
            [.., word, _]
                if ["operations", "operationResults"]
                    .iter()
                    .any(|known| word.eq_ignore_ascii_case(known)) =>
            {
                QueryParameters::parse(query).get("t").and_then(|text| ResourceId::parse(text).ok())
            }
            _ => None,
        };
        if let Some(resource) = polled {
            return Self {
                service: Service::Arm,
                method: method.to_string(),
                operation: Operation::Poll,
                resource_type: type_of(&resource),
                resource: resource.to_string(),
            };
        }
        let resource: String = segments.iter().flat_map(|segment| ["/", segment]).collect();
        Self {
            service: Service::Arm,
            method: method.to_string(),
            operation: operation_of(method),
            resource_type: type_of_path(&segments),
            resource,
        }
    }

    /// A request on a resource that the engine works on.
    pub(crate) fn of_resource(method: &http::Method, id: &ResourceId) -> Self {
        Self {
            service: Service::Arm,
            method: method.to_string(),
            operation: operation_of(method),
            resource_type: type_of(id),
            resource: id.to_string(),
        }
    }

    /// A request to another service.
    pub(crate) fn of_service(service: Service, method: &http::Method, host: &str, path: &str) -> Self {
        Self {
            service,
            method: method.to_string(),
            operation: operation_of(method),
            resource_type: String::new(),
            resource: format!("{host}{}", decoded(path)),
        }
    }

    /// The action as role definitions name it.
    pub(crate) fn action(&self) -> String {
        let word = match self.operation {
            Operation::Read | Operation::Poll => "read",
            Operation::Write => "write",
            Operation::Delete => "delete",
            Operation::Action => "action",
        };
        format!("{}/{word}", self.resource_type)
    }
}

fn decoded(path: &str) -> Cow<'_, str> {
    percent_decode_str(path).decode_utf8_lossy()
}

fn operation_of(method: &http::Method) -> Operation {
    match *method {
        http::Method::PUT | http::Method::PATCH => Operation::Write,
        http::Method::DELETE => Operation::Delete,
        http::Method::POST => Operation::Action,
        _ => Operation::Read,
    }
}

const GROUP: &str = "Microsoft.Resources/resourceGroups";
const SUBSCRIPTION: &str = "Microsoft.Resources/subscriptions";

fn type_of(id: &ResourceId) -> String {
    match (id.namespace(), id.resource_group()) {
        (Some(_), _) => id.resource_type(),
        (None, Some(_)) => GROUP.to_owned(),
        (None, None) => SUBSCRIPTION.to_owned(),
    }
}

/// The type in a path: of a resource, of a list, or with the word of an action behind it.
fn type_of_path(segments: &[&str]) -> String {
    let providers = segments.iter().rposition(|segment| segment.eq_ignore_ascii_case("providers"));
    match providers.and_then(|at| segments.get(at + 1..)) {
        Some([namespace, below @ ..]) if !below.is_empty() => {
            let words = below.iter().step_by(2);
            words.fold((*namespace).to_owned(), |full, word| format!("{full}/{word}"))
        }
        Some(_) => "Microsoft.Resources/providers".to_owned(),
        None if segments.iter().any(|segment| segment.eq_ignore_ascii_case("resourceGroups")) => {
            GROUP.to_owned()
        }
        None => SUBSCRIPTION.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn a_path_of_arm_names_operation_type_and_resource() {
        let group = "/subscriptions/s/resourceGroups/g";
        for (method, path, operation, resource_type) in [
            (Method::GET, "/subscriptions/s".to_owned(), Operation::Read, SUBSCRIPTION),
            (Method::PUT, group.to_owned(), Operation::Write, GROUP),
            (Method::DELETE, format!("{group}/providers/N.S/a/x"), Operation::Delete, "N.S/a"),
            (Method::PUT, format!("{group}/providers/N.S/a/x/b/y"), Operation::Write, "N.S/a/b"),
            (Method::GET, format!("{group}/providers/N.S/a"), Operation::Read, "N.S/a"),
            (Method::POST, format!("{group}/providers/N.S/a/x/revoke"), Operation::Action, "N.S/a/revoke"),
            (
                Method::PATCH,
                format!("{group}/providers/N.S/a/x/providers/E.X/r/z"),
                Operation::Write,
                "E.X/r",
            ),
        ] {
            let call = Call::of_arm(&method, &path, "");
            assert_eq!((call.operation, call.resource_type.as_str()), (operation, resource_type), "{path}");
            assert_eq!(call.resource, path);
        }
    }

    #[test]
    fn a_poll_is_about_the_resource_of_its_operation() {
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v";
        let path = "/subscriptions/s/providers/Microsoft.Network/locations/westus3/operations/o";
        let call = Call::of_arm(&Method::GET, path, &format!("api-version=1&t={}", id.replace('/', "%2F")));
        assert_eq!((call.operation, call.resource.as_str()), (Operation::Poll, id));
        assert_eq!(call.resource_type, "Microsoft.Network/virtualNetworks");
    }

    #[test]
    fn names_are_decoded_before_patterns_see_them() {
        let call = Call::of_arm(&Method::GET, "/subscriptions/s/resourceGroups/a%20b", "");
        assert_eq!(call.resource, "/subscriptions/s/resourceGroups/a b");
    }
}
