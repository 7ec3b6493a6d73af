//! Three settings that go together: where a certificate, its key and the authorities of peers are.

use std::path::PathBuf;

use crate::IdentityPaths;

/// One of the three: what it is called in the configuration, and what it is set to.
pub type FileSetting<'a> = (&'static str, &'a Option<PathBuf>);

/// Some of the three are set and others are not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("goes together with {missing}: set all three, or none")]
pub struct HalfGiven {
    /// The first setting that is there: where the problem is to be shown.
    pub key: &'static str,
    missing: String,
}

impl IdentityPaths {
    /// The files that three settings name; `None` when none is set.
    pub fn of_settings(
        certificate: FileSetting<'_>,
        key: FileSetting<'_>,
        authorities: FileSetting<'_>,
    ) -> Result<Option<Self>, HalfGiven> {
        if let (Some(certificate), Some(key), Some(bundle)) = (certificate.1, key.1, authorities.1) {
            let (certificate, key, bundle) = (certificate.clone(), key.clone(), Some(bundle.clone()));
            return Ok(Some(Self { certificate, key, bundle }));
        }
        let all = [certificate, key, authorities];
        let Some(first) = all.iter().find(|(_, file)| file.is_some()) else { return Ok(None) };
        let missing: Vec<&str> =
            all.iter().filter(|(_, file)| file.is_none()).map(|(name, _)| *name).collect();
        Err(HalfGiven { key: first.0, missing: missing.join(" and ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_its_key_and_the_authorities_are_set_together_or_not_at_all() {
        let file = |name: &str| Some(PathBuf::from(name));
        let of = |given: [Option<PathBuf>; 3]| {
            let [certificate, key, authorities] = &given;
            IdentityPaths::of_settings(("cert", certificate), ("key", key), ("ca", authorities))
        };
        assert!(of([None, None, None]).unwrap().is_none());
        let all = of([file("a"), file("b"), file("c")]).unwrap().unwrap();
        assert_eq!((all.certificate, all.key, all.bundle), ("a".into(), "b".into(), file("c")));
        for (given, key, told) in [
            ([file("a"), None, None], "cert", "goes together with key and ca: set all three, or none"),
            ([file("a"), file("b"), None], "cert", "goes together with ca: set all three, or none"),
            ([None, None, file("c")], "ca", "goes together with cert and key: set all three, or none"),
        ] {
            let half = of(given).unwrap_err();
            assert_eq!((half.key, half.to_string().as_str()), (key, told));
        }
    }
}
