//! Lists in pages.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::support::{GA, path_of, put_cluster, registered};

async fn names_of_all_pages(
    arm: &aro_fixtures::TestClient,
    first: String,
) -> Result<(Vec<String>, Vec<usize>)> {
    let (mut names, mut sizes, mut next) = (Vec::new(), Vec::new(), Some(first));
    while let Some(path) = next {
        let page = arm.get(&path).await?.expect(200)?.json();
        let items = page["value"].as_array().cloned().unwrap_or_default();
        sizes.push(items.len());
        names.extend(items.iter().filter_map(|item| item["name"].as_str().map(str::to_owned)));
        next = page["nextLink"].as_str().map(|link| path_of(link).map(str::to_owned)).transpose()?;
    }
    Ok((names, sizes))
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_pages_that_follow_each_other_without_gap_or_repetition() -> Result<()> {
    let (stack, names) = registered().await?;
    let arm = stack.arm();
    for index in 0..45 {
        put_cluster(arm, &names, &format!("c{index:02}")).await?;
    }
    let mut other = names.clone();
    other.group = "rg-Test-2".to_owned();
    put_cluster(arm, &other, "elsewhere").await?;

    let by_group = format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters?api-version={GA}",
        names.subscription,
        names.group.to_uppercase()
    );
    let (found, sizes) = names_of_all_pages(arm, by_group.clone()).await?;
    assert_eq!(sizes, [20, 20, 5]);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 45, "no repetition");
    assert!(!found.contains(&"elsewhere".to_owned()), "a group whose name begins alike is another group");

    let (_, sizes) = names_of_all_pages(arm, format!("{by_group}&$top=7")).await?;
    assert_eq!(sizes, [7, 7, 7, 7, 7, 7, 3], "$top counts on every page, the first included");

    let by_subscription = format!(
        "/subscriptions/{}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters?api-version={GA}&$TOP=100",
        names.subscription
    );
    assert_eq!(names_of_all_pages(arm, by_subscription.clone()).await?.0.len(), 46);

    for bad in ["$top=0", "$top=many", "$skipToken=garbage"] {
        let reply = arm.get(&format!("{by_group}&{bad}")).await?.expect(400)?;
        assert_eq!(reply.code(), "InvalidParameter", "{bad}");
    }
    // The token of one list is not good for another.
    let first = arm.get(&by_group).await?.json();
    let link = first["nextLink"].as_str().unwrap_or_default().to_owned();
    let token = link.split("skipToken=").nth(1).unwrap_or_default();
    let reply = arm.get(&format!("{by_subscription}&$skipToken={token}")).await?;
    assert!(reply.status.as_u16() == 400, "{}", reply.status);
    stack.stop().await
}
