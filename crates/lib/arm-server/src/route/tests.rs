use proptest::prelude::*;

use super::*;

const BASE: &str = "/subscriptions/S1/resourceGroups/My-RG/providers/Contoso.Farm";

fn table() -> RouteTable<&'static str, ()> {
    let group = "/subscriptions/{subscription}/resourceGroups/{group}";
    let farms = format!("{group}/providers/Contoso.Farm/farms");
    let routes = [
        ("/subscriptions/{subscription}".to_owned(), "subscription"),
        (group.to_owned(), "group"),
        ("/providers/Contoso.Farm/operations".to_owned(), "operations"),
        (farms.clone(), "farms"),
        (format!("{farms}/{{farm}}"), "farm"),
        (format!("{farms}/{{farm}}/fields/{{field}}"), "field"),
        (format!("{farms}/{{farm}}/harvest"), "harvest"),
    ];
    RouteTable::new(routes.map(|(pattern, endpoint)| Route::unchecked(pattern, endpoint, &["GET"]))).unwrap()
}

proptest! {
    #[test]
    fn no_path_panics_and_no_name_hides_a_slash(path in "\\PC{0,120}") {
        if let Ok((_, matched)) = table().find(&path) {
            for name in matched.names {
                prop_assert!(!name.contains('/'));
            }
        }
    }

    #[test]
    fn names_come_back_as_they_were_written(farm in "[a-zA-Z0-9._()-]{1,60}", field in "[a-zA-Z0-9-]{1,20}") {
        let table = table();
        let (_, matched) = table.find(&format!("{BASE}/farms/{farm}/FIELDS/{field}")).unwrap();
        prop_assert_eq!((matched.endpoint, matched.name("farm"), matched.name("field")), ("field", &*farm, &*field));
    }
}

#[test]
fn every_pattern_finds_its_own_route() {
    let table = table();
    for route in table.routes() {
        let path = route.pattern.replace(['{', '}'], "x");
        assert_eq!(table.find(&path).map(|(_, matched)| matched.endpoint), Ok(route.endpoint), "{path}");
    }
}

#[test]
fn words_match_in_any_case_and_ids_have_canonical_words() {
    let table = table();
    let id = |path: &str| table.find(path).unwrap().1.resource_id().to_string();
    assert_eq!(
        id("/SUBSCRIPTIONS/S1/RESOURCEGROUPS/My-RG/PROVIDERS/CONTOSO.FARM/FARMS/F1/fields/Gs"),
        format!("{BASE}/farms/F1/fields/Gs")
    );
    assert_eq!(id(&format!("{BASE}/farms/F1/HARVEST")), format!("{BASE}/farms/F1"));
    assert_eq!(id("/subscriptions/S1"), "/subscriptions/S1");
    assert_eq!(id("/subscriptions/S1/resourcegroups/G"), "/subscriptions/S1/resourceGroups/G");
}

#[test]
fn the_root_id_is_that_of_the_parent() {
    let table = table();
    let (_, field) = table.find(&format!("{BASE}/farms/F1/fields/gs")).unwrap();
    assert_eq!(field.root_id().as_str(), format!("{BASE}/farms/F1"));
    assert_eq!((field.subscription(), field.group(), field.name("none")), ("S1", "My-RG", ""));
}

#[test]
fn doubled_and_trailing_slashes_collapse_as_az_needs() {
    assert_eq!(table().find(&format!("{BASE}//farms/x/")).unwrap().1.endpoint, "farm");
}

#[test]
fn encoded_slashes_and_broken_encoding_are_malformed_not_guessed() {
    let table = table();
    let refused = |path: &str| table.find(path).map(|(_, matched)| matched.endpoint).unwrap_err();
    assert_eq!(refused("/subscriptions/a%2Fb"), NoMatch::Malformed);
    assert_eq!(refused("/subscriptions/%FF"), NoMatch::Malformed);
    assert_eq!(refused("/subscriptions/a%00b"), NoMatch::Malformed);
    assert_eq!(refused("/nothing/%FF"), NoMatch::Malformed);
    assert_eq!(refused("/nothing/here"), NoMatch::Unknown);
    assert_eq!(refused(&"/a".repeat(40)), NoMatch::Unknown);
}

#[test]
fn a_pattern_is_registered_once_and_well_formed() {
    let route = |pattern: &str| Route::<_, ()>::unchecked(pattern, 1, &["GET"]);
    let duplicate = RouteTable::new([route("/a/{b}"), route("/A/{c}")]).unwrap_err();
    assert_eq!(duplicate, RouteError::Duplicate("/A/{c}".to_owned()));
    for malformed in ["a", "/a//b", "/a/", ""] {
        let error = RouteTable::new([route(malformed)]).unwrap_err();
        assert_eq!(error, RouteError::Malformed(malformed.to_owned()));
    }
}

#[test]
fn resource_group_names_follow_arms_rule() {
    assert!(is_resource_group_name("rg_(1)-é.x"));
    for bad in ["", "ends.", "a b", "a/b", &"x".repeat(91)] {
        assert!(!is_resource_group_name(bad), "{bad}");
    }
}

#[test]
fn a_word_that_leads_nowhere_gives_way_to_a_name() {
    let routes = [
        ("/subscriptions/{subscription}/providers/{namespace}", "provider"),
        ("/subscriptions/{subscription}/providers/Contoso.Farm/farms", "farms"),
    ];
    let table = RouteTable::new(
        routes.map(|(pattern, endpoint)| Route::<_, ()>::unchecked(pattern, endpoint, &["GET"])),
    )
    .unwrap();
    let found = |path: &str| {
        table.find(path).map(|(_, matched)| (matched.endpoint, matched.name("namespace").to_owned()))
    };
    assert_eq!(found("/subscriptions/s/providers/Contoso.Farm"), Ok(("provider", "Contoso.Farm".to_owned())));
    assert_eq!(found("/subscriptions/s/providers/Contoso.Farm/farms"), Ok(("farms", String::new())));
    assert!(found("/subscriptions/s/providers/Contoso.Farm/fields").is_err());
}

#[test]
fn a_route_at_any_scope_matches_behind_every_id_and_keeps_the_scope() {
    let route =
        Route::<_, ()>::unchecked("/providers/Contoso.Locks/locks/{name}", "lock", &["GET"]).at_any_scope();
    let table = RouteTable::new([route]).unwrap();
    for scope in [
        "",
        "/subscriptions/S1",
        "/subscriptions/S1/resourceGroups/g",
        BASE,
        "/subscriptions/S1/resourceGroups/g/providers/A.B/c/d",
    ] {
        let (_, matched) = table.find(&format!("{scope}/PROVIDERS/contoso.locks/locks/n")).unwrap();
        assert_eq!((matched.endpoint, matched.scope(), matched.name("name")), ("lock", scope, "n"));
    }
    assert!(table.find("/subscriptions/S1/providers/Contoso.Locks/locks").is_err());
}
