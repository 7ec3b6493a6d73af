use aro_base::{SignedDuration, Timestamp};

use super::*;
use crate::{Authority, Leaf, RsaBits, Subject, Usage, Validity, generate_rsa};

fn bundle() -> Bundle {
    let validity = Validity::from_now(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(24));
    let authority = Authority::generate("test", validity).unwrap();
    let key = generate_rsa(RsaBits::B2048).unwrap();
    let leaf = Leaf {
        subject: Subject::new("leaf", [] as [&str; 0]),
        dns_names: vec![],
        addresses: vec![],
        usage: Usage::Client,
        validity,
    };
    let issued = authority.issue_for_key(&leaf, &key).unwrap();
    let der = |text: &str| pem::parse(text).unwrap().into_contents();
    Bundle { key: issued.key, certificates: vec![der(&issued.certificate), der(authority.certificate())] }
}

#[test]
fn a_bundle_is_read_back_with_its_password_and_with_no_other() {
    let bundle = bundle();
    for password in ["", "päss"] {
        let file = write(&bundle, password).unwrap();
        let again = read(&file, password).unwrap();
        assert_eq!(again.key.expose(), bundle.key.expose());
        assert_eq!(again.certificates, bundle.certificates);
        assert!(read(&file, "wrong").is_err());
    }
}

#[test]
fn a_truncated_or_changed_file_is_refused_without_a_panic() {
    let file = write(&bundle(), "").unwrap();
    for end in (0..file.len()).step_by(7) {
        assert!(read(&file[..end], "").is_err(), "{end}");
    }
    let mut refused = 0;
    for at in (0..file.len()).step_by(11) {
        let mut changed = file.clone();
        changed[at] ^= 0x55;
        refused += u32::from(read(&changed, "").is_err());
    }
    assert!(refused > 100, "{refused}");
    assert!(read(&vec![0; 2 << 20], "").is_err());
}

#[test]
fn derivation_matches_the_published_vector() {
    // The example key of RFC 7292's derivation as OpenSSL's own test states it: password "smeg", SHA-1, one round.
    let salt = [0x0a, 0x58, 0xcf, 0x64, 0x53, 0x0d, 0x82, 0x3f];
    let rounds = protect::rounds(1).unwrap();
    let sha1 = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
    let key = protect::derive(sha1, &wide("smeg"), &salt, rounds, protect::Purpose::Key, 24);
    assert_eq!(
        key,
        [
            0x8a, 0xaa, 0xe6, 0x29, 0x7b, 0x6c, 0xb0, 0x46, 0x42, 0xab, 0x5b, 0x07, 0x78, 0x51, 0x28, 0x4e,
            0xb7, 0x12, 0x8f, 0x1a, 0x2a, 0x7f, 0xbc, 0xa3
        ]
    );
}

/// Made by `openssl pkcs12 -export` of OpenSSL 3 with the password `secret`: PBES2, AES-256-CBC, a digest of SHA-256.
const MODERN: &str = "\
    MIIEDAIBAzCCA8IGCSqGSIb3DQEHAaCCA7MEggOvMIIDqzCCAmIGCSqGSIb3DQEHBqCCAlMwggJPAgEAMIICSAYJKoZIhvcNAQcB\
    MFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAj1NH44UmZGCwICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEHXb\
    ChfFtL1IWWWDtN+1E/OAggHgA1OcV4J4hZgl4opb/yqNPV/B6YMbDqj5xqvINSpFib8wmQ2m/1MJ9m94TyZ1VISDZRF2POgj0C48\
    CQwUxc0k/pnCOhdr70/XzSi2UnYvL/kC0p+BeT8L/JWKAAsRt/kt3ahY09sVu1w6Wzx5mssfd0ijAAoVxLfa7/dRZmkLfN1hgBx7\
    Y1Si3z8BysYbL4cVQBWcogYKmRQFUihXHxOw3i4Ji5L71JYlzcLCWmgiacse4D0/1TQSIUN5c/4d7KyfYQDIG4EiAe5eVb4ZBklj\
    vdQhojKUXaou8d9ozJU9sxI16xITbPIId32P5ZF68i+ERADUc9q1jvLsXBdxOJwTUZ/BB7dPRGfu8b+9vbLTVaWCQ+Of+1ybIfpJ\
    Ra9wMRaOLie4FDY5RG+l4ZILFZ9t1LWG10rcuLVjEpBNN5UZOtKGU2YJrMoEnjIpoQkxAlFmzfmtq8RUZNXvDjJ33ceVPGnX1qNy\
    VA3Xhoeoi64nrXrbXJauw/EnjLQ0kU98NNU6GwhRot4Zv8a9Ad7QGf9MblzVN1mH+T2EEOiVghswGdvso1105ywaGDrF0JAVpnK1\
    3BF5HohPUj15EXvmWV6HPE5yLRDooyC/fskZFmyhxT1ui7yJ9RtbLEcik3XYNAPGMIIBQQYJKoZIhvcNAQcBoIIBMgSCAS4wggEq\
    MIIBJgYLKoZIhvcNAQwKAQKgge8wgewwVwYJKoZIhvcNAQUNMEowKQYJKoZIhvcNAQUMMBwECGasAKvo/e8WAgIIADAMBggqhkiG\
    9w0CCQUAMB0GCWCGSAFlAwQBKgQQTfOn924vl8rgP2I9s8yCwASBkPc20ve0XTjODmVpuJm5aTza6Mtma2ypR/JssxYD5QlXqcLr\
    NzMp1elAHM6dbPUzh8b4/VQKYcCRrpbFrQkM7kUDIpekcwZiq8Xd1ltfYk81uZx6EsuVhsFjVCLEr3RpeZpPs/Abpsl/sTxrmITP\
    AFqdgD0MDTB50mUcnj8IkK/HmxtIolLgSe2UJl3Wh0IgwTElMCMGCSqGSIb3DQEJFTEWBBT1Z8jBJ7GVMi4ulfdd6AjIf6DVODBB\
    MDEwDQYJYIZIAWUDBAIBBQAEIDGDP9U09C7hhqZZSOIzbvZbIlwcSoEGMXHcbrvU0ustBAjVvGDm7TO4PwICCAA=";

