//! Unmodified kubectl, every version there is, through what people do with it.

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{Kubectl, kubeconfig, kubectls, region, with_each_kubectl};

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_finds_out_about_the_server() -> Result<()> {
    with_each_kubectl(async |k: &Kubectl| {
        k.shows("version", "Server Version: v1.36").await?;
        k.shows("cluster-info", "is running at").await?;
        let resources = k.ok("api-resources -o name").await?;
        for name in
            ["pods", "deployments.apps", "leases.coordination.k8s.io", "roles.rbac.authorization.k8s.io"]
        {
            ensure!(resources.lines().any(|line| line == name), "{name} is listed in {resources}");
        }
        k.shows("api-resources --namespaced=false --verbs=list,get", "customresourcedefinitions").await?;
        k.shows("api-resources --api-group=apps", "deploy").await?;
        k.shows("api-versions", "apps/v1").await?;
        k.shows("get --raw /healthz", "ok").await?;
        k.shows("get --raw /readyz?verbose", "[+]").await?;
        k.shows("get --raw /api/v1/namespaces/default", "\"kind\":\"Namespace\"").await?;
        k.ok("wait --for=condition=Available apiservice --all --timeout=10s").await?;
        k.fails("get --raw /nope", "NotFound").await?;
        k.fails("get gizmos", "the server doesn't have a resource type \"gizmos\"").await?;
        k.shows("explain deployment.spec.strategy", "RollingUpdate").await?;
        k.shows("explain pod --recursive", "terminationGracePeriodSeconds").await?;
        k.fails("explain deployment.nope", "field \"nope\" does not exist").await?;
        k.fails("top nodes", "Metrics API not available").await?;
        k.ok("cluster-info dump").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_creates_every_common_kind() -> Result<()> {
    with_each_kubectl(async |k: &Kubectl| {
        k.shows("create ns a", "namespace/a created").await?;
        for line in [
            "create configmap cm --from-literal=x=1",
            "create secret generic s --from-literal=p=q",
            "create secret docker-registry pull --docker-server=r --docker-username=u --docker-password=p",
            "create deployment web --image=nginx --replicas=2",
            "create sa bot",
            "create role r --verb=get,list --resource=configmaps",
            "create rolebinding rb --role=r --serviceaccount=a:bot",
            "create quota q --hard=configmaps=10",
            "create service clusterip svc --tcp=80:8080",
            "create service nodeport np --tcp=80:8080",
            "create service loadbalancer lb --tcp=80:8080",
            "create service externalname ext --external-name=example.com",
            "create job j --image=busybox -- echo hi",
            "create cronjob cj --image=busybox --schedule='*/5 * * * *' -- echo hi",
            "create job again --from=cronjob/cj",
            "create ingress i --rule=foo/bar=svc:80",
            "create pdb p --selector=app=web --min-available=1",
            "expose deployment web --port=80",
            "autoscale deployment web --min=1 --max=3",
        ] {
            k.ok(&format!("-n a {line}")).await?;
        }
        k.ok("create clusterrole cr --verb=get --resource=nodes").await?;
        k.ok("create clusterrolebinding crb --clusterrole=cr --user=jane").await?;
        k.ok("create priorityclass pc --value=10").await?;
        // Workloads that name no account get the namespace's own.
        k.until("-n a get sa default -o name", "serviceaccount/default").await?;
        k.ok("-n a run pod --image=nginx --labels=a=b").await?;
        k.shows("-n a get pod pod -o jsonpath='{.spec.serviceAccountName}'", "default").await?;
        k.fails("-n a create configmap cm", "configmaps \"cm\" already exists").await?;
        k.fails("-n nowhere create configmap cm", "namespaces \"nowhere\" not found").await?;
        let all = k.ok("-n a get all -o wide").await?;
        for name in ["pod/pod", "service/np", "deployment.apps/web", "cronjob.batch/cj", "job.batch/j"] {
            ensure!(all.contains(name), "{name} is shown in {all}");
        }
        k.shows("-n a get hpa web", "Deployment/web").await?;
        k.shows("-n a get deployment web", "0/2").await?;
        k.shows("-n a get sa,role,rolebinding,quota,ingress,pdb", "rolebinding.rbac.authorization.k8s.io/rb")
            .await?;
        for (what, wanted) in [
            ("deployment web", "25% max unavailable"),
            ("pod pod", "QoS Class:"),
            ("secret s", "p:  1 bytes"),
            ("sa bot", "Name:"),
            ("rolebinding rb", "ServiceAccount  bot"),
            ("svc svc", "TargetPort:"),
            ("ingress i", "/bar"),
            ("cronjob cj", "*/5 * * * *"),
            ("job j", "Pod Template:"),
            ("hpa web", "Min replicas:"),
            ("pdb p", "Min available:"),
            ("quota q", "Resource"),
            ("cm cm", "x:"),
        ] {
            k.shows(&format!("-n a describe {what}"), wanted).await?;
        }
        k.shows("describe ns a", "Status:").await?;
        k.shows("describe clusterrole view", "pods").await?;
        Ok(())
    })
    .await
}

const ROLE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: a}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}]
";

