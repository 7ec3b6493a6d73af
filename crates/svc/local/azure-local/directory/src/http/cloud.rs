//! The cloud's metadata, for `az cloud register`: every endpoint is on the host that the client used.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Head, json as respond};

/// Since this api-version the answer is one object; before it was a list.
const ONE_OBJECT: &str = "2022-09-01";

pub(super) fn answer_for(host: &str, version: &str) -> Value {
    let base = format!("https://{host}");
    let cloud = json!({
        "name": "AroLocal",
        "portal": base,
        "resourceManager": base,
        "authentication": {
            "loginEndpoint": base,
            "audiences": ["https://management.core.windows.net/", "https://management.azure.com/"],
            "tenant": "common",
            "identityProvider": "AAD",
        },
        "graph": "https://graph.windows.net/",
        "graphAudience": "https://graph.windows.net/",
        "microsoftGraphResourceId": format!("{base}/"),
        "gallery": base,
        "batch": "https://batch.core.windows.net/",
        "media": "https://rest.media.azure.net",
        "sqlManagement": "https://management.core.windows.net:8443/",
        "vmImageAliasDoc": format!("{base}/vmImageAliasDoc"),
        "activeDirectoryDataLake": "https://datalake.azure.net/",
        "attestationResourceId": "https://attest.azure.net",
        "logAnalyticsResourceId": "https://api.loganalytics.io",
        "ossrDbmsResourceId": "https://ossrdbms-aad.database.windows.net",
        "synapseAnalyticsResourceId": "https://dev.azuresynapse.net",
        "suffixes": {
            "acrLoginServer": "azurecr.io",
            "attestationEndpoint": "attest.azure.net",
            "azureDataLakeAnalyticsCatalogAndJob": "azuredatalakeanalytics.net",
            "azureDataLakeStoreFileSystem": "azuredatalakestore.net",
            "azureFrontDoorEndpointSuffix": "azurefd.net",
            "keyVaultDns": "vault.azure.net",
            "mhsmDns": "managedhsm.azure.net",
            "mysqlServerEndpoint": "mysql.database.azure.com",
            "postgresqlServerEndpoint": "postgres.database.azure.com",
            "sqlServerHostname": "database.windows.net",
            "storage": "core.windows.net",
            "storageSyncEndpointSuffix": "afs.azure.net",
            "synapseAnalytics": "dev.azuresynapse.net",
        },
    });
    if version >= ONE_OBJECT { cloud } else { json!([cloud]) }
}

pub(super) fn answer(head: &Head) -> Response {
    if let Some(version) = head.parameter("api-version") {
        return respond(StatusCode::OK, &answer_for(&head.host, version));
    }
    let message = "The api-version query parameter (?api-version=) is required for all requests.";
    let body = json!({"error": {"code": "MissingApiVersionParameter", "message": message}});
    respond(StatusCode::BAD_REQUEST, &body)
}
