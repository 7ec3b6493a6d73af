//! Every error code has a page, and every page a code.

use std::collections::BTreeSet;

use anyhow::Result;
use aro_arm::Code;

#[test]
fn every_error_code_has_a_page_and_every_page_a_code() -> Result<()> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
    let mut pages = BTreeSet::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        pages.extend(name.strip_suffix(".md").filter(|name| *name != "README").map(str::to_owned));
    }
    let codes: BTreeSet<String> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(pages, codes);
    let index = std::fs::read_to_string(format!("{directory}/README.md"))?;
    for code in codes {
        assert!(index.contains(&format!("[{code}]({code}.md)")), "{code} is in the index");
    }
    Ok(())
}
