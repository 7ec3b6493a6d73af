//! `aro env`: what a shell needs so that unmodified clients use the region.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use aro_app::{AppConfig, CloudEnvironment};
use aro_runtime::Environment;

use crate::cli::EnvArgs;
use crate::output::say;
use crate::stack;

pub fn run(args: EnvArgs) -> anyhow::Result<ExitCode> {
    let config = AppConfig::load(&args.sources.sources(args.data_dir))?;
    let data = stack::data_dir(&config, false, &Environment::of_process())?;
    let cloud = CloudEnvironment::read(&config, data.path()).with_context(|| {
        format!(
            "no region has run in {} yet; start `aro up`, or name its data directory with --data-dir",
            data.path().display()
        )
    })?;
    say(&exports(&cloud, data.path()));
    Ok(ExitCode::SUCCESS)
}

fn exports(cloud: &CloudEnvironment, data: &Path) -> String {
    let mut text = String::new();
    for (name, value) in cloud.variables(data) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "export {name}='{}'", value.replace('\'', "'\\''"));
    }
    text
}
