//! The published examples. Those our rules accept must come out well; for the others the error is kept as a golden
//! file. `ARO_GOLDEN=update` rewrites the files.

use std::path::{Path, PathBuf};

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::version::ApiVersion;
use aro_arm::{ArmError, FieldError};
use serde_json::Value;

use crate::fixtures::*;
use crate::openapi::{env, specs};

fn golden_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn check_golden(name: &str, text: &str) {
    let file = golden_file(name);
    if env("ARO_GOLDEN").as_deref() == Some("update") {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, expected, "{name}: run with ARO_GOLDEN=update and review the difference");
}

/// Where an example's resource is.
fn world_of(parameters: &Value, child: &str) -> World {
    let text = |name: &str| parameters[name].as_str().unwrap_or("missing").to_owned();
    let mut id = format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/{}",
        text("subscriptionId"),
        text("resourceGroupName"),
        text("hcpOpenShiftClusterName")
    );
    if let Some((kind, name)) = child.split_once(' ') {
        id = format!("{id}/{kind}/{}", text(name));
    }
    World::of(&id)
}

/// Creates from the body of an example, or patches with it what is stored.
fn run<T: Sample>(
    version: ApiVersion,
    parameters: &Value,
    child: &str,
    stored: impl Fn() -> T,
) -> Result<Value, Vec<FieldError>> {
    if let Some(body) = parameters.get("resource") {
        let object = T::create(version, body, &world_of(parameters, child).cx())?;
        return Ok(object.render(version));
    }
    let stored = stored();
    let world = World::of(stored.id().as_str());
    let object = stored.patch(version, &parameters["properties"], &world.cx())?;
    Ok(object.render(version))
}

/// The cluster of the examples, with values of today where theirs are outdated.
fn mended_cluster(specs: &Path, version: ApiVersion) -> Cluster {
    let file = "HcpOpenShiftClusters_CreateOrUpdate_MaximumSet_Gen.json";
    let path = specs.join("examples").join(version.as_str()).join(file);
    let example: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let parameters = &example["parameters"];
    let mut body = parameters["resource"].clone();
    set(&mut body, "properties.version.id", "4.22".into());
    set(&mut body, "properties.network.hostPrefix", 23.into());
    for name in ["maxPodGracePeriodSeconds", "maxNodeProvisionTimeSeconds"] {
        set(&mut body, &format!("properties.autoscaling.{name}"), 1.into());
    }
    Cluster::create(version, &body, &world_of(parameters, "").cx()).unwrap()
}

#[test]
fn published_request_bodies_are_accepted_or_refused_as_recorded() {
    let Some(specs) = specs() else { return };
    let mut count = 0;
    let mut folders: Vec<_> = std::fs::read_dir(specs.join("examples")).unwrap().flatten().collect();
    folders.sort_by_key(std::fs::DirEntry::file_name);
    for folder in folders {
        let folder_name = folder.file_name().into_string().unwrap();
        let version = ApiVersion::parse(&folder_name).unwrap();
        let mut files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        files.sort_by_key(std::fs::DirEntry::file_name);
        for file in files {
            let name = file.file_name().into_string().unwrap();
            if !name.contains("_CreateOrUpdate_") && !name.contains("_Update_") {
                continue;
            }
            let example: Value = serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap();
            let parameters = &example["parameters"];
            let result = match name.split('_').next().unwrap() {
                "HcpOpenShiftClusters" => run(version, parameters, "", || mended_cluster(&specs, version)),
                "NodePools" => run(version, parameters, "nodePools nodePoolName", || NodePool::made(version)),
                "ExternalAuths" => {
                    run(version, parameters, "externalAuths externalAuthName", || ExternalAuth::made(version))
                }
                other => panic!("an example of an unknown resource: {other}"),
            };
            count += 1;
            match result {
                Ok(answer) => {
                    assert_eq!(answer["properties"]["provisioningState"], "Accepted", "{name}");
                    assert!(
                        !golden_file(&format!("{folder_name}/{name}")).exists(),
                        "{name} is accepted now"
                    );
                }
                Err(problems) => {
                    let body = String::from_utf8(ArmError::of_problems(problems).to_body()).unwrap();
                    check_golden(&format!("{folder_name}/{name}"), &(body + "\n"));
                }
            }
        }
    }
    assert!(count >= 11, "only {count} examples were found");
}

#[test]
fn an_example_is_accepted_once_its_outdated_values_are_mended() {
    let Some(specs) = specs() else { return };
    for version in [ApiVersion::V2024_06_10Preview, ApiVersion::V2026_09_01Preview] {
        let answer = mended_cluster(&specs, version).render(version);
        assert_eq!(answer["properties"]["platform"]["managedResourceGroup"], "nhyhywrxupo");
        assert_eq!(answer["tags"]["key4181"], "leaswtidajsjtgmqawhdl");
        assert_eq!(get(&answer, "properties.console"), None);
    }
}