const TWO: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: b, labels: {app: c}}
data: {x: '1', w: '2'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: b}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: m, image: 'i:1', ports: [{containerPort: 80}]}]}
";

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_applies_and_shows_differences() -> Result<()> {
    with_each_kubectl(async |k: &Kubectl| {
        k.ok("create ns b").await?;
        let one = k.file("one.yaml", TWO)?;
        let two = k.file("two.yaml", &TWO.replace("w: '2'", "z: '3'").replace("i:1", "i:2"))?;
        k.shows(&format!("apply -f {one}"), "deployment.apps/d created").await?;
        let again = k.ok(&format!("apply -f {one}")).await?;
        ensure!(again.matches("unchanged").count() == 2, "nothing changes: {again}");
        ensure!(k.ok(&format!("diff -f {one}")).await?.is_empty(), "nothing differs");
        let differs = k.run(&format!("diff -f {two}")).await?;
        ensure!(!differs.ok && differs.out.contains("-      - image: i:1"), "the image differs: {differs:?}");
        ensure!(differs.out.contains("+  z: \"3\"") && differs.out.contains("-  w: \"2\""), "{differs:?}");
        k.shows(&format!("apply -f {two}"), "configmap/c configured").await?;
        let data = k.ok("-n b get cm c -o jsonpath={.data}").await?;
        ensure!(data == r#"{"x":"1","z":"3"}"#, "what was taken out is gone: {data}");
        k.shows(&format!("apply view-last-applied -f {two}"), "i:2").await?;
        k.shows(&format!("apply --dry-run=server -f {one}"), "(server dry run)").await?;
        k.shows("-n b get cm c -o jsonpath={.data}", r#""z":"3""#).await?;

        k.shows(&format!("apply --server-side -f {two}"), "deployment.apps/d serverside-applied").await?;
        let conflict = k
            .fails(
                &format!("apply --server-side --field-manager=other -f {one}"),
                "Apply failed with 1 conflict",
            )
            .await?;
        ensure!(conflict.contains(r#".spec.template.spec.containers[name="m"].image"#), "{conflict}");
        k.ok(&format!("apply --server-side --field-manager=other --force-conflicts -f {one}")).await?;
        k.shows("-n b get deployment d -o jsonpath={..image}", "i:1").await?;
        let shown = k.ok("-n b get cm c -o yaml --show-managed-fields").await?;
        ensure!(shown.contains("manager: other") && shown.contains("operation: Apply"), "{shown}");
        let hidden = k.ok("-n b get cm c -o yaml").await?;
        ensure!(!hidden.contains("managedFields"), "{hidden}");
        let differs = k.run(&format!("diff --server-side --force-conflicts -f {two}")).await?;
        ensure!(!differs.ok && differs.out.contains("+      - image: i:2"), "{differs:?}");

        let unknown = k.file(
            "unknown.yaml",
            "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: u, namespace: b}, dta: {}}",
        )?;
        k.fails(&format!("apply -f {unknown}"), "strict decoding error: unknown field \"dta\"").await?;
        k.fails(&format!("apply --server-side -f {unknown}"), "field").await?;
        let warned = k.run(&format!("create --validate=warn -f {unknown}")).await?;
        ensure!(warned.ok && warned.err.contains("unknown field \"dta\""), "{warned:?}");
        let wrong = k.file(
            "wrong.yaml",
            &TWO.replace("replicas: 1", "replicas: -1").replace("name: d,", "name: d2,"),
        )?;
        k.fails(&format!("apply -f {wrong}"), "spec.replicas: Invalid value: -1").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_changes_objects_in_every_way() -> Result<()> {
    with_each_kubectl(async |k: &Kubectl| {
        k.ok("create ns b").await?;
        k.apply(TWO).await?;
        k.ok(r#"-n b patch deployment d -p '{"spec":{"template":{"spec":{"containers":[{"name":"m","env":[{"name":"A","value":"1"}]}]}}}}'"#)
            .await?;
        let image = k.ok("-n b get deployment d -o jsonpath={..containers[0].image}{..containers[0].env}").await?;
        ensure!(image == r#"i:1[{"name":"A","value":"1"}]"#, "lists are merged by their keys: {image}");
        k.ok(r#"-n b patch cm c --type=merge -p '{"data":{"y":"2","w":null}}'"#).await?;
        k.ok(r#"-n b patch cm c --type=json -p '[{"op":"test","path":"/data/y","value":"2"},{"op":"remove","path":"/data/y"}]'"#)
            .await?;
        ensure!(k.ok("-n b get cm c -o jsonpath={.data}").await? == r#"{"x":"1"}"#, "both patches are in");
        k.fails(r#"-n b patch cm c --type=json -p '[{"op":"remove","path":"/data/zzz"}]'"#, "invalid").await?;
        k.fails("-n b patch cm nope --type=merge -p '{}'", "configmaps \"nope\" not found").await?;
        k.ok("-n b set image deployment/d m=i:3").await?;
        k.ok("-n b set env deployment/d B=2").await?;
        k.ok("-n b scale deployment d --replicas=5").await?;
        k.fails("-n b scale deployment d --current-replicas=2 --replicas=3", "Expected replicas to be 2, was 5").await?;
        k.shows("-n b get deployment d", "0/5").await?;
        k.ok("-n b label cm c tier=front").await?;
        k.fails("-n b label cm c tier=back", "--overwrite is false").await?;
        k.ok("-n b label cm c tier=back --overwrite").await?;
        k.shows("-n b get cm -l 'tier in (back, middle)' -o name", "configmap/c").await?;
        k.ok("-n b label cm c tier-").await?;
        ensure!(k.ok("-n b get cm -l tier -o name").await?.is_empty(), "the label is gone");
        k.ok("-n b annotate cm c note=hi").await?;
        k.shows("-n b get cm c -o jsonpath={.metadata.annotations.note}", "hi").await?;

        let edit = |script: &str| -> Result<()> {
            use std::os::unix::fs::PermissionsExt as _;
            let path = k.file("editor", &format!("#!/bin/sh\n{script}\n"))?;
            Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
        };
        edit(r#"sed -i 's/x: "1"/x: edited/' "$1""#)?;
        k.shows("-n b edit cm c", "configmap/c edited").await?;
        k.shows("-n b get cm c -o jsonpath={.data.x}", "edited").await?;
        let same = k.run("-n b edit cm c").await?;
        ensure!(same.ok && (same.out + &same.err).contains("no changes made"), "an edit that changes nothing");

        let file = k.file("two.yaml", TWO)?;
        k.shows(&format!("replace -f {file}"), "configmap/c replaced").await?;
        k.shows("-n b get cm c -o jsonpath={.data}", r#""w":"2""#).await?;
        let before = k.ok("-n b get cm c -o jsonpath={.metadata.uid}").await?;
        k.ok(&format!("replace --force -f {file}")).await?;
        ensure!(k.ok("-n b get cm c -o jsonpath={.metadata.uid}").await? != before, "it is another one");
        let stale = k.file("stale.yaml", &TWO.replace("name: c,", "name: c, resourceVersion: '1',"))?;
        k.fails(&format!("replace -f {stale}"), "the object has been modified").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_what_it_is_asked_for() -> Result<()> {
    with_each_kubectl(async |k: &Kubectl| {
        k.ok("create ns g").await?;
        for (name, value) in [("c", "2"), ("a", "3"), ("b", "1")] {
            k.ok(&format!("-n g create cm {name} --from-literal=order={value}")).await?;
        }
        k.until("-n g get cm kube-root-ca.crt -o name", "kube-root-ca.crt").await?;
        let names = k.ok("-n g get cm -o jsonpath='{.items[*].metadata.name}'").await?;
        ensure!(names == "a b c kube-root-ca.crt", "{names}");
        let sorted = k
            .ok("-n g get cm a b c --sort-by=.data.order -o custom-columns=N:.metadata.name --no-headers")
            .await?;
        ensure!(sorted.split_whitespace().eq(["b", "c", "a"]), "{sorted}");
        let chunked = k.ok("-n g get cm --chunk-size=1 -o name").await?;
        ensure!(chunked.lines().count() == 4, "{chunked}");
        k.shows("get cm -A", "extension-apiserver-authentication").await?;
        k.shows("-n g get cm --field-selector metadata.name=b -o name", "configmap/b").await?;
        k.ok("-n g create secret generic s").await?;
        k.shows("-n g get secret --field-selector type=Opaque -o name", "secret/s").await?;
        k.shows("get ns --field-selector status.phase=Active", "kube-system").await?;
        k.fails("-n g get cm --field-selector spec.x=y", "\"spec.x\" is not a known field selector").await?;
        k.fails("-n g get cm -l a==b=c", "found '=', expected: ',' or 'end of string'").await?;
        let json: Value = serde_json::from_str(&k.ok("-n g get cm a -o json").await?)?;
        ensure!(json["kind"] == "ConfigMap" && json["data"]["order"] == "3", "{json}");
        k.shows("-n g get cm a -o yaml", "order: \"3\"").await?;
        k.shows("-n g get cm a --show-labels", "<none>").await?;
        k.shows("-n g get cm -o go-template='{{range .items}}{{.metadata.name}};{{end}}'", "a;b;c;").await?;
        k.shows("-n g get cm a -o wide --show-kind", "configmap/a").await?;
        k.ok("-n g wait --for=jsonpath={.data.order}=3 cm/a --timeout=10s").await?;
        k.fails("-n g wait --for=condition=Ready cm/a --timeout=1s", "timed out").await?;
        k.fails("-n g get cm zzz", "configmaps \"zzz\" not found").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_follows_changes_while_they_happen() -> Result<()> {
    with_each_kubectl(async |k: &Kubectl| {
        k.ok("create ns w").await?;
        let mut watching = k.command("-n w get cm -w --output-watch-events --no-headers -l app=x").spawn()?;
        let stdout = watching.stdout.take().context("its output")?;
        k.ok("-n w create cm other").await?;
        k.ok("-n w create cm one").await?;
        k.ok("-n w label cm one app=x").await?;
        k.ok("-n w annotate cm one note=hi").await?;
        k.ok("-n w label cm one app-").await?;
        let mut lines = BufReader::new(stdout).lines();
        let mut seen = Vec::new();
        while seen.len() < 3 {
            let line =
                tokio::time::timeout(wait::DEADLINE, lines.next_line()).await??.context("more events")?;
            seen.push(line.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
        }
        ensure!(seen == ["ADDED one", "MODIFIED one", "DELETED one"], "{seen:?}");
        watching.kill().await?;

        let mut table = k.command("-n w get cm -w").spawn()?;
        let mut lines = BufReader::new(table.stdout.take().context("its output")?).lines();
        let mut header =
            tokio::time::timeout(wait::DEADLINE, lines.next_line()).await??.context("a header")?;
        ensure!(header.starts_with("NAME"), "{header}");
        k.ok("-n w create cm late").await?;
        while !header.starts_with("late") {
            header = tokio::time::timeout(wait::DEADLINE, lines.next_line()).await??.context("a row")?;
        }
        table.kill().await?;

        let waiting = k.command("-n w wait --for=delete cm/late --timeout=30s").spawn()?;
        k.ok("-n w delete cm late").await?;
        let ended = tokio::time::timeout(wait::DEADLINE, waiting.wait_with_output()).await??;
        ensure!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_deletes_with_every_policy() -> Result<()> {
    with_each_kubectl(async |k: &Kubectl| {
        k.ok("create ns d").await?;
        for policy in ["background", "foreground", "orphan"] {
            k.ok(&format!("-n d create cm owner-{policy}")).await?;
            let uid = k.ok(&format!("-n d get cm owner-{policy} -o jsonpath={{.metadata.uid}}")).await?;
            k.apply(&format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: child-{policy}, namespace: d, ownerReferences: [\
                 {{apiVersion: v1, kind: ConfigMap, name: owner-{policy}, uid: {uid}, blockOwnerDeletion: true}}]}}}}"
            ))
            .await?;
            k.shows(&format!("-n d delete cm owner-{policy} --cascade={policy}"), "deleted").await?;
            k.fails(&format!("-n d get cm owner-{policy}"), "not found").await?;
        }
        k.fails("-n d get cm child-foreground", "not found").await?;
        k.ok("-n d wait --for=delete cm/child-background --timeout=10s").await?;
        let left = k.ok("-n d get cm child-orphan -o jsonpath={.metadata.ownerReferences}").await?;
        ensure!(left.is_empty(), "the orphan has no owner: {left}");

        k.ok("-n d create cm held").await?;
        k.ok(r#"-n d patch cm held --type=merge -p '{"metadata":{"finalizers":["test.aro.dev/hold"]}}'"#).await?;
        k.ok("-n d delete cm held --wait=false").await?;
        k.shows("-n d get cm held -o jsonpath={.metadata.deletionTimestamp}", "T").await?;
        k.fails("-n d delete cm held --timeout=1s", "timed out").await?;
        k.ok("delete ns d --wait=false").await?;
        k.until("get ns d -o jsonpath={.status.conditions}", "test.aro.dev/hold in 1 resource instances").await?;
        k.fails("-n d create cm late", "because it is being terminated").await?;
        k.ok(r#"-n d patch cm held --type=merge -p '{"metadata":{"finalizers":null}}'"#).await?;
        k.ok("wait --for=delete ns/d --timeout=20s").await?;
        k.fails("get ns d", "namespaces \"d\" not found").await?;

        k.ok("create ns e").await?;
        for name in ["a", "b", "c"] {
            k.ok(&format!("-n e create cm {name}")).await?;
        }
        k.ok("-n e label cm a b x=y").await?;
        k.ok("-n e delete cm -l x=y").await?;
        let rest = k.ok("-n e get cm -o name").await?;
        ensure!(rest.contains("configmap/c") && !rest.contains("configmap/a"), "{rest}");
        k.ok("-n e delete cm --all").await?;
        // What every namespace has comes back.
        k.until("-n e get cm -o name", "configmap/kube-root-ca.crt").await?;
        k.ok("-n e delete cm nope --ignore-not-found").await?;
        k.fails("-n e delete cm nope", "not found").await?;
        k.fails("delete ns kube-system", "forbidden").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_asks_who_it_is_and_what_it_may() -> Result<()> {
    with_each_kubectl(async |k: &Kubectl| {
        k.shows("auth whoami", "kubernetes-admin").await?;
        let whoami = k.ok("auth whoami --as=jane --as-group=devs").await?;
        ensure!(whoami.contains("jane") && whoami.contains("devs"), "{whoami}");
        k.ok("create ns a").await?;
        k.ok("-n a create sa bot").await?;
        k.ok("-n a create role r --verb=get,list --resource=configmaps").await?;
        k.ok("-n a create rolebinding rb --role=r --serviceaccount=a:bot").await?;
        let role = k.file("role.yaml", ROLE)?;
        k.shows(&format!("auth reconcile -f {role}"), "reconciled").await?;
        let bot = "--as=system:serviceaccount:a:bot";
        k.shows("auth can-i '*' '*'", "yes").await?;
        k.shows(&format!("auth can-i list cm -n a {bot}"), "yes").await?;
        let no = k.run(&format!("auth can-i delete cm -n a {bot}")).await?;
        ensure!(!no.ok && no.out.starts_with("no"), "{no:?}");
        k.shows(&format!("auth can-i --list -n a {bot}"), "[get list watch]").await?;
        k.fails(
            &format!("-n a get secrets {bot}"),
            r#"secrets is forbidden: User "system:serviceaccount:a:bot" cannot list resource "secrets" in API group "" in the namespace "a""#,
        )
        .await?;

        let token = k.ok("-n a create token bot --duration=10m").await?;
        let server = k.ok("config view --minify -o jsonpath={.clusters[0].cluster.server}").await?;
        let name = k.ok("config view --minify -o jsonpath={.clusters[0].cluster.tls-server-name}").await?;
        let plain = k.file("plain", "{apiVersion: v1, kind: Config}")?;
        let alone = format!(
            "--kubeconfig={plain} --context= --server={server} --tls-server-name={name} --insecure-skip-tls-verify"
        );
        let said = k.ok(&format!("{alone} --token={} auth whoami", token.trim())).await?;
        ensure!(said.contains("system:serviceaccount:a:bot"), "{said}");
        k.fails(&format!("{alone} --token={} -n a get secrets", token.trim()), "forbidden").await?;
        k.fails(&format!("{alone} --token=nonsense get ns"), "Unauthorized").await?;
        k.fails("-n a create token nobody", "serviceaccounts \"nobody\" not found").await?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_gets_certificates_approved_and_denied() -> Result<()> {
    with_each_kubectl(async |k: &Kubectl| {
        let path = |name: &str| k.home.path().join(name).display().to_string();
        let made = tokio::process::Command::new("openssl")
            .args(["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
            .args(["-subj", "/O=devs/CN=jane", "-keyout", &path("key.pem"), "-out", &path("request.pem")])
            .output()
            .await?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let request = STANDARD.encode(std::fs::read(path("request.pem"))?);
        for name in ["good", "bad"] {
            k.apply(&format!(
                "{{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {{name: {name}}}, \
                 spec: {{request: {request}, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}}}}"
            ))
            .await?;
        }
        k.shows("get csr", "Pending").await?;
        k.shows("certificate approve good", "approved").await?;
        k.shows("certificate deny bad", "denied").await?;
        k.until("get csr good", "Approved,Issued").await?;
        k.shows("get csr bad", "Denied").await?;
        k.shows("describe csr good", "Common Name:    jane").await?;
        let issued = k.ok("get csr good -o jsonpath={.status.certificate}").await?;
        std::fs::write(path("issued.pem"), STANDARD.decode(issued)?)?;
        let (certificate, key) = (path("issued.pem"), path("key.pem"));
        let own = format!("--client-certificate={certificate} --client-key={key} --embed-certs");
        let mine = k.file("mine", &k.ok("config view --raw --minify").await?)?;
        k.ok(&format!("--kubeconfig={mine} config set-credentials jane {own}")).await?;
        let said = k.ok(&format!("--kubeconfig={mine} --user=jane auth whoami")).await?;
        ensure!(said.contains("jane") && said.contains("devs"), "{said}");
        k.fails(&format!("--kubeconfig={mine} --user=jane get ns"), "User \"jane\" cannot list").await?;
        Ok(())
    })
    .await
}

/// kubectl validates what has no PATCH by the document of `/openapi/v2`, which it reads in protobuf only.
#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_created_although_kubectl_validates_it_by_openapi_v2() -> Result<()> {
    with_each_kubectl(async |k| {
        let attributes = "    verb: delete\n    resource: nodes\n";
        let review = k.file(
            "review",
            &format!(
                "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nspec:\n  resourceAttributes:\n{attributes}"
            ),
        )?;
        let create = format!("create -f {review} --validate=true -o jsonpath={{.status.allowed}}");
        let said = k.ok(&create).await?;
        ensure!(said == "true", "{said}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_kubeconfig_reaches_every_cluster_of_a_region() -> Result<()> {
    let programs = kubectls();
    if programs.is_empty() {
        return Ok(());
    }
    let region = region(&["svc", "mgmt-1"]).await?;
    for (index, program) in programs.iter().enumerate() {
        let svc = Kubectl::new(program, &kubeconfig(&region), "svc")?;
        let mgmt = Kubectl::new(program, &kubeconfig(&region), "mgmt-1")?;
        let contexts = svc.ok("config get-contexts -o name").await?;
        ensure!(contexts.lines().eq(["mgmt-1", "svc"]), "{contexts}");
        svc.shows("config current-context", "svc").await?;
        svc.ok(&format!("create ns only-here-{index}")).await?;
        mgmt.fails(&format!("get ns only-here-{index}"), "not found").await?;
    }
    Ok(())
}
