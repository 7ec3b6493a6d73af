//! `aro migrate`.

use std::process::ExitCode;

use aro_app::AppConfig;
use aro_runtime::SystemClock;

use crate::cli::MigrateArgs;
use crate::output::say;
use crate::stack::data_dir;

pub async fn run(args: MigrateArgs) -> anyhow::Result<ExitCode> {
    let sources = args.sources.sources(args.data_dir);
    let config = AppConfig::load(&sources)?;
    let data = data_dir(&config, false, &sources.environment)?;
    aro_app::migrate(&config.store, &data, SystemClock::shared()).await?;
    say("the store's schema is up to date");
    Ok(ExitCode::SUCCESS)
}
