use rustls::crypto::cipher::{AeadKey, Iv};

use super::*;

/// Sender and receiver of one direction, for each kind of cipher.
fn pairs() -> Vec<(Half, Half)> {
    let aes = || ConnectionTrafficSecrets::Aes256Gcm { key: AeadKey::from([7; 32]), iv: Iv::new([9; 12]) };
    let chacha = || ConnectionTrafficSecrets::Chacha20Poly1305 { key: AeadKey::from([7; 32]), iv: Iv::new([9; 12]) };
    let half = |secrets, version| Half::new((5, secrets), version).unwrap_or_else(|broken| panic!("{}", broken.0));
    let (old, new) = (ProtocolVersion::TLSv1_2, ProtocolVersion::TLSv1_3);
    vec![
        (half(aes(), new), half(aes(), new)),
        (half(chacha(), new), half(chacha(), new)),
        (half(aes(), old), half(aes(), old)),
        (half(chacha(), old), half(chacha(), old)),
    ]
}

/// Cuts bytes into records and opens them.
fn open_all(receiving: &mut Half, wire: &mut [u8]) -> Vec<(u8, Vec<u8>)> {
    let (mut opened, mut at) = (Vec::new(), 0);
    while let Some(length) = length(&wire[at..]).unwrap() {
        let (content_type, text) = receiving.open(&mut wire[at..at + length]).unwrap();
        opened.push((content_type, text.to_vec()));
        at += length;
    }
    assert_eq!(at, wire.len());
    opened
}

/// In whatever parts a text is given, it is cut into full records, and opening the records gives the text.
#[test]
fn what_is_sealed_is_opened() {
    let text: Vec<u8> = (0..251).cycle().take(3 * PLAINTEXT_MAX_BYTES + 77).collect();
    for (mut sending, mut receiving) in pairs() {
        for parts in
            [vec![&text[..]], vec![&text[..1], &[], &text[1..PLAINTEXT_MAX_BYTES], &text[PLAINTEXT_MAX_BYTES..]]]
        {
            let mut wire = Vec::new();
            sending.seal(APPLICATION_DATA, &parts, &mut wire).unwrap();
            let opened = open_all(&mut receiving, &mut wire);
            assert!(opened.iter().all(|(content_type, _)| *content_type == APPLICATION_DATA));
            let lengths: Vec<usize> = opened.iter().map(|(_, text)| text.len()).collect();
            assert_eq!(lengths, [PLAINTEXT_MAX_BYTES, PLAINTEXT_MAX_BYTES, PLAINTEXT_MAX_BYTES, 77]);
            assert!(opened.into_iter().flat_map(|(_, text)| text).eq(text.iter().copied()));
        }
        let mut wire = Vec::new();
        sending.seal(ALERT, &[&[1, 0]], &mut wire).unwrap();
        assert_eq!(open_all(&mut receiving, &mut wire), [(ALERT, vec![1, 0])]);
    }
}

/// Zeros after a record's content type are padding (RFC 8446, section 5.4). A record that contains only zeros is
/// invalid.
#[test]
fn padding_is_no_text() {
    let (mut sending, mut receiving) = pairs().remove(0);
    // The given content type follows the text, so this is one with its padding and the last zero of it.
    for (text, opened) in [
        (vec![b'a', 0, APPLICATION_DATA, 0, 0], Ok((APPLICATION_DATA, vec![b'a', 0]))),
        (vec![0, 0], Err(Broken("a record has no content type"))),
    ] {
        let mut wire = Vec::new();
        sending.seal(0, &[&text], &mut wire).unwrap();
        let found = receiving.open(&mut wire).map(|(content_type, text)| (content_type, text.to_vec()));
        assert_eq!(found, opened);
        receiving.sequence = sending.sequence;
    }
}

/// A record with any changed byte, a missing record, or a repeated record cannot be opened.
#[test]
fn what_was_touched_is_broken() {
    for (mut sending, mut receiving) in pairs() {
        let mut wire = Vec::new();
        sending.seal(APPLICATION_DATA, &[b"text"], &mut wire).unwrap();
        // The version is fixed, and TLS 1.2 protects the length by what it opens.
        for at in (0..wire.len()).filter(|at| !(1..5).contains(at)) {
            let mut touched = wire.clone();
            touched[at] ^= 1;
            assert!(receiving.open(&mut touched).is_err(), "byte {at}");
        }
        for short in [HEADER_BYTES, HEADER_BYTES + 1, HEADER_BYTES + TAG_BYTES] {
            assert!(receiving.open(&mut wire.clone()[..short]).is_err(), "{short} bytes");
        }
        let again = &mut wire.clone();
        assert!(receiving.open(&mut wire).is_ok() && receiving.open(again).is_err(), "a record counts once");
    }
    let (_, mut receiving) = pairs().remove(0);
    let unsealed = receiving.open(&mut [ALERT, 3, 3, 0, 2, 1, 0]).map(|_| ());
    assert_eq!(unsealed, Err(Broken("a record came unsealed")));
}

#[test]
fn lengths_have_a_bound() {
    assert_eq!(length(&[23, 3, 3, 1]), Ok(None));
    assert_eq!(length(&[23, 3, 3, 1, 2]), Ok(Some(5 + 258)));
    let most = u16::try_from(RECORD_MAX_BYTES - HEADER_BYTES).unwrap();
    let header = |length: u16| [&[23, 3, 3][..], &length.to_be_bytes()].concat();
    assert_eq!(length(&header(most)), Ok(Some(RECORD_MAX_BYTES)));
    assert_eq!(length(&header(most + 1)), Err(Broken("a record is longer than TLS allows")));
}

#[test]
fn a_key_is_used_up() {
    let (mut sending, _) = pairs().remove(0);
    sending.sequence = SEALED_MAX - 1;
    assert!(!sending.exhausted());
    sending.seal(APPLICATION_DATA, &[b"x"], &mut Vec::new()).unwrap();
    assert!(sending.exhausted());
}