/// The same with triple DES, SHA-1 and an empty password.
const LEGACY: &str = "\
    MIIDegIBAzCCA0AGCSqGSIb3DQEHAaCCAzEEggMtMIIDKTCCAh8GCSqGSIb3DQEHBqCCAhAwggIMAgEAMIICBQYJKoZIhvcNAQcB\
    MBwGCiqGSIb3DQEMAQMwDgQIiN6uqiPy4hYCAggAgIIB2BGohuHye91SlxKIqraUii9hfWJjdrHqG1kAUikrQ7R+P3Rkz6kQ/rSj\
    TvYuGYenHkDO6rB/llYHjrNQQXuSaThVE7OSisU801x2Ga9mHmcU/VYiSXXvdbl9wEz5XKbaoDzhCZSmdte1gMJVqNixdyG64zy9\
    WI8g5VprRYDq9Qb1uiIEA7+yiKxwwZpFDNxWugRGsbxbLp6Y8M8k9EUUHbu94SfUReWRX/MOad8NOtU08bWkl8lUeuCqEIQajH4L\
    FlTIzMR0oR99J+cBjjSrAeABxNMzJ/qNOceDC7Iis33QBuPfUcnzJcvHTU5OLYuUZwB8Ci1U+CnCsYbAiOSHphlmA7s+JI47HZme\
    GFZnu0xRtoBp5GJDeq6DdhTDlAPtqutXHQuDH96MPDd+0rSyjLpEMVBJnIUqG0znocji9hngEt4CkjR92QhQoN5cuuAhum72odA/\
    S/ZtxSXrfaHR8mVutt5vhP0KMSdkXnZiMkbqdYPrDJ0MLa23pts1w1162Q/K53eAgYV8q/lnxI6FyFjgFeFimJssAiWhINg3M4nd\
    87JqZmgPQG7t2XF+ALyjx5Zw5oUCxKYUGuSivlcv8TISI1G2Zd9TLAOC+r9dQ1FFXF/rKtVarTowggECBgkqhkiG9w0BBwGggfQE\
    gfEwge4wgesGCyqGSIb3DQEMCgECoIG0MIGxMBwGCiqGSIb3DQEMAQMwDgQI4OZS4kCg1JACAggABIGQFbuL+51WxZ7VBmMqSDuK\
    Nu0sb4839HNtz41Lc8tVD49kwpSCT/+sIsC94/U/xpdJ/rYGkI2Hq/R3/CmOPP5N5CR5c2P2e8X8uhnhfgSr1ReGW+ko7W0UZ9C3\
    rMeBh4SJOLiWt1JEZrM6oDW2cEv8xQFGpB5/rpZiLEvWW0NBf0LbCuaEJr/4PAF3GpymBtqPMSUwIwYJKoZIhvcNAQkVMRYEFPVn\
    yMEnsZUyLi6V913oCMh/oNU4MDEwITAJBgUrDgMCGgUABBTr0/+R7EGa7ZP37db7Vq2hGmSSXwQIm5qJXMSubSQCAggA";

#[test]
fn files_of_another_tool_are_read_in_both_forms() {
    use base64::Engine as _;
    let file = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let modern = read(&file(MODERN), "secret").unwrap();
    let legacy = read(&file(LEGACY), "").unwrap();
    assert_eq!(crate::Subject::of_certificate(&modern.certificates[0]).unwrap().common_name, "modern");
    assert_eq!(modern.key.expose(), legacy.key.expose());
    assert_eq!(modern.certificates, legacy.certificates);
    assert!(read(&file(MODERN), "").is_err());
}
