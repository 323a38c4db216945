//! Tests the cipher with the vectors of its specification (C2SP, XAES-256-GCM).

use sha3::{
    Shake128,
    digest::{ExtendableOutput, Update, XofReader},
};
use xaes_256_gcm::{
    Nonce, Xaes256Gcm,
    aead::{AeadInOut, KeyInit},
};

use crate::hex;

fn encrypt(key: [u8; 32], nonce: [u8; 24], plain: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = plain.to_vec();
    let cipher = Xaes256Gcm::new(&key.into());
    let tag = cipher
        .encrypt_inout_detached(&Nonce::from(nonce), data, out.as_mut_slice().into())
        .unwrap();
    let mut back = out.clone();
    cipher
        .decrypt_inout_detached(&Nonce::from(nonce), data, back.as_mut_slice().into(), &tag)
        .unwrap();
    assert_eq!(back, plain);
    out.extend_from_slice(&tag);
    out
}

#[test]
fn the_vectors_of_the_specification() {
    let nonce = *b"ABCDEFGHIJKLMNOPQRSTUVWX";
    assert_eq!(
        encrypt([1; 32], nonce, b"XAES-256-GCM", b""),
        hex("ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271")
    );
    assert_eq!(
        encrypt([3; 32], nonce, b"XAES-256-GCM", b"c2sp.org/XAES-256-GCM"),
        hex("986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d")
    );
}

/// Ten thousand keys, nonces, texts and associated data, and one hash over all that comes out.
#[test]
fn the_accumulated_vectors() {
    let mut source = Shake128::default().finalize_xof();
    let mut sum = Shake128::default();
    for _ in 0..10_000 {
        let (mut key, mut nonce, mut length) = ([0; 32], [0; 24], [0]);
        source.read(&mut key);
        source.read(&mut nonce);
        source.read(&mut length);
        let mut plain = vec![0; length[0].into()];
        source.read(&mut plain);
        source.read(&mut length);
        let mut data = vec![0; length[0].into()];
        source.read(&mut data);
        sum.update(&encrypt(key, nonce, &plain, &data));
    }
    let mut hash = [0; 32];
    sum.finalize_xof().read(&mut hash);
    assert_eq!(
        hash.as_slice(),
        hex("e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939")
    );
}
