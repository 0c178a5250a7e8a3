use proptest::prelude::*;

use super::*;

fn read(decoder: &mut Decoder, block: &str) -> Result<Head, Fault> {
    let mut head = Head::default();
    decoder.read(&hex::decode(block.replace([' ', '\n'], "")).unwrap(), &mut head)?;
    Ok(head)
}

/// Tests RFC 7541, appendices C.5 and C.6: three answers of a connection, literal and with the Huffman code. The
/// dynamic table in this test has 256 bytes, so entries are evicted.
#[test]
fn the_answers_of_the_rfc() {
    let literal = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120
         474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738
         666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33
         3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let huffman = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718
         63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7
         b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    for blocks in [literal, huffman] {
        let mut decoder = Decoder::new();
        // 256, as a change of size in front of the first block.
        decoder.read(&[0x3f, 0xe1, 0x01], &mut Head::default()).unwrap();
        let statuses: Vec<_> = blocks.iter().map(|block| read(&mut decoder, block).unwrap().status).collect();
        assert_eq!(statuses, [Some(302), Some(307), Some(200)]);
    }
}

/// The decoder reads type and length from literal fields, from fields with indexed names, and from fields of the
/// dynamic table.
#[test]
fn what_an_answer_is_judged_by() {
    let mut decoder = Decoder::new();
    // content-type (static name, kept), content-length (static name, not kept).
    let block = [b"\x88\x5f\x10application/json".as_slice(), b"\x0f\x0d\x03130"].concat();
    let mut head = Head::default();
    decoder.read(&block, &mut head).unwrap();
    assert_eq!((head.status, head.length, &head.content_type[..]), (Some(200), Some(130), &b"application/json"[..]));
    assert_eq!(head.coding, Coding::Identity);
    // The coding under a static name.
    head.clear();
    decoder.read(b"\x88\x0f\x0b\x04gzip", &mut head).unwrap();
    assert_eq!(head.coding, Coding::Gzip);
    // The same type out of the table; another length under a name in full.
    head.clear();
    decoder.read(b"\x88\xbe\x00\x0econtent-length\x017", &mut head).unwrap();
    assert_eq!((head.status, head.length, &head.content_type[..]), (Some(200), Some(7), &b"application/json"[..]));
    // A table of size zero is empty.
    head.clear();
    decoder.read(b"\x20\x88", &mut head).unwrap();
    assert!(decoder.read(b"\xbe", &mut head).is_err());
}

#[test]
fn what_is_broken_is_refused() {
    for (block, text) in [
        ("80", "a field is in no table"),
        ("be", "a field is in no table"),
        ("7e 01 61", "a field is in no table"),
        ("48 03 33", "a block breaks off in a text"),
        ("48", "a block breaks off in a number"),
        ("48 84 ff ff ff ff", "a text has an end in its middle"),
        ("48 83 ff ff ff", "a text does not end as it should"),
        ("ff ff ff ff ff 0f", "a number is larger than any that makes sense"),
        ("3f e2 1f", "the table grows beyond 4 KiB"),
        ("88 20", "the table changes its size in the middle of a block"),
        ("88 88", "an answer has two statuses"),
        ("48 02 32 30", "a :status is no status"),
        ("88 5c 01 31 5c 01 32", "an answer has two different content-lengths"),
        ("88 5c 01 61", "a content-length is no number"),
    ] {
        assert_eq!(read(&mut Decoder::new(), block).unwrap_err().text, text, "{block}");
    }
}

proptest! {
    /// For any input, the decoder does not panic and its table stays within its limit.
    #[test]
    fn anything_may_come(blocks in prop::collection::vec(any::<Vec<u8>>(), 1..8)) {
        let mut decoder = Decoder::new();
        for block in blocks {
            if decoder.read(&block, &mut Head::default()).is_err() {
                break;
            }
        }
    }
}
