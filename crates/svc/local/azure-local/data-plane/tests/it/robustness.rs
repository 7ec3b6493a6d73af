use axum::body::Body;
use http::Request;
use proptest::prelude::*;
use serde_json::json;

use crate::site::Site;

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let member = "(value|attributes|tags|policy|key|kty|alg|digest|pwd|key_ops|contentType|crv)";
    let value = "(null|1|\"x\"|\"AAAA\"|\"EC\"|\"RSA-OAEP\"|\"RS256\"|\\[\\]|\\{\\}|\\[null\\]|\\{\"enabled\":1\\}|\\{\"issuer\":\\{\"name\":\"Self\"\\}\\}|-1|1e300)";
    let object = format!("\\{{\"{member}\":{value},\"{member}\":{value}\\}}");
    let xml = "<(BlockList|StorageServiceProperties)>(<Latest>[a-zA-Z=&;]{0,8}</Latest>|<x/>|<StaticWebsite/>|]]>){0,3}(</BlockList>)?";
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        proptest::string::string_regex(&object).unwrap().prop_map(String::into_bytes),
        proptest::string::string_regex(xml).unwrap().prop_map(String::into_bytes),
    ]
}

#[test]
fn no_body_or_path_makes_a_server_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let site = Site::new();
    runtime.block_on(async {
        site.kv("PUT", "secrets/s", Some(json!({"value": "v"}))).await;
        site.kv("POST", "keys/k/create", Some(json!({"kty": "EC"}))).await;
        let policy = json!({"issuer": {"name": "Self"}, "key_props": {"kty": "EC"}, "x509_props": {"subject": "CN=x"}});
        site.kv("POST", "certificates/c/create", Some(json!({"policy": policy}))).await;
        site.storage("PUT", "box?restype=container", &[], "").await;
        site.put_blob("box/b", "x").await;
    });
    let vault = [
        ("PUT", "secrets/s"),
        ("PATCH", "secrets/s"),
        ("PUT", "keys/i"),
        ("PATCH", "keys/k"),
        ("POST", "keys/k/sign"),
        ("POST", "keys/k/verify"),
        ("POST", "keys/k/encrypt"),
        ("POST", "keys/k/unwrapkey"),
        ("POST", "certificates/n/import"),
        ("PATCH", "certificates/c"),
        ("PATCH", "certificates/c/policy"),
        ("POST", "certificates/m/create"),
    ];
    let storage = [
        ("PUT", "box/b?comp=block&blockid=AAAA"),
        ("PUT", "box/b?comp=blocklist"),
        ("PUT", "box/b"),
        ("PUT", "?restype=service&comp=properties"),
        ("PUT", "box?restype=container&comp=acl"),
    ];
    proptest!(ProptestConfig::with_cases(96), |(body in bodies(), path in "[a-z0-9%./?=&$A-Z-]{0,40}", method in "(GET|PUT|DELETE|POST|HEAD|PATCH)")| {
        let requests = vault
            .iter()
            .map(|(method, path)| (*method, (*path).to_owned(), true))
            .chain(storage.iter().map(|(method, path)| (*method, (*path).to_owned(), false)))
            .chain([(method.as_str(), path.clone(), true), (method.as_str(), path.clone(), false)]);
        for (method, path, is_vault) in requests {
            let separator = if path.contains('?') { '&' } else { '?' };
            let uri = if is_vault { format!("/{path}{separator}api-version=7.6") } else { format!("/{path}") };
            let (host, token) = match is_vault {
                true => ("kv.vault.azure.net", "https://vault.azure.net"),
                false => ("acct.blob.core.windows.net", "https://storage.azure.com"),
            };
            let request = Request::builder()
                .method(method)
                .uri(uri.as_str())
                .header("host", host)
                .header("x-ms-blob-type", "BlockBlob")
                .header("authorization", format!("Bearer {token}"))
                .body(Body::from(body.clone()));
            let Ok(request) = request else { continue };
            let router = if is_vault { site.keyvault() } else { site.blob() };
            let reply = runtime.block_on(site.send(router, request));
            prop_assert!(!reply.status.is_server_error(), "{method} {uri}: {} {}", reply.status, reply.text());
        }
    });
}
