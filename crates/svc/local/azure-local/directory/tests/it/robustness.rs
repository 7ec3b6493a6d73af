use aro_azure_local_directory::{ApplicationSpec, graph_router, identity_router, login_router};
use axum::body::Body;
use http::Request;
use proptest::prelude::*;

use crate::site::{FIRST_PARTY, Site, TENANT};

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        "[a-z_]{0,12}(=[%a-zA-Z0-9+&.]{0,40})?".prop_map(String::into_bytes),
        "\\{\"(displayName|ids|identityIds|appId|keyCredentials|passwordCredential)\":(null|1|\"x\"|\\[\\]|\\{\\}|\\[null\\]|\\[\\{\\}\\])\\}"
            .prop_map(String::into_bytes),
        Just(b"grant_type=client_credentials&client_id=%FF&client_assertion=a.b.c".to_vec()),
    ]
}

#[test]
fn no_body_makes_a_server_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let site = runtime.block_on(Site::new());
    let (graph, msi, app) = runtime.block_on(async {
        let spec = ApplicationSpec {
            app_id: Some(FIRST_PARTY),
            directory_writer: true,
            ..ApplicationSpec::new(TENANT, "fpa")
        };
        let app = site.directory.ensure_application(spec).await.unwrap();
        let token = |audience| site.directory.issue_token(FIRST_PARTY, TENANT, audience).unwrap();
        (token("https://graph.microsoft.com"), token("https://msi.local"), app)
    });
    let msi_path = format!("{}&api-version=2024-01-01", site.directory.identity_url("/r", TENANT));
    let object = app.object_id;
    proptest!(ProptestConfig::with_cases(64), |(body in bodies(), path in "/[a-z%.(){}'$/]{0,30}")| {
        let targets = [
            ("POST", login_router(site.endpoints.clone()), format!("/{TENANT}/oauth2/v2.0/token"), ""),
            ("POST", graph_router(site.endpoints.clone()), "/v1.0/applications".to_owned(), graph.as_str()),
            ("PATCH", graph_router(site.endpoints.clone()), format!("/v1.0/applications/{object}"), graph.as_str()),
            ("POST", graph_router(site.endpoints.clone()), format!("/v1.0/applications/{object}/addPassword"), graph.as_str()),
            ("POST", graph_router(site.endpoints.clone()), "/v1.0/directoryObjects/getByIds".to_owned(), graph.as_str()),
            ("POST", identity_router(site.endpoints.clone()), msi_path.clone(), msi.as_str()),
            ("GET", login_router(site.endpoints.clone()), path.clone(), ""),
            ("GET", graph_router(site.endpoints.clone()), path.clone(), graph.as_str()),
        ];
        for (method, router, path, token) in targets {
            let request = Request::builder()
                .method(method)
                .uri(path.as_str())
                .header("authorization", format!("Bearer {token}"))
                .body(Body::from(body.clone()));
            let Ok(request) = request else { continue };
            let status = runtime.block_on(site.send(router, request)).status;
            prop_assert!(!status.is_server_error(), "{method} {path}: {status}");
        }
    });
}
