//! `aro cloud`: the local cloud's faults, its log of mutations, its resources.

mod args;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use aro_app::AppConfig;
use aro_app::azure_local::{AdminClient, AdminError, AzureLocalConfig, MutationPage, RuleStatus};
use aro_runtime::Environment;
use serde_json::{Value, json};

pub use args::CloudArgs;
use args::{
    AddArgs, ClearArgs, CloudCommand, FaultsCommand, Format, ListArgs, LsArgs, MutationsArgs, ShowArgs,
    Target,
};

use crate::output::{complain, say};
use crate::stack;

/// Between two looks at the log of mutations.
const FOLLOW: Duration = Duration::from_millis(500);

pub async fn run(args: CloudArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        CloudCommand::Faults(faults) => match faults.command {
            FaultsCommand::Add(args) => add(*args).await?,
            FaultsCommand::List(args) => list(args).await?,
            FaultsCommand::Clear(args) => clear(args).await?,
        },
        CloudCommand::Mutations(args) => mutations(args).await?,
        CloudCommand::Ls(args) => ls(args).await?,
        CloudCommand::Show(args) => show(args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The cloud of a region, by the files in its data directory.
struct Cloud {
    admin: AdminClient,
    hint: String,
}

impl Cloud {
    fn open(target: Target) -> anyhow::Result<Self> {
        let config = AppConfig::load(&target.sources.sources(target.data_dir))?;
        let data = stack::data_dir(&config, false, &Environment::of_process())?;
        let section = config.loaded.section::<AzureLocalConfig>()?;
        let dir = section.dir.clone().unwrap_or_else(|| data.path().join("azure-local"));
        let data = data.path().display();
        let hint =
            format!("no region runs in {data}; start `aro up`, or name its data directory with --data-dir");
        let admin = AdminClient::open(&dir).with_context(|| hint.clone())?;
        Ok(Self { admin, hint })
    }

    /// The result of a call; one that reached no cloud names what to do.
    fn answered<T>(&self, answer: Result<T, AdminError>) -> anyhow::Result<T> {
        answer.map_err(|error| match error {
            AdminError::Unreachable { .. } => anyhow::Error::new(error).context(self.hint.clone()),
            error => error.into(),
        })
    }
}

async fn add(args: AddArgs) -> anyhow::Result<()> {
    let (rule, target) = args.into_rule();
    let cloud = Cloud::open(target)?;
    let added = cloud.answered(cloud.admin.add_fault(&rule).await)?;
    say(&format!("rule {} added", added.id));
    Ok(())
}

async fn list(args: ListArgs) -> anyhow::Result<()> {
    let cloud = Cloud::open(args.target)?;
    let faults = cloud.answered(cloud.admin.faults().await)?;
    match args.output {
        Format::Json => say(&serde_json::to_string_pretty(&faults)?),
        Format::Table => {
            say(&table::render(
                &["RULE", "FAULT", "MATCHED", "FIRED", "LIMITS"],
                faults.rules.iter().map(fault_row),
            ));
        }
    }
    Ok(())
}

/// A rule as a row: what is not the fault itself is one text, as JSON has it.
fn fault_row(status: &RuleStatus) -> Vec<String> {
    let mut rule = json!(status.rule);
    let fault = rule.get_mut("fault").map(Value::take).unwrap_or_default();
    let members = rule.as_object().into_iter().flatten();
    let limits = members.filter(|(name, value)| !(value.is_null() || is_default(name, value)));
    let limits: Vec<String> = limits.map(|(name, value)| format!("{name}={}", table::text(value))).collect();
    vec![
        status.id.to_string(),
        table::text(&fault),
        status.matched.to_string(),
        status.fired.to_string(),
        limits.join(" "),
    ]
}

fn is_default(name: &str, value: &Value) -> bool {
    (name == "service" && value == "arm") || (name == "probability" && value.as_f64() == Some(1.0))
}

async fn clear(args: ClearArgs) -> anyhow::Result<()> {
    let cloud = Cloud::open(args.target)?;
    let cleared = cloud.answered(cloud.admin.clear_faults(args.rule).await)?;
    match args.rule {
        Some(rule) => say(&format!("rule {rule} cleared")),
        None => say(&format!("{} rules cleared", cleared.len())),
    }
    Ok(())
}

async fn mutations(args: MutationsArgs) -> anyhow::Result<()> {
    let cloud = Cloud::open(args.target)?;
    let mut cursor = None;
    if args.output == Format::Table {
        say(&table::row(&["SEQUENCE", "TIME", "OUTCOME", "METHOD", "CALLER", "RESOURCE"], &MUTATION_WIDTHS));
    }
    loop {
        let page = match cloud.admin.mutations(cursor).await {
            Err(error) if error.is_gap() && cursor.is_some() => {
                complain(
                    "entries of the log are gone, or the cloud has restarted; going on with the oldest entry",
                );
                cursor = None;
                continue;
            }
            answer => cloud.answered(answer)?,
        };
        print_mutations(&page, args.output)?;
        cursor = Some((page.instance, page.cursor));
        if page.entries.is_empty() {
            if !args.follow {
                return Ok(());
            }
            tokio::time::sleep(FOLLOW).await;
        }
    }
}

/// Rows come one after another, so that columns have fixed widths.
const MUTATION_WIDTHS: [usize; 6] = [8, 30, 8, 6, 36, 0];

fn print_mutations(page: &MutationPage, format: Format) -> anyhow::Result<()> {
    for entry in &page.entries {
        match format {
            Format::Json => say(&serde_json::to_string(entry)?),
            Format::Table => {
                let sequence = entry.sequence.to_string();
                let caller = entry.caller.as_deref().unwrap_or("-");
                let [time, outcome, method, id] =
                    [&entry.time, &entry.outcome, &entry.method, &entry.resource_id].map(String::as_str);
                let cells = [sequence.as_str(), time, outcome, method, caller, id];
                say(&table::row(&cells, &MUTATION_WIDTHS));
            }
        }
    }
    Ok(())
}

async fn ls(args: LsArgs) -> anyhow::Result<()> {
    let cloud = Cloud::open(args.target)?;
    let (subscription, group) = (args.subscription.as_deref(), args.group.as_deref());
    let (mut resources, mut after) = (Vec::new(), None::<String>);
    loop {
        // A group's name says nothing without its subscription: then all resources are read and the others left out.
        let below = group.filter(|_| subscription.is_some());
        let page = cloud.answered(cloud.admin.resources(subscription, below, after.as_deref()).await)?;
        resources.extend(page.resources.into_iter().filter(|resource| is_in(resource, group)));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    match args.output {
        Format::Json => say(&serde_json::to_string_pretty(&resources)?),
        Format::Table => say(&table::render(
            &["NAME", "TYPE", "LOCATION", "STATE", "GROUP", "SUBSCRIPTION"],
            resources.iter().map(resource_row),
        )),
    }
    Ok(())
}

/// The segment behind a word of a resource id.
fn segment<'r>(resource: &'r Value, word: &str) -> &'r str {
    let id = resource.get("id").and_then(Value::as_str).unwrap_or_default();
    let mut segments = id.split('/').skip_while(|segment| !segment.eq_ignore_ascii_case(word));
    segments.nth(1).unwrap_or_default()
}

fn is_in(resource: &Value, group: Option<&str>) -> bool {
    group.is_none_or(|group| segment(resource, "resourceGroups").eq_ignore_ascii_case(group))
}

fn resource_row(resource: &Value) -> Vec<String> {
    let text = |pointer: &str| table::text(resource.pointer(pointer).unwrap_or(&Value::Null));
    let name = match text("/name") {
        name if name == "-" => text("/properties/displayName"),
        name => name,
    };
    let part =
        |word: &str| Some(segment(resource, word)).filter(|part| !part.is_empty()).unwrap_or("-").to_owned();
    vec![
        name,
        text("/type"),
        text("/location"),
        text("/properties/provisioningState"),
        part("resourceGroups"),
        part("subscriptions"),
    ]
}

async fn show(args: ShowArgs) -> anyhow::Result<()> {
    let cloud = Cloud::open(args.target)?;
    let found = cloud.admin.resource(&args.resource_id).await;
    let resource = cloud.answered(found).with_context(|| args.resource_id.clone())?;
    say(&serde_json::to_string_pretty(&resource)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use aro_app::azure_local::{Fault, Rule};

    use super::*;

    #[test]
    fn a_rule_is_shown_with_what_limits_it() {
        let rule = Rule { count: Some(3), resource: Some("*/g/*".to_owned()), ..Rule::of(Fault::LostReply) };
        let row = fault_row(&RuleStatus { id: 4, matched: 7, fired: 3, rule });
        assert_eq!(row, ["4", "lostReply", "7", "3", "count=3 resource=*/g/*"]);
    }

    #[test]
    fn a_resource_is_shown_with_its_place() {
        let resource = json!({
            "id": "/subscriptions/s/resourceGroups/g/providers/N.S/t/n", "name": "n", "type": "N.S/t",
            "properties": {"provisioningState": "Succeeded"},
        });
        assert_eq!(resource_row(&resource), ["n", "N.S/t", "-", "Succeeded", "g", "s"]);
        assert!(is_in(&resource, Some("G")) && !is_in(&resource, Some("h")) && is_in(&resource, None));
    }
}
