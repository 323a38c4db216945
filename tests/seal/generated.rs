//! Tests statements about envelopes on generated inputs.

use entable::{
    SealFault, Ticks, Value,
    seal::{ValueBinding, key_id_of, sealed_len},
};
use proptest::prelude::*;

use crate::key;

fn value() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        Just(None),
        any::<bool>().prop_map(|v| Some(v.into())),
        any::<i32>().prop_map(|v| Some(v.into())),
        any::<i64>().prop_map(|v| Some(v.into())),
        any::<u64>().prop_map(|v| Some(f64::from_bits(v).into())),
        any::<String>().prop_map(|v| Some(v.into())),
        any::<u128>().prop_map(|v| Some(uuid::Uuid::from_u128(v).into())),
        (0..=Ticks::MAX.get()).prop_map(|v| Some(Ticks::new(v).unwrap().into())),
        proptest::collection::vec(any::<u8>(), 0..200).prop_map(|v| Some(v.into())),
    ]
}

/// Compares bits, so that NaNs differ.
fn exact(value: &Option<Value>) -> String {
    match value {
        Some(Value::Double(v)) => format!("{:x}", v.to_bits()),
        other => format!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(
        value in value(), table in ".{0,8}", pk in ".{0,80}", rk in ".{0,80}", name in ".{1,8}",
        pad in 0_usize..300,
    ) {
        let place = ValueBinding { table: &table, partition_key: &pk, row_key: &rk, property: &name };
        let given = value.as_ref().map(Value::as_ref);
        let envelope = key(3).encrypt(&place, given, pad).unwrap();
        prop_assert_eq!(envelope.len(), sealed_len(given, pad));
        prop_assert_eq!(key_id_of(&envelope).unwrap(), Some(key(3).id()));
        prop_assert_eq!(exact(&key(3).decrypt(&place, &envelope).unwrap()), exact(&value));
    }

    /// Any other place, however its parts are cut.
    #[test]
    fn no_other_place_opens(
        one in proptest::array::uniform4("[ab]{0,3}"), two in proptest::array::uniform4("[ab]{0,3}"),
    ) {
        let place = |parts: &[String; 4]| {
            let [table, partition_key, row_key, property] = parts.clone();
            (table, partition_key, row_key, property)
        };
        let (table, partition_key, row_key, property) = &place(&one);
        let here = ValueBinding { table, partition_key, row_key, property };
        let (table, partition_key, row_key, property) = &place(&two);
        let there = ValueBinding { table, partition_key, row_key, property };
        let envelope = key(3).encrypt(&here, None, 0).unwrap();
        prop_assert_eq!(key(3).decrypt(&there, &envelope).is_ok(), one == two);
    }

    /// Bytes that nobody sealed, under the right header or not.
    #[test]
    fn nothing_forged_opens(bytes in proptest::collection::vec(any::<u8>(), 0..120), named: bool) {
        let mut bytes = bytes;
        if named && bytes.len() >= 11 {
            bytes[..3].copy_from_slice(&[0xae, 0x7e, 1]);
            bytes[3..11].copy_from_slice(key(3).id().as_bytes());
        }
        let error = key(3).decrypt(&crate::PLACE, &bytes).unwrap_err();
        prop_assert!(error.is_decrypt());
        if named && bytes.len() >= 52 {
            prop_assert_eq!(error.seal_fault(), Some(SealFault::Authentication));
        }
    }
}
