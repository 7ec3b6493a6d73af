//! The Azure CLI, unmodified, against a region's cloud: through the proxy, under Azure's own host names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Output, Stdio};
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

/// The environment that `aro env` prints.
pub fn environment(region: &Process) -> Result<BTreeMap<String, String>> {
    let printed = region.second("env")?;
    ensure!(printed.status.success(), "aro env: {}", String::from_utf8_lossy(&printed.stderr));
    let text = String::from_utf8(printed.stdout)?;
    let exports = text.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
    let environment: BTreeMap<String, String> =
        exports.map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned())).collect();
    ensure!(environment.contains_key("AZURE_CLIENT_SECRET"), "aro env prints the account");
    Ok(environment)
}

impl Shell {
    async fn open() -> Result<Self> {
        let az = clients::installed("az")?.join("az/bin/az");
        let region = Process::start(StoreChoice::Embedded).await?;
        let environment = environment(&region)?;
        Ok(Self { region, az, environment })
    }

    fn variable(&self, name: &str) -> Result<&str> {
        Ok(self.environment.get(name).with_context(|| format!("{name} is exported"))?.as_str())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.az);
        command
            .args(arguments)
            .args(["--output", "json", "--only-show-errors"])
            .envs(&self.environment)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Result<Output> {
        let finished = tokio::time::timeout(DEADLINE, self.command(arguments).output()).await;
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
    let own =
        json!({"Name": "Viewer of networks", "Description": "", "Actions": ["Microsoft.Network/*/read"],
        "AssignableScopes": [scope]})
        .to_string();
    shell.az(&["role", "definition", "create", "--role-definition", &own]).await?;
    let custom = shell.az(&["role", "definition", "list", "--name", "Viewer of networks"]).await?;
    assert_eq!(custom[0]["permissions"][0]["actions"], json!(["Microsoft.Network/*/read"]), "{custom}");
    shell.az(&["role", "assignment", "delete", "--assignee", principal, "--scope", &scope]).await?;
    assert_eq!(shell.az(&["role", "assignment", "list", "--scope", &scope]).await?, json!([]));
    let credentials = ["identity", "federated-credential", "list", "-g", "g", "--identity-name", "i"];
    assert_eq!(shell.az(&credentials).await?[0]["name"], "f");

    let ip = format!("{scope}/providers/Microsoft.Network/publicIPAddresses/ip");
    let balancer = format!("{scope}/providers/Microsoft.Network/loadBalancers/lb?api-version=2024-07-01");
    let body = json!({"location": "westus3", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [{"name": "f", "properties": {"publicIPAddress": {"id": ip}}}]}})
    .to_string();
    shell.az(&["rest", "--method", "put", "--url", &balancer, "--body", &body]).await?;
    let shown = shell.az(&["network", "lb", "show", "-g", "g", "-n", "lb"]).await?;
    assert_eq!(shown["frontendIPConfigurations"][0]["publicIPAddress"]["id"], ip, "{shown}");

    let network = ["-g", "g", "-n", "v", "--resource-type", "Microsoft.Network/virtualNetworks"];
    shell.az(&[&["resource", "tag", "--tags", "c=d"], &network[..]].concat()).await?;
    let shown = shell.az(&[&["resource", "show"], &network[..]].concat()).await?;
    assert_eq!(shown["tags"], json!({"c": "d"}));
    let listed = shell.az(&["resource", "list", "-g", "g"]).await?;
    assert_eq!(listed.as_array().map(Vec::len), Some(6), "{listed}");
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
    let cluster = cluster_body(&names, "c", version);
    std::fs::write(&body, cluster.to_string())?;
    let body = format!("@{}", body.display());
    let put = ["rest", "--method", "put", "--url", &path, "--body", &body];
    shell.refused(&put, "ResourceGroupNotFound").await?;
    shell.az(&["group", "create", "-n", "g", "-l", "westus3"]).await?;
    let created = shell.az(&put).await?;
    assert_eq!(created["properties"]["provisioningState"], "Accepted");
    let id = names.cluster("c");
    let show = ["resource", "show", "--ids", &id, "--api-version", version.as_str()];
    assert_eq!(shell.az(&show).await?["name"], "c");
    let kind = "Microsoft.RedHatOpenShift/hcpOpenShiftClusters";
    let listed = shell.az(&["resource", "list", "-g", "g"]).await?;
    assert_eq!((&listed[0]["type"], &listed[0]["name"]), (&json!(kind), &json!("c")), "{listed}");
    let of_kind = shell.az(&["resource", "list", "--resource-type", kind]).await?;
    assert_eq!(of_kind[0]["location"], cluster["location"], "{of_kind}");

