//! Definitions of custom types as others publish them, and objects of these types.

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;

use crate::support::{Kubectl, kubectls, specs};
use crate::watching::Inside;

const HOSTED_CLUSTER: &str = "
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: hc, namespace: clusters}
spec:
  release: {image: 'quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64'}
  pullSecret: {name: pull}
  sshKey: {name: ssh}
  platform: {type: None}
  networking:
    clusterNetwork: [{cidr: 10.132.0.0/14}]
    serviceNetwork: [{cidr: 172.31.0.0/16}]
  etcd:
    managementType: Managed
    managed: {storage: {type: PersistentVolume, persistentVolume: {size: 8Gi}}}
  services:
  - {service: APIServer, servicePublishingStrategy: {type: LoadBalancer}}
  - {service: OAuthServer, servicePublishingStrategy: {type: Route}}
  - {service: Konnectivity, servicePublishingStrategy: {type: Route}}
  - {service: Ignition, servicePublishingStrategy: {type: Route}}
";

const NODE_POOL: &str = "
apiVersion: hypershift.openshift.io/v1beta1
kind: NodePool
metadata: {name: np, namespace: clusters}
spec:
  clusterName: hc
  replicas: 2
  release: {image: 'quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64'}
  platform: {type: None}
  management: {upgradeType: Replace}
";

const WORK: &str = "
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: mw, namespace: clusters}
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: inner, namespace: default}, data: {a: b}}
  deleteOption: {propagationPolicy: Foreground}
";

async fn started() -> Result<Option<(Inside, Vec<Kubectl>)>> {
    let programs = kubectls();
    if programs.is_empty() {
        return Ok(None);
    }
    let inside = Inside::start(&[]).await?;
    let config = inside.kubeconfig()?;
    let kubectls =
        programs.iter().map(|program| Kubectl::new(program, &config, "one")).collect::<Result<_>>()?;
    Ok(Some((inside, kubectls)))
}

#[tokio::test(flavor = "multi_thread")]
async fn published_definitions_install_and_their_objects_are_checked() -> Result<()> {
    let (Some(hypershift), Some(ocm)) = (specs("hypershift-crds"), specs("ocm-crds")) else { return Ok(()) };
    let Some((inside, kubectls)) = started().await? else { return Ok(()) };
    let k = kubectls.last().context("a kubectl")?;
    for folder in [&hypershift, &ocm] {
        k.shows(&format!("apply --server-side -f {}", folder.display()), "serverside-applied").await?;
    }
    // kubectl stumbles over a definition whose status nobody has written yet, on a real server, too.
    aro_fixtures::wait::until("every definition to have conditions", || async {
        let counts = k.ok("get crd -o jsonpath={range.items[*]}{.status.conditions[*].type};{end}").await?;
        Ok(counts.split(';').rev().skip(1).all(|types| !types.is_empty()).then_some(()))
    })
    .await?;
    k.ok("wait --for=condition=Established crd --all --timeout=60s").await?;
    let names = k.ok("get crd -o name").await?;
    ensure!(names.lines().count() == 23, "{names}");
    let cluster = inside.cluster()?;
    let types = wait::until("every definition to be served", || async {
        let types = cluster.types();
        let mut plurals: Vec<String> =
            types.custom().map(|served| served.resource.group_resource().to_string()).collect();
        plurals.dedup();
        plurals.sort();
        plurals.dedup();
        Ok((plurals.len() == 23).then_some(types))
    })
    .await?;
    for served in types.custom() {
        let custom = served.custom.as_ref().context("a custom type")?;
        ensure!(custom.compiled.unenforced().is_empty(), "{:?}", custom.compiled.unenforced());
    }
    // Applying them once more changes nothing.
    let versions = "get crd -o jsonpath={.items[*].metadata.resourceVersion}";
    let before = k.ok(versions).await?;
    k.ok(&format!("apply --server-side -f {}", hypershift.display())).await?;
    ensure!(k.ok(versions).await? == before, "a second apply writes nothing");

    k.ok("create ns clusters").await?;
    for k in &kubectls {
        for text in [HOSTED_CLUSTER, NODE_POOL, WORK] {
            k.apply(text).await?;
            let again = k.apply(text).await?;
            ensure!(again.contains("unchanged"), "{again}");
        }
        k.shows(
            "-n clusters get hostedclusters,nodepools,manifestworks",
            "hostedcluster.hypershift.openshift.io/hc",
        )
        .await?;
        k.shows("-n clusters get hc hc -o jsonpath={.spec.olmCatalogPlacement}", "management").await?;
        k.shows("-n clusters describe nodepool np", "Upgrade Type:").await?;
        k.shows("explain hostedcluster.spec.etcd.managed", "storage").await?;
        k.shows("explain nodepool --recursive", "upgradeType").await?;
        k.shows("explain manifestwork.spec.workload", "manifests").await?;
        k.shows("-n clusters scale nodepool np --replicas=4", "scaled").await?;
        k.shows("-n clusters get nodepool np -o jsonpath={.spec.replicas}", "4").await?;
        for (text, from, to, wanted) in [
            (
                HOSTED_CLUSTER,
                "managementType: Managed",
                "managementType: Elsewhere",
                "spec.etcd.managementType: Unsupported value: \"Elsewhere\": supported values: \"Managed\", \"Unmanaged\"",
            ),
            (HOSTED_CLUSTER, "cidr: 10.132.0.0/14", "cidr: nonsense", "spec.networking.clusterNetwork"),
            (HOSTED_CLUSTER, "  pullSecret: {name: pull}\n", "", "spec.pullSecret: Required value"),
            (HOSTED_CLUSTER, "platform: {type: None}", "platform: {type: 7}", "spec.platform.type"),
            (NODE_POOL, "clusterName: hc", "clusterName: other", "ClusterName is immutable"),
            (
                NODE_POOL,
                "upgradeType: Replace",
                "upgradeType: Never",
                "spec.management.upgradeType: Unsupported value: \"Never\"",
            ),
            (
                WORK,
                "propagationPolicy: Foreground",
                "propagationPolicy: Sometimes",
                "spec.deleteOption.propagationPolicy: Unsupported value: \"Sometimes\"",
            ),
        ] {
            let said = k.feed("apply -f -", &text.replace(from, to)).await?;
            ensure!(!said.ok, "{to} was accepted");
            ensure!(said.err.contains(wanted), "{to}: {}", said.err);
        }
        let said = k.feed("apply -f -", &WORK.replace("deleteOption:", "deleteOptions:")).await?;
        ensure!(!said.ok && said.err.contains("unknown field \"spec.deleteOptions\""), "{said:?}");
        k.ok("-n clusters delete hostedcluster,nodepool,manifestwork --all").await?;
    }
    inside.stop().await
}

