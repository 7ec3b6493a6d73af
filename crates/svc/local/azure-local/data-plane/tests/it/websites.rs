use http::StatusCode;

use crate::site::Site;

#[tokio::test]
async fn a_website_serves_its_container_without_authentication() {
    let site = Site::new();
    site.storage("PUT", "$web?restype=container", &[], "").await;
    let html = [("x-ms-blob-type", "BlockBlob"), ("x-ms-blob-content-type", "text/html")];
    site.storage("PUT", "$web/index.html", &html, "home").await;
    site.storage("PUT", "$web/t/c/.well-known/openid-configuration", &html, "{}").await;
    site.storage("PUT", "$web/404.html", &html, "lost").await;
    assert_eq!(site.website("GET", "").await.status, StatusCode::NOT_FOUND, "off");
    site.accounts.storage.lock().static_website = true;
    let home = site.website("GET", "").await;
    assert_eq!((home.status, home.text().as_str()), (StatusCode::OK, "home"));
    assert_eq!(home.headers["content-type"], "text/html");
    assert_eq!(site.website("GET", "t/c/.well-known/openid-configuration").await.text(), "{}");
    assert_eq!(site.website("HEAD", "index.html").await.bytes.len(), 0);
    assert_eq!(site.website("GET", "none").await.status, StatusCode::NOT_FOUND);
    assert_eq!(site.website("PUT", "index.html").await.status, StatusCode::METHOD_NOT_ALLOWED);

    site.accounts.storage.lock().static_website = false;
    let properties = "<StorageServiceProperties><StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument><ErrorDocument404Path>404.html</ErrorDocument404Path></StaticWebsite></StorageServiceProperties>";
    let set = site.storage("PUT", "?restype=service&comp=properties", &[], properties).await;
    assert_eq!(set.status, StatusCode::ACCEPTED, "{}", set.text());
    let site = site.restart();
    let lost = site.website("GET", "none").await;
    assert_eq!((lost.status, lost.text().as_str()), (StatusCode::NOT_FOUND, "lost"));
    let shown = site.storage("GET", "?restype=service&comp=properties", &[], "").await.text();
    assert!(
        shown.contains("<StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>"),
        "{shown}"
    );
    let bad = site.storage("PUT", "?restype=service&comp=properties", &[], "<x>").await;
    assert_eq!(bad.storage_code(), "InvalidXmlDocument");
}
