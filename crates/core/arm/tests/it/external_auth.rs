//! Every rule for an external auth, with its words.

use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::version::ApiVersion;
use serde_json::json;

use crate::fixtures::*;

#[test]
fn what_is_missing_is_reported_together() {
    for version in ApiVersion::ALL {
        assert_eq!(
            problems_of(ExternalAuth::create(version, &json!({}), &World::external_auth().cx())),
            [
                "properties.claim.mappings.username.claim: Required value",
                "properties.issuer.audiences: Required value",
                "properties.issuer.url: Required value",
            ]
        );
    }
    assert_eq!(
        creating::<ExternalAuth>(NEWEST, "properties.clients", json!([{}])),
        [
            "properties.clients[0].clientId: Required value",
            "properties.clients[0].component.authClientNamespace: Required value",
            "properties.clients[0].component.name: Required value",
            "properties.clients[0].type: Required value",
        ]
    );
    assert_eq!(
        creating::<ExternalAuth>(
            NEWEST,
            "properties.claim.validationRules",
            json!([{}, {"requiredClaim": {"claim": ""}}])
        ),
        [
            "properties.claim.validationRules[0].requiredClaim.claim: Required value",
            "properties.claim.validationRules[0].requiredClaim.requiredValue: Required value",
            "properties.claim.validationRules[1].requiredClaim.claim: Required value",
            "properties.claim.validationRules[1].requiredClaim.requiredValue: Required value",
        ]
    );
    assert_eq!(
        creating::<ExternalAuth>(NEWEST, "properties.claim.mappings.groups", json!({})),
        ["properties.claim.mappings.groups.claim: Required value"]
    );
}

#[test]
fn issuers_are_https_with_audiences_and_certificates() {
    let broken = CA.replace("MII", "AAA");
    check_table::<ExternalAuth>(&[
        (
            "properties.issuer.url",
            json!("http://a"),
            &["properties.issuer.url: Invalid value: \"http://a\": must start with https://"],
        ),
        (
            "properties.issuer.url",
            json!("https://"),
            &["properties.issuer.url: Invalid value: \"https://\": must be a URL"],
        ),
        (
            "properties.issuer.ca",
            json!("hello"),
            &["properties.issuer.ca: Invalid value: \"<omitted>\": must hold at least one PEM certificate"],
        ),
        (
            "properties.issuer.ca",
            json!(broken),
            &["properties.issuer.ca: Invalid value: \"<omitted>\": must hold at least one PEM certificate"],
        ),
        ("properties.issuer.ca", json!(format!("{CA}{CA}")), &[]),
        (
            "properties.issuer.audiences",
            json!(["aud", "other", ""]),
            &["properties.issuer.audiences[2]: Required value"],
        ),
    ]);
    let mut body = external_auth_body();
    remove(&mut body, "properties.clients");
    let audiences = |count: usize| {
        let mut body = body.clone();
        set(&mut body, "properties.issuer.audiences", json!(vec!["a"; count]));
        ExternalAuth::create(NEWEST, &body, &World::external_auth().cx()).map_or_else(list, |_| vec![])
    };
    assert!(audiences(10).is_empty());
    assert_eq!(audiences(11), ["properties.issuer.audiences: Too many: 11: must have at most 10 items"]);
    assert_eq!(audiences(0), ["properties.issuer.audiences: Invalid value: 0: must have at least 1 items"]);
}

