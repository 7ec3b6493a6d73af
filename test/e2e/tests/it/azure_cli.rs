//! The Azure CLI, unmodified, against a region's cloud: through the proxy, under Azure's own host names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_arm::hcp::version::ApiVersion;
use aro_fixtures::{Names, cluster_body};
use aro_harness::{Process, StoreChoice};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::clients;

/// The longest that a command may take; most take half a second.
const DEADLINE: Duration = Duration::from_secs(90);

/// A region and a shell in its environment.
struct Shell {
    region: Process,
    az: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Shell {
    async fn open() -> Result<Self> {
        let az = clients::installed("az")?.join("az/bin/az");
        let region = Process::start(StoreChoice::Embedded).await?;
        let printed = region.second("env")?;
        ensure!(printed.status.success(), "aro env: {}", String::from_utf8_lossy(&printed.stderr));
        let text = String::from_utf8(printed.stdout)?;
        let exports = text.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
        let environment: BTreeMap<String, String> =
            exports.map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned())).collect();
        ensure!(environment.contains_key("AZURE_CLIENT_SECRET"), "aro env prints the account");
        Ok(Self { region, az, environment })
    }

    fn variable(&self, name: &str) -> Result<&str> {
        Ok(self.environment.get(name).with_context(|| format!("{name} is exported"))?.as_str())
    }

    async fn run(&self, arguments: &[&str]) -> Result<Output> {
        let output = Command::new(&self.az)
            .args(arguments)
            .args(["--output", "json", "--only-show-errors"])
            .envs(&self.environment)
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true)
            .output();
        let finished = tokio::time::timeout(DEADLINE, output).await;
        Ok(finished.with_context(|| format!("az {} does not end", arguments.join(" ")))??)
    }

    /// Runs a command that succeeds.
    async fn az(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.run(arguments).await?;
        ensure!(
            output.status.success(),
            "az {}: {}\n{}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr),
            self.region.log_text().lines().rev().take(5).collect::<Vec<_>>().join("\n")
        );
        match output.stdout.is_empty() {
            true => Ok(Value::Null),
            false => Ok(serde_json::from_slice(&output.stdout)?),
        }
    }

    /// Runs a command that is refused with a code.
    async fn refused(&self, arguments: &[&str], code: &str) -> Result<()> {
        let output = self.run(arguments).await?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && text.contains(code), "az {}: {text}", arguments.join(" "));
        Ok(())
    }

    async fn log_in(&self) -> Result<()> {
        let (client, secret) = (self.variable("AZURE_CLIENT_ID")?, self.variable("AZURE_CLIENT_SECRET")?);
        let tenant = self.variable("AZURE_TENANT_ID")?;
        self.az(&["login", "--service-principal", "-u", client, "-p", secret, "--tenant", tenant]).await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn az_manages_a_customers_resources() -> Result<()> {
    let shell = Shell::open().await?;
    shell.refused(&["group", "list"], "az login").await?;
    shell.log_in().await?;
    let account = shell.az(&["account", "show"]).await?;
    assert_eq!(account["id"], shell.variable("AZURE_SUBSCRIPTION_ID")?);
    shell.az(&["group", "create", "-n", "g", "-l", "westus3", "--tags", "a=b"]).await?;

    shell.az(&["network", "nsg", "create", "-g", "g", "-n", "nsg"]).await?;
    let vnet = ["network", "vnet", "create", "-g", "g", "-n", "v", "--address-prefix", "10.0.0.0/16"];
    shell.az(&[&vnet[..], &["--subnet-name", "s", "--subnet-prefix", "10.0.0.0/24"]].concat()).await?;
    let subnet = ["network", "vnet", "subnet", "update", "-g", "g", "--vnet-name", "v", "-n", "s"];
    shell.az(&[&subnet[..], &["--network-security-group", "nsg"]].concat()).await?;
    let nsg = ["network", "nsg", "delete", "-g", "g", "-n", "nsg"];
    shell.refused(&nsg, "InUseNetworkSecurityGroupCannotBeDeleted").await?;
    shell.az(&["network", "public-ip", "create", "-g", "g", "-n", "ip", "--sku", "Standard"]).await?;
    shell.refused(&["network", "lb", "show", "-g", "g", "-n", "none"], "ResourceNotFound").await?;

    shell.az(&["network", "dns", "zone", "create", "-g", "g", "-n", "example.com"]).await?;
    let record = ["network", "dns", "record-set", "a", "add-record", "-g", "g", "-z", "example.com"];
    shell.az(&[&record[..], &["-n", "www", "-a", "192.0.2.7"]].concat()).await?;
    assert_eq!(resolve(&shell.region, "www.example.com").await?, "192.0.2.7");

    let identity = shell.az(&["identity", "create", "-g", "g", "-n", "i"]).await?;
    let credential =
        ["identity", "federated-credential", "create", "-g", "g", "--identity-name", "i", "-n", "f"];
    let subject = ["--issuer", "https://issuer.example.com", "--subject", "system:serviceaccount:a:b"];
    shell.az(&[&credential[..], &subject].concat()).await?;
    let principal = identity["principalId"].as_str().context("a principal")?;
    let scope = format!("/subscriptions/{}/resourceGroups/g", shell.variable("AZURE_SUBSCRIPTION_ID")?);
    let assign = ["role", "assignment", "create", "--assignee-object-id", principal, "--role", "Reader"];
    shell
        .az(&[&assign[..], &["--assignee-principal-type", "ServicePrincipal", "--scope", &scope]].concat())
        .await?;
    let assigned = shell.az(&["role", "assignment", "list", "--scope", &scope]).await?;
    assert_eq!(assigned.as_array().map(Vec::len), Some(1), "{assigned}");
    let role = shell.az(&["role", "definition", "list", "--name", "Contributor"]).await?;
    assert_eq!(role[0]["roleName"], "Contributor");

    let network = ["-g", "g", "-n", "v", "--resource-type", "Microsoft.Network/virtualNetworks"];
    shell.az(&[&["resource", "tag", "--tags", "c=d"], &network[..]].concat()).await?;
    let shown = shell.az(&[&["resource", "show"], &network[..]].concat()).await?;
    assert_eq!(shown["tags"], json!({"c": "d"}));
    let listed = shell.az(&["resource", "list", "-g", "g"]).await?;
    assert_eq!(listed.as_array().map(Vec::len), Some(5), "{listed}");
    shell.az(&["group", "delete", "-n", "g", "--yes"]).await?;
    assert_eq!(shell.az(&["group", "list"]).await?, json!([]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn az_uses_vaults_and_blobs_with_roles_for_their_data() -> Result<()> {
    let shell = Shell::open().await?;
    shell.log_in().await?;
    shell.az(&["group", "create", "-n", "g", "-l", "westus3"]).await?;
    shell.az(&["keyvault", "create", "-g", "g", "-n", "kv-aro-test", "-l", "westus3"]).await?;
    let set = ["keyvault", "secret", "set", "--vault-name", "kv-aro-test", "-n", "s", "--value", "hidden"];
    shell.refused(&set, "Forbidden").await?;
    let scope = format!("/subscriptions/{}/resourceGroups/g", shell.variable("AZURE_SUBSCRIPTION_ID")?);
    let client = shell.variable("AZURE_CLIENT_ID")?;
    for role in ["Key Vault Administrator", "Storage Blob Data Contributor"] {
        shell
            .az(&["role", "assignment", "create", "--assignee", client, "--role", role, "--scope", &scope])
            .await?;
    }
    shell.az(&set).await?;
    let vault = ["--vault-name", "kv-aro-test"];
    let shown = shell.az(&[&["keyvault", "secret", "show", "-n", "s"], &vault[..]].concat()).await?;
    assert_eq!(shown["value"], "hidden");
    shell.az(&[&["keyvault", "key", "create", "-n", "k", "--kty", "RSA"], &vault[..]].concat()).await?;
    let policy = shell.az(&["keyvault", "certificate", "get-default-policy"]).await?.to_string();
    shell
        .az(&[&["keyvault", "certificate", "create", "-n", "c", "-p", &policy], &vault[..]].concat())
        .await?;
    let listed = shell.az(&[&["keyvault", "secret", "list"], &vault[..]].concat()).await?;
    assert!(listed.as_array().is_some_and(|all| !all.is_empty()), "{listed}");

    let account = ["storage", "account", "create", "-g", "g", "-n", "aroteststorage", "-l", "westus3"];
    shell.az(&[&account[..], &["--sku", "Standard_LRS"]].concat()).await?;
    let by_token = ["--account-name", "aroteststorage", "--auth-mode", "login"];
    shell.az(&[&["storage", "container", "create", "-n", "docs"], &by_token[..]].concat()).await?;
    let directory = tempfile::tempdir()?;
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    std::fs::write(&from, "content")?;
    let (from, to) = (from.display().to_string(), to.display().to_string());
    let blob = ["-c", "docs", "-n", "a/b.txt"];
    shell.az(&[&["storage", "blob", "upload", "-f", &from], &blob[..], &by_token].concat()).await?;
    shell.az(&[&["storage", "blob", "download", "-f", &to], &blob[..], &by_token].concat()).await?;
    assert_eq!(std::fs::read_to_string(&to)?, "content");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn az_reaches_the_resource_provider_through_arm() -> Result<()> {
    let shell = Shell::open().await?;
    shell.log_in().await?;
    let names =
        Names { subscription: shell.variable("AZURE_SUBSCRIPTION_ID")?.to_owned(), group: "g".to_owned() };
    let version = ApiVersion::V2026_10_01;
    let path = format!("{}?api-version={}", names.cluster("c"), version.as_str());
    let directory = tempfile::tempdir()?;
    let body = directory.path().join("cluster.json");
    std::fs::write(&body, cluster_body(&names, "c", version).to_string())?;
    let body = format!("@{}", body.display());
    let put = ["rest", "--method", "put", "--url", &path, "--body", &body];
    shell.refused(&put, "ResourceGroupNotFound").await?;
    shell.az(&["group", "create", "-n", "g", "-l", "westus3"]).await?;
    let created = shell.az(&put).await?;
    assert_eq!(created["properties"]["provisioningState"], "Accepted");
    let show = ["resource", "show", "--ids", &names.cluster("c"), "--api-version", version.as_str()];
    assert_eq!(shell.az(&show).await?["name"], "c");
    // `az resource delete --no-wait` of this version waits all the same.
    shell.az(&["rest", "--method", "delete", "--url", &path]).await?;
    assert_eq!(shell.az(&show).await?["properties"]["provisioningState"], "Deleting");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_is_refused_and_the_proxy_relays_nothing_else() -> Result<()> {
    let shell = Shell::open().await?;
    let (client, tenant) = (shell.variable("AZURE_CLIENT_ID")?, shell.variable("AZURE_TENANT_ID")?);
    let login = ["login", "--service-principal", "-u", client, "-p", "wrong", "--tenant", tenant];
    shell.refused(&login, "AADSTS7000215").await?;
    let refused = Command::new("curl")
        .args(["-sS", "--proxytunnel", "https://example.com/"])
        .envs(&shell.environment)
        .output()
        .await?;
    let text = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success() && text.contains("403"), "{text}");
    Ok(())
}

/// Asks the region's DNS server for an address.
async fn resolve(region: &Process, name: &str) -> Result<String> {
    let server = region.addr("dns").context("the DNS server listens")?;
    aro_fixtures::wait::until("the record to be served", || async {
        let output = Command::new("dig")
            .args([
                &format!("@{}", server.ip()),
                "-p",
                &server.port().to_string(),
                "+short",
                "+time=2",
                name,
                "A",
            ])
            .output()
            .await
            .context("run dig")?;
        let text = String::from_utf8(output.stdout)?.trim().to_owned();
        Ok(Some(text).filter(|text| !text.is_empty() && !text.starts_with(';')))
    })
    .await
}
