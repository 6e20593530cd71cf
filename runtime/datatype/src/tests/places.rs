//! Where single bytes lie, against the list of all bytes.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_tell_each_byte(recipe in recipes()) {
        let (made, naive) = build(&recipe);
        let touched = naive.bytes(1);
        for packed in 0..touched.len() {
            let runs = made.runs_at(packed as u64);
            let mut told: Vec<i64> = (0..runs.bytes as i64).map(|byte| runs.disp + byte).collect();
            for index in 0..runs.more as i64 {
                told.extend((0..runs.block as i64).map(|byte| runs.next + index * runs.stride + byte));
            }
            prop_assert!(runs.bytes > 0);
            prop_assert_eq!(&touched[packed..packed + told.len()], told.as_slice());
        }
        if let (Some((block, stride)), Some(&first)) = (made.endless(), touched.first()) {
            let byte = |at: i64| first + at / block as i64 * stride + at % block as i64;
            let all = naive.bytes(3);
            let told: Vec<i64> = (0..all.len() as i64).map(byte).collect();
            prop_assert_eq!(all, told);
        }
    }

    #[test]
    fn bytes_in_order_are_found_by_displacement(recipe in recipes()) {
        let (made, naive) = build(&recipe);
        let touched = naive.bytes(1);
        let order = made.order();
        prop_assert_eq!(order.is_disjoint, touched.is_sorted_by(|a, b| a < b));
        prop_assert!(order.is_ascending || !order.is_disjoint);
        prop_assert!(order.is_ascending || !touched.is_sorted());
        if order.is_disjoint && !touched.is_empty() {
            let (low, high) = (touched[0], touched[touched.len() - 1]);
            prop_assert_eq!(order.end, high + 1);
            for disp in low - 2..high + 3 {
                let before = touched.partition_point(|&it| it < disp) as u64;
                prop_assert_eq!(made.packed_before(disp), before);
            }
        }
    }
}
