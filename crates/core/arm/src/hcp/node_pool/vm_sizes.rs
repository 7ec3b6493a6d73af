//! The virtual machine sizes that node pools can have. Families with a `p` after the number of cores are Arm64.

/// Every size, by family.
#[rustfmt::skip]
pub const VM_SIZES: [&str; 168] = [
    // D*s_v3
    "Standard_D4s_v3",
    "Standard_D8s_v3",
    "Standard_D16s_v3",
    "Standard_D32s_v3",
    // D*s_v4
    "Standard_D4s_v4",
    "Standard_D8s_v4",
    "Standard_D16s_v4",
    "Standard_D32s_v4",
    "Standard_D64s_v4",
    // D*s_v5
    "Standard_D4s_v5",
    "Standard_D8s_v5",
    "Standard_D16s_v5",
    "Standard_D32s_v5",
    "Standard_D64s_v5",
    "Standard_D96s_v5",
    // D*s_v6
    "Standard_D2s_v6",
    "Standard_D4s_v6",
    "Standard_D8s_v6",
    "Standard_D16s_v6",
    "Standard_D32s_v6",
    "Standard_D48s_v6",
    "Standard_D64s_v6",
    "Standard_D96s_v6",
    "Standard_D128s_v6",
    "Standard_D192s_v6",
    // D*as_v4
    "Standard_D4as_v4",
    "Standard_D8as_v4",
    "Standard_D16as_v4",
    "Standard_D32as_v4",
    "Standard_D64as_v4",
    "Standard_D96as_v4",
    // D*as_v5
    "Standard_D4as_v5",
    "Standard_D8as_v5",
    "Standard_D16as_v5",
    "Standard_D32as_v5",
    "Standard_D64as_v5",
    "Standard_D96as_v5",
    // D*pds_v6
    "Standard_D2pds_v6",
    "Standard_D4pds_v6",
    "Standard_D8pds_v6",
    "Standard_D16pds_v6",
    "Standard_D32pds_v6",
    "Standard_D48pds_v6",
    "Standard_D64pds_v6",
    "Standard_D96pds_v6",
    // D*plds_v6
    "Standard_D2plds_v6",
    "Standard_D4plds_v6",
    "Standard_D8plds_v6",
    "Standard_D16plds_v6",
    "Standard_D32plds_v6",
    "Standard_D48plds_v6",
    "Standard_D64plds_v6",
    "Standard_D96plds_v6",
    // D*pls_v6
    "Standard_D2pls_v6",
    "Standard_D4pls_v6",
    "Standard_D8pls_v6",
    "Standard_D16pls_v6",
    "Standard_D32pls_v6",
    "Standard_D48pls_v6",
    "Standard_D64pls_v6",
    "Standard_D96pls_v6",
    // D*ps_v6
    "Standard_D2ps_v6",
    "Standard_D4ps_v6",
    "Standard_D8ps_v6",
    "Standard_D16ps_v6",
    "Standard_D32ps_v6",
    "Standard_D48ps_v6",
    "Standard_D64ps_v6",
    "Standard_D96ps_v6",
    // E*s_v3
    "Standard_E4s_v3",
    "Standard_E8s_v3",
    "Standard_E16s_v3",
    "Standard_E32s_v3",
    // E*s_v4
    "Standard_E4s_v4",
    "Standard_E8s_v4",
    "Standard_E16s_v4",
    "Standard_E20s_v4",
    "Standard_E32s_v4",
    "Standard_E48s_v4",
    "Standard_E64s_v4",
    // E*s_v5
    "Standard_E4s_v5",
    "Standard_E8s_v5",
    "Standard_E16s_v5",
    "Standard_E20s_v5",
    "Standard_E32s_v5",
    "Standard_E48s_v5",
    "Standard_E64s_v5",
    "Standard_E96s_v5",
    // E*s_v6
    "Standard_E2s_v6",
    "Standard_E4s_v6",
    "Standard_E8s_v6",
    "Standard_E16s_v6",
    "Standard_E20s_v6",
    "Standard_E32s_v6",
    "Standard_E48s_v6",
    "Standard_E64s_v6",
    "Standard_E96s_v6",
    "Standard_E128s_v6",
    // E*is_v6
    "Standard_E192is_v6",
    // E*as_v4
    "Standard_E4as_v4",
    "Standard_E8as_v4",
    "Standard_E16as_v4",
    "Standard_E20as_v4",
    "Standard_E32as_v4",
    "Standard_E48as_v4",
    "Standard_E64as_v4",
    "Standard_E96as_v4",
    // E*as_v5
    "Standard_E8as_v5",
    "Standard_E16as_v5",
    "Standard_E20as_v5",
    "Standard_E32as_v5",
    "Standard_E48as_v5",
    "Standard_E64as_v5",
    "Standard_E96as_v5",
    // E*pds_v6
    "Standard_E2pds_v6",
    "Standard_E4pds_v6",
    "Standard_E8pds_v6",
    "Standard_E16pds_v6",
    "Standard_E32pds_v6",
    "Standard_E48pds_v6",
    "Standard_E64pds_v6",
    "Standard_E96pds_v6",
    // E*ps_v6
    "Standard_E2ps_v6",
    "Standard_E4ps_v6",
    "Standard_E8ps_v6",
    "Standard_E16ps_v6",
    "Standard_E32ps_v6",
    "Standard_E48ps_v6",
    "Standard_E64ps_v6",
    "Standard_E96ps_v6",
    // E*ids_v4
    "Standard_E80ids_v4",
    // E*is_v4
    "Standard_E80is_v4",
    // E*ds_v5
    "Standard_E96ds_v5",
    // E*ids_v5
    "Standard_E104ids_v5",
    // E*is_v5
    "Standard_E104is_v5",
    // F*s_v2
    "Standard_F4s_v2",
    "Standard_F8s_v2",
    "Standard_F16s_v2",
    "Standard_F32s_v2",
    "Standard_F72s_v2",
    // L*s_v3
    "Standard_L8s_v3",
    "Standard_L16s_v3",
    "Standard_L32s_v3",
    "Standard_L48s_v3",
    "Standard_L64s_v3",
    // L*s_v4
    "Standard_L2s_v4",
    "Standard_L4s_v4",
    "Standard_L8s_v4",
    "Standard_L16s_v4",
    "Standard_L32s_v4",
    "Standard_L48s_v4",
    "Standard_L64s_v4",
    "Standard_L80s_v4",
    "Standard_L96s_v4",
    // NC*s_v3
    "Standard_NC6s_v3",
    "Standard_NC12s_v3",
    "Standard_NC24s_v3",
    // NC*rs_v3
    "Standard_NC24rs_v3",
    // NC*as_T4_v3
    "Standard_NC4as_T4_v3",
    "Standard_NC8as_T4_v3",
    "Standard_NC16as_T4_v3",
    "Standard_NC64as_T4_v3",
    // NC*ads_A100_v4
    "Standard_NC24ads_A100_v4",
    "Standard_NC48ads_A100_v4",
    "Standard_NC96ads_A100_v4",
    // NC*ads_H100_v5
    "Standard_NC40ads_H100_v5",
    // NC*adis_H100_v5
    "Standard_NC80adis_H100_v5",
    // ND*isr_H200_v5
    "Standard_ND96isr_H200_v5",
];

/// Whether a size is offered; names are matched to the letter.
pub fn is_offered(size: &str) -> bool {
    VM_SIZES.contains(&size)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_168_sizes_all_different() {
        assert_eq!(VM_SIZES.len(), 168);
        assert_eq!(VM_SIZES.iter().collect::<BTreeSet<_>>().len(), 168);
        assert!(VM_SIZES.iter().all(|size| size.starts_with("Standard_")));
    }

    #[test]
    fn sizes_are_matched_to_the_letter() {
        assert!(is_offered("Standard_D8s_v3"));
        assert!(is_offered("Standard_E96pds_v6"));
        assert!(!is_offered("standard_d8s_v3"));
        assert!(!is_offered("Standard_D2s_v3"));
    }
}