#[test]
fn clients_are_unique_known_to_the_issuer_and_only_the_console_keeps_a_secret() {
    let client = |name: &str, kind: &str| json!({"clientId": "aud", "component": {"name": name, "authClientNamespace": "openshift-console"}, "type": kind});
    let clients = |value| creating::<ExternalAuth>(NEWEST, "properties.clients", value);
    assert_eq!(
        clients(json!([client("cli", "Public"), client("cli", "Public")])),
        ["properties.clients[1].component: Duplicate value: \"openshift-console/cli\""]
    );
    assert_eq!(
        clients(json!([client("console", "Public")])),
        ["properties.clients[0].type: Invalid value: \"Public\": the console's client must be Confidential"]
    );
    assert_eq!(
        clients(json!([client("cli", "Confidential")])),
        [
            "properties.clients[0].type: Invalid value: \"Confidential\": only the client of console in openshift-console may be Confidential"
        ]
    );
    assert_eq!(
        clients(json!([client("cli", "Secret")])),
        [
            "properties.clients[0].type: Unsupported value: \"Secret\": supported values: \"Confidential\", \"Public\""
        ]
    );
    let many: Vec<_> = (0..21).map(|i| client(&format!("c{i}"), "Public")).collect();
    assert!(clients(json!(many[..20])).is_empty());
    assert_eq!(clients(json!(many)), ["properties.clients: Too many: 21: must have at most 20 items"]);
    let mut stranger = client("cli", "Public");
    stranger["clientId"] = json!("nobody");
    stranger["extraScopes"] = json!(["email", ""]);
    stranger["component"] = json!({"name": "n".repeat(257), "authClientNamespace": "s".repeat(64)});
    assert_eq!(
        clients(json!([stranger])),
        [
            "properties.clients[0].clientId: Invalid value: \"nobody\": must be one of the issuer's audiences",
            "properties.clients[0].component.authClientNamespace: Too long: may not be more than 63 bytes",
            "properties.clients[0].component.name: Too long: may not be more than 256 bytes",
            "properties.clients[0].extraScopes[1]: Required value",
        ]
    );
}

#[test]
fn a_username_prefix_goes_with_its_policy() {
    let at = "properties.claim.mappings.username";
    let username = |value| creating::<ExternalAuth>(NEWEST, at, value);
    assert!(username(json!({"claim": "c"})).is_empty());
    assert!(username(json!({"claim": "c", "prefixPolicy": "NoPrefix"})).is_empty());
    assert!(username(json!({"claim": "c", "prefixPolicy": "Prefix", "prefix": "p"})).is_empty());
    assert_eq!(
        username(json!({"claim": "c", "prefixPolicy": "Prefix"})),
        [format!("{at}.prefix: Required value: prefixPolicy is \"Prefix\"")]
    );
    for policy in ["None", "NoPrefix"] {
        assert_eq!(
            username(json!({"claim": "c", "prefixPolicy": policy, "prefix": "p"})),
            [format!("{at}.prefix: Invalid value: \"p\": may only be set when prefixPolicy is \"Prefix\"")]
        );
    }
    assert_eq!(
        username(json!({"claim": "c".repeat(257), "prefixPolicy": "Maybe", "prefix": "p"})),
        [
            format!("{at}.claim: Too long: may not be more than 256 bytes"),
            format!(
                "{at}.prefixPolicy: Unsupported value: \"Maybe\": supported values: \"NoPrefix\", \"None\", \"Prefix\""
            ),
        ]
    );
    let answer = ExternalAuth::create(
        NEWEST,
        &json!({"properties": {"issuer": {"url": "https://a", "audiences": ["a"]},
                               "claim": {"mappings": {"username": {"claim": "c"}}}}}),
        &World::external_auth().cx(),
    );
    assert_eq!(
        answer.unwrap().render(NEWEST)["properties"]["claim"]["mappings"]["username"]["prefixPolicy"],
        "None"
    );
}

#[test]
fn everything_can_be_changed() {
    let body = json!({"properties": {
        "issuer": {"url": "https://b", "audiences": ["z"]},
        "claim": {"mappings": {"username": {"claim": "sub"}}},
    }});
    let auth = ExternalAuth::made(NEWEST).replace(NEWEST, &body, &World::external_auth().cx()).unwrap();
    let properties = &auth.render(NEWEST)["properties"];
    assert_eq!(properties.get("clients"), None);
    assert_eq!(properties["issuer"], json!({"audiences": ["z"], "url": "https://b"}));
}
