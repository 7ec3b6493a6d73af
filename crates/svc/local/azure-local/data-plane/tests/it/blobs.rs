use aro_base::SignedDuration;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;

use crate::site::{ACCOUNT_KEY, STORAGE_ID, Site};

async fn container(site: &Site, name: &str) {
    let reply = site.storage("PUT", &format!("{name}?restype=container"), &[], "").await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

#[tokio::test]
async fn containers_are_created_listed_and_deleted_with_their_blobs() {
    let site = Site::new();
    container(&site, "one").await;
    container(&site, "two").await;
    let again = site.storage("PUT", "one?restype=container", &[], "").await;
    assert_eq!((again.status, again.storage_code()), (StatusCode::CONFLICT, "ContainerAlreadyExists"));
    let tagged =
        site.storage("PUT", "one?restype=container&comp=metadata", &[("x-ms-meta-owner", "me")], "").await;
    assert_eq!(tagged.status, StatusCode::OK);
    let shown = site.storage("HEAD", "one?restype=container", &[], "").await;
    assert_eq!(shown.headers["x-ms-meta-owner"], "me");
    let listed = site.storage("GET", "?comp=list&include=metadata", &[], "").await.text();
    assert!(
        listed.contains("<Name>one</Name>")
            && listed.contains("<Name>two</Name>")
            && listed.contains("<owner>me</owner>"),
        "{listed}"
    );
    site.put_blob("one/a", "x").await;
    assert_eq!(site.storage("DELETE", "one?restype=container", &[], "").await.status, StatusCode::ACCEPTED);
    assert_eq!(site.storage("GET", "one/a", &[], "").await.storage_code(), "ContainerNotFound");
    container(&site, "one").await;
    assert_eq!(site.storage("GET", "one/a", &[], "").await.storage_code(), "BlobNotFound");
    assert_eq!(
        site.storage("PUT", "No?restype=container", &[], "").await.storage_code(),
        "InvalidResourceName"
    );
}

#[tokio::test]
async fn a_blob_keeps_its_bytes_properties_and_metadata_across_a_restart() {
    let site = Site::new();
    container(&site, "ccc").await;
    let bytes: Vec<u8> = (0..3_500_000_u32).map(|index| (index % 251) as u8).collect();
    let headers =
        [("x-ms-blob-type", "BlockBlob"), ("x-ms-blob-content-type", "text/x"), ("x-ms-meta-k", "v")];
    let put = site.storage("PUT", "ccc/dir/Big%20one", &headers, bytes.clone()).await;
    assert_eq!(put.status, StatusCode::CREATED, "{}", put.text());
    let site = site.restart();
    let got = site.storage("GET", "ccc/dir/Big%20one", &[], "").await;
    assert_eq!((got.status, got.bytes.as_ref() == bytes.as_slice()), (StatusCode::OK, true));
    assert_eq!(
        (&got.headers["content-type"], &got.headers["x-ms-meta-k"]),
        (&"text/x".parse().unwrap(), &"v".parse().unwrap())
    );
    assert_eq!(got.headers["etag"], put.headers["etag"]);
    let part = site.storage("GET", "ccc/dir/Big%20one", &[("x-ms-range", "bytes=1048570-1048580")], "").await;
    assert_eq!(
        (part.status, part.bytes.as_ref()),
        (StatusCode::PARTIAL_CONTENT, &bytes[1_048_570..=1_048_580])
    );
    assert_eq!(part.headers["content-range"], "bytes 1048570-1048580/3500000");
    let beyond = site.storage("GET", "ccc/dir/Big%20one", &[("range", "bytes=3500000-")], "").await;
    assert_eq!((beyond.status, beyond.storage_code()), (StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange"));
    let head = site.storage("HEAD", "ccc/dir/Big%20one", &[], "").await;
    assert_eq!((head.headers["content-length"].to_str().unwrap(), head.bytes.len()), ("3500000", 0));
    assert_eq!(
        site.storage("GET", "ccc/dir/big%20one", &[], "").await.storage_code(),
        "BlobNotFound",
        "names have case"
    );

    let changed = site.storage("PUT", "ccc/dir/Big%20one?comp=metadata", &[("x-ms-meta-n", "w")], "").await;
    assert_eq!(changed.status, StatusCode::OK);
    assert_ne!(changed.headers["etag"], put.headers["etag"]);
    site.storage("PUT", "ccc/dir/Big%20one?comp=properties", &[("x-ms-blob-cache-control", "no-cache")], "")
        .await;
    let head = site.storage("HEAD", "ccc/dir/Big%20one", &[], "").await;
    assert!(
        head.headers.get("x-ms-meta-k").is_none()
            && head.headers["x-ms-meta-n"] == "w"
            && head.headers["cache-control"] == "no-cache"
    );
    assert_eq!(site.storage("DELETE", "ccc/dir/Big%20one", &[], "").await.status, StatusCode::ACCEPTED);
    assert_eq!(site.storage("DELETE", "ccc/dir/Big%20one", &[], "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn blocks_become_a_blob_by_a_list() {
    let site = Site::new();
    container(&site, "blk").await;
    let id = |name: &str| STANDARD.encode(name);
    let put = |name: &'static str, body: &'static str| {
        let path = format!("blk/b?comp=block&blockid={}", id(name).replace('=', "%3D"));
        let site = &site;
        async move { site.storage("PUT", &path, &[], body).await.status }
    };
    assert_eq!(put("001", "hello ").await, StatusCode::CREATED);
    assert_eq!(put("002", "there").await, StatusCode::CREATED);
    assert_eq!(put("002", "world").await, StatusCode::CREATED);
    assert_eq!(put("longer", "x").await, StatusCode::BAD_REQUEST, "ids of one length");
    assert_eq!(site.storage("GET", "blk/b", &[], "").await.storage_code(), "BlobNotFound", "not committed");
    let waiting = site.storage("GET", "blk/b?comp=blocklist&blocklisttype=all", &[], "").await.text();
    assert!(waiting.contains("<UncommittedBlocks><Block>"), "{waiting}");
    let list = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><Latest>{}</Latest><Latest>{}</Latest></BlockList>",
        id("001"),
        id("002")
    );
    let committed =
        site.storage("PUT", "blk/b?comp=blocklist", &[("x-ms-blob-content-type", "text/plain")], list).await;
    assert_eq!(committed.status, StatusCode::CREATED, "{}", committed.text());
    assert_eq!(site.storage("GET", "blk/b", &[], "").await.text(), "hello world");
    put("003", "!").await;
    let list = format!(
        "<BlockList><Committed>{}</Committed><Uncommitted>{}</Uncommitted></BlockList>",
        id("002"),
        id("003")
    );
    assert_eq!(site.storage("PUT", "blk/b?comp=blocklist", &[], list).await.status, StatusCode::CREATED);
    assert_eq!(site.storage("GET", "blk/b", &[], "").await.text(), "world!");
    let unknown = format!("<BlockList><Latest>{}</Latest></BlockList>", id("009"));
    assert_eq!(
        site.storage("PUT", "blk/b?comp=blocklist", &[], unknown).await.storage_code(),
        "InvalidBlockList"
    );
    assert_eq!(
        site.storage("PUT", "blk/b?comp=blocklist", &[], "junk").await.storage_code(),
        "InvalidXmlDocument"
    );
    site.advance(SignedDuration::from_hours(1));
    site.blobs.maintain().await.unwrap();
    assert_eq!(
        site.storage("GET", "blk/b", &[], "").await.text(),
        "world!",
        "garbage is only what is unused"
    );
}

#[tokio::test]
async fn lists_fold_by_delimiter_and_go_on_by_marker() {
    let site = Site::new();
    container(&site, "lst").await;
    for name in ["a.txt", "dir/1", "dir/2", "dir2/3", "Z"] {
        site.put_blob(&format!("lst/{name}"), "x").await;
    }
    let folded = site.storage("GET", "lst?restype=container&comp=list&delimiter=/", &[], "").await.text();
    for part in [
        "<Name>a.txt</Name>",
        "<BlobPrefix><Name>dir/</Name></BlobPrefix>",
        "<BlobPrefix><Name>dir2/</Name></BlobPrefix>",
        "<Name>Z</Name>",
    ] {
        assert_eq!(folded.matches(part).count(), 1, "{part} in {folded}");
    }
    assert!(!folded.contains("dir/1"));
    let below = site.storage("GET", "lst?restype=container&comp=list&prefix=dir/", &[], "").await.text();
    assert_eq!(below.matches("<Blob>").count(), 2);
    let (mut names, mut marker) = (0, String::new());
    loop {
        let page = site
            .storage("GET", &format!("lst?restype=container&comp=list&maxresults=2&marker={marker}"), &[], "")
            .await
            .text();
        names += page.matches("<Blob>").count();
        let next = page.split("<NextMarker>").nth(1).unwrap().split("</NextMarker>").next().unwrap();
        if next.is_empty() {
            break;
        }
        marker = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
    }
    assert_eq!(names, 5);
    for bad in ["maxresults=0", "maxresults=x", "marker=junk"] {
        assert_eq!(
            site.storage("GET", &format!("lst?restype=container&comp=list&{bad}"), &[], "").await.status,
            StatusCode::BAD_REQUEST,
            "{bad}"
        );
    }
}

#[tokio::test]
async fn conditions_guard_reads_and_writes() {
    let site = Site::new();
    container(&site, "cond").await;
    let put = |headers: Vec<(&'static str, String)>| {
        let site = &site;
        async move {
            let mut all = vec![("x-ms-blob-type", "BlockBlob")];
            all.extend(headers.iter().map(|(name, value)| (*name, value.as_str())));
            site.storage("PUT", "cond/b", &all, "x").await
        }
    };
    assert_eq!(put(vec![("if-match", "*".to_owned())]).await.status, StatusCode::PRECONDITION_FAILED);
    let first = put(vec![("if-none-match", "*".to_owned())]).await;
    assert_eq!(first.status, StatusCode::CREATED);
    let exists = put(vec![("if-none-match", "*".to_owned())]).await;
    assert_eq!((exists.status, exists.storage_code()), (StatusCode::CONFLICT, "BlobAlreadyExists"));
    let etag = first.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(put(vec![("if-match", etag.clone())]).await.status, StatusCode::CREATED);
    assert_eq!(
        put(vec![("if-match", etag.clone())]).await.status,
        StatusCode::PRECONDITION_FAILED,
        "changed since"
    );
    let now = site.storage("HEAD", "cond/b", &[], "").await.headers["etag"].to_str().unwrap().to_owned();
    let unchanged = site.storage("GET", "cond/b", &[("if-none-match", &now)], "").await;
    assert_eq!((unchanged.status, unchanged.bytes.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(
        site.storage("GET", "cond/b", &[("if-match", &etag)], "").await.status,
        StatusCode::PRECONDITION_FAILED
    );
    let modified =
        site.storage("HEAD", "cond/b", &[], "").await.headers["last-modified"].to_str().unwrap().to_owned();
    assert_eq!(
        site.storage("GET", "cond/b", &[("if-modified-since", &modified)], "").await.status,
        StatusCode::NOT_MODIFIED
    );
    assert_eq!(
        site.storage("DELETE", "cond/b", &[("if-match", &etag)], "").await.status,
        StatusCode::PRECONDITION_FAILED
    );
}

#[tokio::test]
async fn tokens_and_signatures_authorize_and_all_else_is_refused() {
    let site = Site::new();
    container(&site, "auth").await;
    site.put_blob("auth/b", "x").await;
    let (scope, action) = site.guard.asked.lock().pop().unwrap();
    assert_eq!(scope, format!("{STORAGE_ID}/blobServices/default/containers/auth/blobs/b"));
    assert_eq!(
        (action.name, action.is_data),
        ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write", true)
    );
    site.guard.denied.lock().push("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read");
    let denied = site.storage("GET", "auth/b", &[], "").await;
    assert_eq!(
        (denied.status, denied.storage_code()),
        (StatusCode::FORBIDDEN, "AuthorizationPermissionMismatch")
    );
    for token in ["", "Bearer wrong", "Bearer foreign https://storage.azure.com", "Basic x"] {
        let reply = site.storage("GET", "auth/b", &[("authorization", token)], "").await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{token}");
        assert!(reply.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer authorization_uri="));
    }
    let own = site
        .storage(
            "HEAD",
            "auth?restype=container",
            &[("authorization", "Bearer https://acct.blob.core.windows.net")],
            "",
        )
        .await;
    assert_eq!(own.status, StatusCode::OK);

    let date = aro_base::Clock::now(&*site.clock).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let text = format!(
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n/acct/auth\ncomp:list\nprefix:a b\nrestype:container"
    );
    let sign = |key: &[u8], text: &str| {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
        format!("SharedKey acct:{}", STANDARD.encode(tag.as_ref()))
    };
    let key = STANDARD.decode(ACCOUNT_KEY).unwrap();
    let path = "auth?restype=container&comp=list&prefix=a%20b";
    let good = sign(&key, &text);
    let headers = [("authorization", good.as_str()), ("x-ms-date", date.as_str())];
    assert_eq!(site.storage("GET", path, &headers, "").await.status, StatusCode::OK);
    assert_eq!(
        site.storage("GET", "auth?restype=container&comp=list", &headers, "").await.storage_code(),
        "AuthenticationFailed"
    );
    let forged = sign(b"other", &text);
    let refused = site.storage("GET", path, &[("authorization", &forged), ("x-ms-date", &date)], "").await;
    assert_eq!((refused.status, refused.storage_code()), (StatusCode::FORBIDDEN, "AuthenticationFailed"));
    site.advance(SignedDuration::from_mins(16));
    assert_eq!(
        site.storage("GET", path, &headers, "").await.storage_code(),
        "AuthenticationFailed",
        "too old"
    );
    site.accounts.storage.lock().allow_shared_key = false;
    assert_eq!(
        site.storage("GET", path, &headers, "").await.storage_code(),
        "KeyBasedAuthenticationNotPermitted"
    );
}

#[tokio::test]
async fn an_account_has_a_byte_budget_that_deletion_gives_back() {
    let site = Site::new().restart_with(3 << 20);
    container(&site, "bud").await;
    let two = vec![1_u8; 2 << 20];
    assert_eq!(site.put_blob("bud/a", two.clone()).await.status, StatusCode::CREATED);
    let full = site.put_blob("bud/b", two.clone()).await;
    assert_eq!((full.status, full.storage_code()), (StatusCode::CONFLICT, "AccountCapacityExceeded"));
    let site = site.restart_with(3 << 20);
    assert_eq!(
        site.put_blob("bud/b", two.clone()).await.status,
        StatusCode::CONFLICT,
        "counted again after a restart"
    );
    site.storage("DELETE", "bud/a", &[], "").await;
    assert_eq!(site.put_blob("bud/b", two).await.status, StatusCode::CREATED);
    site.advance(SignedDuration::from_hours(2));
    site.blobs.maintain().await.unwrap();
    assert_eq!(site.storage("GET", "bud/b", &[], "").await.bytes.len(), 2 << 20);
    site.blobs.remove_account(STORAGE_ID).await.unwrap();
    assert_eq!(site.storage("GET", "bud/b", &[], "").await.storage_code(), "ContainerNotFound");
    let large = site.put_blob("bud/c", vec![0; (64 << 20) + 1]).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
}
