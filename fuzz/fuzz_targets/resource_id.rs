//! ARM resource ids.
#![no_main]

use aro_arm::ResourceId;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(id) = ResourceId::parse(text) {
        assert_eq!(ResourceId::parse(id.as_str()).map(|again| again.to_lower()), Ok(id.to_lower()));
        let _ = (id.parent(), id.resource_type(), id.name().len());
    }
});