    // This version of az waits for the operation even with `--no-wait`, and no role completes it: the deletion is accepted and
    // stays so.
    let delete = ["resource", "delete", "--ids", &id, "--api-version", version.as_str(), "--no-wait"];
    let mut deleting = shell.command(&delete).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    aro_fixtures::wait::until("the deletion to be accepted", || async {
        let shown = shell.az(&show).await?;
        Ok((shown["properties"]["provisioningState"] == "Deleting").then_some(()))
    })
    .await?;
    deleting.kill().await?;
    assert_eq!(shell.az(&["resource", "list", "-g", "g"]).await?[0]["name"], "c", "listed until it is gone");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn az_reads_what_the_cloud_offers_and_registers_providers() -> Result<()> {
    let shell = Shell::open().await?;
    shell.log_in().await?;
    let skus = shell.az(&["vm", "list-skus", "-l", "westus3", "--resource-type", "virtualMachines"]).await?;
    let sizes = skus.as_array().context("a list of sizes")?;
    let size = sizes.iter().find(|size| size["name"] == "Standard_D8s_v3").context("the usual size")?;
    assert!(size["locationInfo"][0]["zones"].as_array().is_some_and(|zones| zones.len() == 3), "{size}");
    let usage = shell.az(&["vm", "list-usage", "-l", "westus3"]).await?;
    assert!(
        usage.as_array().is_some_and(|all| all.iter().any(|one| one["name"]["value"] == "cores")),
        "{usage}"
    );
    let usage = shell.az(&["network", "list-usages", "-l", "westus3"]).await?;
    assert!(usage.as_array().is_some_and(|all| !all.is_empty()), "{usage}");

    let namespace = ["-n", "Microsoft.RedHatOpenShift"];
    let state = |shown: &Value| shown["registrationState"].as_str().unwrap_or_default().to_owned();
    let show = [&["provider", "show"], &namespace[..]].concat();
    assert_eq!(state(&shell.az(&show).await?), "Registered");
    shell.az(&[&["provider", "unregister"], &namespace[..]].concat()).await?;
    assert_eq!(state(&shell.az(&show).await?), "NotRegistered");
    shell.az(&[&["provider", "register", "--wait"], &namespace[..]].concat()).await?;
    assert_eq!(state(&shell.az(&show).await?), "Registered");
    let all = shell.az(&["provider", "list"]).await?;
    let named =
        |wanted: &str| all.as_array().is_some_and(|all| all.iter().any(|one| one["namespace"] == wanted));
    assert!(named("Microsoft.RedHatOpenShift") && named("Microsoft.Network"), "{all}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn az_uses_the_keys_and_signatures_of_a_storage_account() -> Result<()> {
    let shell = Shell::open().await?;
    shell.log_in().await?;
    shell.az(&["group", "create", "-n", "g", "-l", "westus3"]).await?;
    let check = ["storage", "account", "check-name", "-n", "arokeystorage"];
    assert_eq!(shell.az(&check).await?["nameAvailable"], true);
    let account = ["storage", "account", "create", "-g", "g", "-n", "arokeystorage", "-l", "westus3"];
    shell.az(&[&account[..], &["--sku", "Standard_LRS"]].concat()).await?;
    assert_eq!(shell.az(&check).await?["nameAvailable"], false);
    let list = ["storage", "account", "keys", "list", "-g", "g", "-n", "arokeystorage"];
    let keys = shell.az(&list).await?;
    let key = keys[0]["value"].as_str().context("a key")?;
    let name = ["--account-name", "arokeystorage"];
    let by_key = [&name[..], &["--account-key", key]].concat();
    shell.az(&[&["storage", "container", "create", "-n", "docs"], &by_key[..]].concat()).await?;
    let directory = tempfile::tempdir()?;
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    std::fs::write(&from, "signed content")?;
    let (from, to) = (from.display().to_string(), to.display().to_string());
    let upload = |blob: &'static str| vec!["storage", "blob", "upload", "-c", "docs", "-n", blob, "-f"];
    shell.az(&[&upload("by-key")[..], &[&from], &by_key].concat()).await?;

    let end = ["--expiry", "2099-01-01T00:00Z", "--https-only"];
    let sign = ["storage", "account", "generate-sas", "--services", "b", "--resource-types", "co"];
    let sas = shell.az(&[&sign[..], &["--permissions", "rwl"], &end, &by_key].concat()).await?;
    let by_sas = [&name[..], &["--sas-token", sas.as_str().context("a signature")?]].concat();
    shell.az(&[&upload("by-sas")[..], &[&from], &by_sas].concat()).await?;
    // az replaces the service's text for these refusals by its own.
    let delete = ["storage", "blob", "delete", "-c", "docs", "-n", "by-key"];
    shell.refused(&[&delete[..], &by_sas].concat(), "required permissions").await?;

    let sign = ["storage", "blob", "generate-sas", "-c", "docs", "-n", "by-sas", "--permissions", "r"];
    let sas = shell.az(&[&sign[..], &end, &by_key].concat()).await?;
    let by_sas = [&name[..], &["--sas-token", sas.as_str().context("a signature")?]].concat();
    let download = ["storage", "blob", "download", "-c", "docs", "-f", &to, "-n"];
    shell.az(&[&download[..], &["by-sas"], &by_sas].concat()).await?;
    assert_eq!(std::fs::read_to_string(&to)?, "signed content");
    shell.refused(&[&download[..], &["by-key"], &by_sas].concat(), "Authentication failure").await?;

    let renew = ["storage", "account", "keys", "renew", "-g", "g", "-n", "arokeystorage", "--key", "primary"];
    let renewed = shell.az(&renew).await?;
    assert_ne!(renewed[0]["value"], keys[0]["value"]);
    assert_eq!(renewed[1]["value"], keys[1]["value"]);
    shell.refused(&[&delete[..], &by_key].concat(), "Authentication failure").await?;
    let forbid = ["storage", "account", "update", "-g", "g", "-n", "arokeystorage"];
    shell.az(&[&forbid[..], &["--allow-shared-key-access", "false"]].concat()).await?;
    let key = renewed[0]["value"].as_str().context("a key")?;
    shell
        .refused(
            &[&delete[..], &name, &["--account-key", key]].concat(),
            "KeyBasedAuthenticationNotPermitted",
        )
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn az_recovers_and_purges_deleted_vaults() -> Result<()> {
    let shell = Shell::open().await?;
    shell.log_in().await?;
    shell.az(&["group", "create", "-n", "g", "-l", "westus3"]).await?;
    let scope = format!("/subscriptions/{}/resourceGroups/g", shell.variable("AZURE_SUBSCRIPTION_ID")?);
    let client = shell.variable("AZURE_CLIENT_ID")?;
    let role = ["--role", "Key Vault Administrator", "--scope", &scope];
    shell.az(&[&["role", "assignment", "create", "--assignee", client], &role[..]].concat()).await?;
    let create = ["keyvault", "create", "-g", "g", "-n", "kv-aro-soft", "-l", "westus3"];
    shell.az(&create).await?;
    let vault = ["--vault-name", "kv-aro-soft"];
    shell.az(&[&["keyvault", "secret", "set", "-n", "s", "--value", "kept"], &vault[..]].concat()).await?;
    shell.az(&["keyvault", "delete", "-n", "kv-aro-soft"]).await?;
    let deleted = shell.az(&["keyvault", "list-deleted", "--resource-type", "vault"]).await?;
    assert_eq!(deleted[0]["name"], "kv-aro-soft", "{deleted}");
    shell.refused(&create, "deleted state").await?;
    shell.az(&["keyvault", "recover", "-n", "kv-aro-soft"]).await?;
    let secret = shell.az(&[&["keyvault", "secret", "show", "-n", "s"], &vault[..]].concat()).await?;
    assert_eq!(secret["value"], "kept", "what was in the vault is there again");
    shell.az(&["keyvault", "delete", "-n", "kv-aro-soft"]).await?;
    shell.az(&["keyvault", "purge", "-n", "kv-aro-soft"]).await?;
    assert_eq!(shell.az(&["keyvault", "list-deleted", "--resource-type", "vault"]).await?, json!([]));
    shell.az(&create).await?;
    let gone = shell.az(&[&["keyvault", "secret", "list"], &vault[..]].concat()).await?;
    assert_eq!(gone, json!([]), "a purged vault leaves nothing");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn az_makes_credentials_of_registry_tokens() -> Result<()> {
    let shell = Shell::open().await?;
    shell.log_in().await?;
    shell.az(&["group", "create", "-n", "g", "-l", "westus3"]).await?;
    let create = ["acr", "create", "-g", "g", "-n", "arotestregistry", "--sku", "Premium", "--admin-enabled"];
    shell.az(&[&create[..], &["true"]].concat()).await?;
    let admin = shell.az(&["acr", "credential", "show", "-n", "arotestregistry"]).await?;
    assert_eq!(admin["passwords"].as_array().map(Vec::len), Some(2), "{admin}");
    let registry = ["-r", "arotestregistry"];
    let map = ["acr", "scope-map", "create", "-n", "pull", "--repository", "ocp", "content/read"];
    shell.az(&[&map[..], &registry].concat()).await?;
    let token = ["acr", "token", "create", "-n", "t", "--scope-map", "pull"];
    let made = shell.az(&[&token[..], &registry].concat()).await?;
    let password = made["credentials"]["passwords"][0]["value"].as_str().context("a password, shown once")?;
    let shown = shell.az(&[&["acr", "token", "show", "-n", "t"], &registry[..]].concat()).await?;
    assert!(!shown.to_string().contains(password), "it is not shown again");
    let again = ["acr", "token", "credential", "generate", "-n", "t", "--password1"];
    let renewed = shell.az(&[&again[..], &registry].concat()).await?;
    assert_ne!(renewed["passwords"][0]["value"].as_str(), Some(password));
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
