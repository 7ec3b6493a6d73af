//! `aro gen crds`: the definitions of our custom resources, for clusters that are not ours to fill.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use aro_app::crds::{Definition, definitions};

use crate::cli::GenCrdsArgs;
use crate::output;

pub fn run(args: &GenCrdsArgs) -> anyhow::Result<ExitCode> {
    let definitions = definitions();
    match &args.out {
        Some(folder) => write(folder, &definitions)?,
        None => output::say(&stream(&definitions)?),
    }
    Ok(ExitCode::SUCCESS)
}

/// All of them in one text; every document begins with the separator.
fn stream(definitions: &[Definition]) -> anyhow::Result<String> {
    let mut text = String::new();
    for definition in definitions {
        text.push_str("---\n");
        text.push_str(&definition.yaml()?);
    }
    Ok(text)
}

fn write(folder: &Path, definitions: &[Definition]) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("create `{}`", folder.display()))?;
    for definition in definitions {
        let path = folder.join(format!("{}.yaml", definition.name()));
        std::fs::write(&path, definition.yaml()?).with_context(|| format!("write `{}`", path.display()))?;
    }
    Ok(())
}
