use aro_azure_local_directory::ApplicationSpec;
use http::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::site::{OTHER_TENANT, Site, TENANT};

const GRAPH: &str = "https://graph.microsoft.com";

async fn writer(site: &Site) -> String {
    let spec = ApplicationSpec { directory_writer: true, ..ApplicationSpec::new(TENANT, "writer") };
    let app = site.directory.ensure_application(spec).await.unwrap();
    site.directory.issue_token(app.app_id, TENANT, GRAPH).unwrap()
}

#[tokio::test]
async fn service_principals_are_found_by_client_id_name_and_object_id() {
    let site = Site::new().await;
    let token = writer(&site).await;
    let app = site.application("my app", "s").await;
    let (app_id, object_id) = (app.app_id, app.principal_id);
    for path in [
        format!("/v1.0/servicePrincipals?$filter=appId%20eq%20'{app_id}'"),
        "/v1.0/servicePrincipals?$filter=displayName%20eq%20'MY%20app'".to_owned(),
        format!("/v1.0/servicePrincipals?$filter=servicePrincipalNames/any(c:c%20eq%20'{app_id}')"),
    ] {
        let reply = site.graph("GET", &path, &token, None).await;
        assert_eq!(reply.body["value"].as_array().unwrap().len(), 1, "{path}: {}", reply.body);
        assert_eq!(reply.body["value"][0]["id"], json!(object_id), "{path}");
    }
    for path in
        [format!("/v1.0/servicePrincipals/{object_id}"), format!("/v1.0/servicePrincipals(appId='{app_id}')")]
    {
        let reply = site.graph("GET", &path, &token, None).await;
        assert_eq!((reply.status, &reply.body["appId"]), (StatusCode::OK, &json!(app_id)), "{path}");
    }
    let none = site
        .graph(
            "GET",
            &format!("/v1.0/servicePrincipals?$filter=appId%20eq%20'{}'", Uuid::new_v4()),
            &token,
            None,
        )
        .await;
    assert_eq!(none.body["value"], json!([]));
    let missing =
        site.graph("GET", &format!("/v1.0/servicePrincipals/{}", Uuid::new_v4()), &token, None).await;
    assert_eq!(
        (missing.status, &missing.body["error"]["code"]),
        (StatusCode::NOT_FOUND, &json!("Request_ResourceNotFound"))
    );
    let ids = json!({"ids": [object_id, Uuid::new_v4()], "types": ["servicePrincipal"]});
    let found = site.graph("POST", "/v1.0/directoryObjects/getByIds", &token, Some(ids)).await;
    assert_eq!(found.body["value"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_application_is_created_gets_a_secret_and_signs_in_with_it() {
    let site = Site::new().await;
    let token = writer(&site).await;
    let made = site.graph("POST", "/v1.0/applications", &token, Some(json!({"displayName": "new"}))).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let (id, app_id) =
        (made.body["id"].as_str().unwrap().to_owned(), made.body["appId"].as_str().unwrap().to_owned());
    let added = site.graph("POST", &format!("/v1.0/applications/{id}/addPassword"), &token, None).await;
    let secret = added.body["secretText"].as_str().unwrap().to_owned();
    let scope = "https://management.azure.com/.default";
    assert_eq!(site.secret_token(&app_id, &secret, scope).await.code(), 700_016, "no service principal yet");
    let principal =
        site.graph("POST", "/v1.0/servicePrincipals", &token, Some(json!({"appId": app_id}))).await;
    assert_eq!(principal.status, StatusCode::CREATED);
    let twice = site.graph("POST", "/v1.0/servicePrincipals", &token, Some(json!({"appId": app_id}))).await;
    assert_eq!(twice.status, StatusCode::CONFLICT);
    assert_eq!(site.secret_token(&app_id, &secret, scope).await.status, StatusCode::OK);

    let shown = site.graph("GET", &format!("/v1.0/applications/{id}"), &token, None).await;
    assert!(!shown.body.to_string().contains(&secret), "a secret is shown once");
    let site = site.restart().await;
    assert_eq!(site.secret_token(&app_id, &secret, scope).await.status, StatusCode::OK, "after a restart");
    let token = writer(&site).await;
    let key = json!({"keyId": added.body["keyId"]});
    let removed =
        site.graph("POST", &format!("/v1.0/applications/{id}/removePassword"), &token, Some(key)).await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    assert_eq!(site.secret_token(&app_id, &secret, scope).await.code(), 7_000_215);

    let patched = site
        .graph("PATCH", &format!("/v1.0/applications/{id}"), &token, Some(json!({"displayName": "renamed"})))
        .await;
    assert_eq!(patched.status, StatusCode::NO_CONTENT);
    let listed =
        site.graph("GET", "/v1.0/applications?$filter=startswith(displayName,'ren')", &token, None).await;
    assert_eq!(listed.body["value"].as_array().unwrap().len(), 1);
    assert_eq!(
        site.graph("DELETE", &format!("/v1.0/applications/{id}"), &token, None).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        site.graph("GET", &format!("/v1.0/applications/{id}"), &token, None).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn graph_requires_its_own_token_and_permission_to_write() {
    let site = Site::new().await;
    let app = site.application("reader", "s").await;
    let arm = site.directory.issue_token(app.app_id, TENANT, "https://management.azure.com").unwrap();
    for token in ["", "nonsense", &arm] {
        let reply = site.graph("GET", "/v1.0/servicePrincipals", token, None).await;
        assert_eq!(
            (reply.status, &reply.body["error"]["code"]),
            (StatusCode::UNAUTHORIZED, &json!("InvalidAuthenticationToken"))
        );
    }
    let token = site.directory.issue_token(app.app_id, TENANT, GRAPH).unwrap();
    let denied = site.graph("POST", "/v1.0/applications", &token, Some(json!({"displayName": "x"}))).await;
    assert_eq!(
        (denied.status, &denied.body["error"]["code"]),
        (StatusCode::FORBIDDEN, &json!("Authorization_RequestDenied"))
    );
    assert_eq!(site.graph("GET", "/v1.0/me", &token, None).await.status, StatusCode::BAD_REQUEST);
    for empty in ["/v1.0/users?$filter=mail%20eq%20'x'", "/v1.0/groups?$filter=displayName%20eq%20'x'"] {
        assert_eq!(site.graph("GET", empty, &token, None).await.body["value"], json!([]));
    }
    let organization = site.graph("GET", "/v1.0/organization", &token, None).await;
    assert_eq!(organization.body["value"][0]["id"], json!(TENANT));
}

#[tokio::test]
async fn a_tenant_sees_its_own_applications_only() {
    let site = Site::new().await;
    let app = site.application("private", "s").await;
    let spec = ApplicationSpec { directory_writer: true, ..ApplicationSpec::new(OTHER_TENANT, "stranger") };
    let stranger = site.directory.ensure_application(spec).await.unwrap();
    let token = site.directory.issue_token(stranger.app_id, OTHER_TENANT, GRAPH).unwrap();
    for path in [
        format!("/v1.0/applications/{}", app.object_id),
        format!("/v1.0/servicePrincipals/{}", app.principal_id),
        format!("/v1.0/applications(appId='{}')", app.app_id),
    ] {
        assert_eq!(site.graph("GET", &path, &token, None).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let path = format!("/v1.0/applications/{}/addPassword", app.object_id);
    assert_eq!(site.graph("POST", &path, &token, None).await.status, StatusCode::NOT_FOUND);
}
