//! Which container of a pod is meant.

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use serde_json::Value;

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

fn names<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    let containers = meta::get(pod, &["spec", list]).and_then(Value::as_array);
    containers.into_iter().flatten().filter_map(|container| container.get("name")?.as_str())
}

/// The container that was asked for, or the only one. Texts are upstream's.
pub(super) fn choose(pod: &Value, asked: &str) -> Result<String, Status> {
    let name = meta::name(pod);
    if !asked.is_empty() {
        if LISTS.iter().any(|list| names(pod, list).any(|known| known == asked)) {
            return Ok(asked.to_owned());
        }
        return Err(Status::bad_request(format!("container {asked} is not valid for pod {name}")));
    }
    let mut containers = names(pod, "containers");
    match (containers.next(), containers.next()) {
        (Some(only), None) => Ok(only.to_owned()),
        (None, _) => Err(Status::bad_request(format!("a container name must be specified for pod {name}"))),
        _ => {
            let all: Vec<&str> = LISTS.iter().flat_map(|list| names(pod, list)).collect();
            let all = all.join(" ");
            let message =
                format!("a container name must be specified for pod {name}, choose one of: [{all}]");
            Err(Status::bad_request(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_chosen_or_the_choices_are_named() {
        let one = json!({"metadata": {"name": "p"}, "spec": {"initContainers": [{"name": "i"}], "containers": [{"name": "a"}]}});
        let two = json!({"metadata": {"name": "p"}, "spec": {"initContainers": [{"name": "i"}],
            "containers": [{"name": "a"}, {"name": "b"}], "ephemeralContainers": [{"name": "e"}]}});
        let none = json!({"metadata": {"name": "p"}, "spec": {}});
        for (pod, asked, expected) in [
            (&one, "", Ok("a")),
            (&one, "i", Ok("i")),
            (&two, "e", Ok("e")),
            (&one, "x", Err("container x is not valid for pod p")),
            (&two, "", Err("a container name must be specified for pod p, choose one of: [i a b e]")),
            (&none, "", Err("a container name must be specified for pod p")),
        ] {
            let chosen = choose(pod, asked).map_err(|status| status.message);
            assert_eq!(chosen.as_deref().map_err(String::as_str), expected, "{asked}");
        }
    }
}