const WIDGETS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.aro.dev}
spec:
  group: test.aro.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        description: A widget.
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How large it is.}
              color: {type: string, default: red, enum: [red, green]}
              big: {type: boolean}
            x-kubernetes-validations:
            - {rule: '!has(self.big) || !self.big || self.size > 5', message: big widgets are larger than five}
          status: {type: object, properties: {size: {type: integer}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn discovery_follows_definitions_as_they_come_and_go() -> Result<()> {
    let Some((inside, kubectls)) = started().await? else { return Ok(()) };
    for k in &kubectls {
        k.fails("get widgets", "the server doesn't have a resource type \"widgets\"").await?;
        k.apply(WIDGETS).await?;
        k.ok("wait --for=condition=Established crd/widgets.test.aro.dev --timeout=30s").await?;
        k.until("api-resources --api-group=test.aro.dev", "wd").await?;
        k.apply("{apiVersion: test.aro.dev/v1, kind: Widget, metadata: {name: w}, spec: {size: 3}}").await?;
        k.shows("get wd", "SIZE").await?;
        k.shows("get all", "widget.test.aro.dev/w").await?;
        k.shows("get wd --field-selector spec.color=red -o name", "widget.test.aro.dev/w").await?;
        ensure!(k.ok("get wd --field-selector spec.color=green -o name").await?.is_empty(), "it is red");
        k.shows("explain widget.spec.size", "How large it is.").await?;
        k.shows("explain widget --recursive", "color").await?;
        k.shows("scale widget w --replicas=7", "scaled").await?;
        k.fails(
            r#"patch wd w --type=merge -p '{"spec":{"size":2,"big":true}}'"#,
            "big widgets are larger than five",
        )
        .await?;
        k.fails(
            r#"patch wd w --type=merge -p '{"spec":{"color":"blue"}}'"#,
            "supported values: \"red\", \"green\"",
        )
        .await?;
        k.shows(
            r#"patch wd w --subresource=status --type=merge -p '{"status":{"size":1},"spec":{"size":99}}'"#,
            "patched",
        )
        .await?;
        k.shows("get wd w -o jsonpath={.spec.size}/{.status.size}", "7/1").await?;
        let away = k
            .feed(
                "diff -f -",
                "---\n{apiVersion: test.aro.dev/v1, kind: Widget, metadata: {name: w}, spec: {size: 8}}",
            )
            .await?;
        ensure!(!away.ok && away.out.contains("+  size: 8"), "{away:?}");
        k.ok("delete crd widgets.test.aro.dev").await?;
        k.fails("get --raw /apis/test.aro.dev/v1/namespaces/default/widgets", "NotFound").await?;
        let gone = k.run("api-resources --api-group=test.aro.dev --cached=false -o name").await?;
        ensure!(gone.out.is_empty(), "{gone:?}");
        // Objects went with it: they are not back when the type is.
        k.apply(WIDGETS).await?;
        k.ok("wait --for=condition=Established crd/widgets.test.aro.dev --timeout=30s").await?;
        k.until("get --raw /apis/test.aro.dev/v1/namespaces/default/widgets", "\"items\":[]").await?;
        k.ok("delete crd widgets.test.aro.dev").await?;
    }
    inside.stop().await
}
