use proptest::prelude::*;

use super::*;

const SUBNET: &str =
    "/subscriptions/S1/resourcegroups/My-RG/PROVIDERS/Microsoft.Network/virtualNetworks/v/subnets/s";

#[test]
fn the_words_arm_owns_are_canonical_and_all_else_keeps_its_case() {
    let id = ResourceId::parse(SUBNET).unwrap();
    assert_eq!(
        id.as_str(),
        "/subscriptions/S1/resourceGroups/My-RG/providers/Microsoft.Network/virtualNetworks/v/subnets/s"
    );
    assert_eq!(id.resource_type(), "Microsoft.Network/virtualNetworks/subnets");
    assert_eq!((id.subscription(), id.resource_group(), id.name()), (Some("S1"), Some("My-RG"), "s"));
    assert_eq!(id.parent().unwrap().name(), "v");
    assert!(id.parent().unwrap().parent().is_none());
}

#[test]
fn ids_that_differ_in_case_are_equal() {
    let a = ResourceId::parse(SUBNET).unwrap();
    let b = ResourceId::parse(&SUBNET.to_uppercase()).unwrap();
    assert_eq!(a, b);
    assert!(b.is_type("microsoft.network/virtualnetworks/subnets"));
}

#[test]
fn what_is_not_an_id_says_why() {
    for (text, why) in [
        ("", IdError::NoLeadingSlash),
        ("subscriptions/s", IdError::NoLeadingSlash),
        ("/", IdError::EmptySegment),
        ("/subscriptions", IdError::Unpaired("subscriptions".into())),
        ("/subscriptions//x", IdError::EmptySegment),
        ("/tenants/x", IdError::BadRoot),
        ("/subscriptions/s/other/x", IdError::BadRoot),
        ("/subscriptions/s/providers/NS", IdError::NoType("NS".into())),
        ("/subscriptions/s/providers/NS/t", IdError::Unpaired("t".into())),
        ("/subscriptions/s?x", IdError::BadCharacter),
    ] {
        assert_eq!(ResourceId::parse(text).unwrap_err(), why, "{text}");
    }
    assert_eq!(
        ResourceId::parse(&format!("/subscriptions/{}", "x".repeat(3000))).unwrap_err(),
        IdError::TooLong
    );
}

proptest! {
    #[test]
    fn parsing_never_panics_and_printing_parses_again(text in "\\PC{0,80}") {
        if let Ok(id) = ResourceId::parse(&text) {
            let again = ResourceId::parse(id.as_str()).unwrap();
            prop_assert_eq!(again.as_str(), id.as_str());
        }
    }

    #[test]
    fn well_formed_ids_keep_their_names(sub in "[a-zA-Z0-9-]{1,20}", rg in "[a-zA-Z0-9_.()-]{1,20}", name in "[a-zA-Z0-9-]{1,20}") {
        let text = format!("/SUBSCRIPTIONS/{sub}/resourcegroups/{rg}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/{name}");
        let id = ResourceId::parse(&text).unwrap();
        prop_assert_eq!(id.subscription(), Some(sub.as_str()));
        prop_assert_eq!(id.resource_group(), Some(rg.as_str()));
        prop_assert_eq!(id.name(), name.as_str());
        prop_assert_eq!(id.to_lower(), text.to_lowercase());
    }

    #[test]
    fn ids_are_ordered_as_their_lower_case_texts(a in "[a-cA-CéÉΣ]{1,24}", b in "[a-cA-CéÉΣ]{1,24}") {
        let id = |name: &str| ResourceId::parse(&format!("/subscriptions/0cd1e2f3/resourceGroups/{name}")).unwrap();
        let (a, b) = (id(&a), id(&b));
        prop_assert_eq!(a.cmp(&b), a.to_lower().cmp(&b.to_lower()));
        prop_assert_eq!(a == b, a.to_lower() == b.to_lower());
    }
}
