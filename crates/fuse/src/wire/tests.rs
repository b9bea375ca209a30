//! The decoder against what the kernel sends, and against everything else.

use super::{
    Body, Dialect, Header, LockType, Malformed, Opcode, Request,
    layout::{self, InHeader},
};
use holdfast_types::{Ino, SetTime, Time};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use zerocopy::IntoBytes;

/// The bytes of a request: header, structure, rest.
fn request(opcode: Opcode, fixed: &[u8], rest: &[u8]) -> Vec<u8> {
    let header = InHeader {
        len: (40 + fixed.len() + rest.len()) as u32,
        opcode: opcode as u32,
        unique: 2,
        nodeid: 1,
        ..Default::default()
    };
    [header.as_bytes(), fixed, rest].concat()
}

/// Decodes as read from the device, and takes everything out that can be.
fn decode(bytes: &[u8], dialect: Dialect) -> Result<Request<'_>, Malformed> {
    let header = Header::decode(bytes)?;
    let request = Request::decode(&header, Body::Flat(&bytes[40..]), dialect)?;
    exhaust(&request);
    Ok(request)
}

/// Walks every list that a request carries.
fn exhaust(request: &Request<'_>) -> usize {
    match request {
        Request::BatchForget(forgets) => forgets.iter().count(),
        Request::Symlink { extensions, .. }
        | Request::Mknod { extensions, .. }
        | Request::Mkdir { extensions, .. } => extensions.groups().count(),
        Request::Create(create) | Request::TmpFile(create) => create.extensions.groups().count(),
        _ => 0,
    }
}

const EXT: Dialect = Dialect { setxattr_ext: true };

/// Well-formed requests about names: structures given as 32-bit words, 64-bit fields as two.
fn about_names() -> Vec<Vec<u8>> {
    let (create, rename) = ([0o101, 0o644, 0o22, 1], [3, 0, 1, 0]);
    let mut extended = request(
        Opcode::Create,
        create.as_bytes(),
        &[&b"name\0\0\0\0"[..], [16u32, 32, 1, 500].as_bytes()].concat(),
    );
    // The extensions' length in units of 8 bytes.
    extended[36] = 2;
    vec![
        extended,
        request(Opcode::Lookup, &[], b"name\0"),
        request(Opcode::Symlink, &[], b"name\0target\0"),
        request(Opcode::Mknod, [0u32; 4].as_bytes(), b"name\0"),
        request(Opcode::Mkdir, [0o755u32, 0o77].as_bytes(), b"d\0"),
        request(Opcode::Unlink, &[], b"name\0"),
        request(Opcode::Rmdir, &[], b"name\0"),
        request(Opcode::Rename, [3u32, 0].as_bytes(), b"a\0b\0"),
        request(Opcode::Rename2, rename.as_bytes(), b"a\0b\0"),
        request(Opcode::Link, [8u32, 0].as_bytes(), b"name\0"),
        request(Opcode::Create, create.as_bytes(), b"name\0"),
        request(Opcode::TmpFile, create.as_bytes(), b"/\0"),
        request(Opcode::SetXattr, [3u32, 1, 1, 0].as_bytes(), b"user.a\0abc"),
        request(Opcode::GetXattr, [0u32; 2].as_bytes(), b"user.a\0"),
        request(Opcode::RemoveXattr, &[], b"user.a\0"),
    ]
}

/// One well-formed request of every kind.
fn samples() -> Vec<Vec<u8>> {
    let lock = [0, 0, 0, 0, 0, 0, u32::MAX, u32::MAX, 1, 7, 1, 0];
    let mut all = about_names();
    all.extend([
        request(Opcode::Forget, [9u32, 0].as_bytes(), &[]),
        request(
            Opcode::BatchForget,
            [2u32, 0, 5, 0, 6, 0, 7, 0, 8, 0].as_bytes(),
            &[],
        ),
        request(
            Opcode::SetAttr,
            [&[0xfff], &[5; 21][..]].concat().as_bytes(),
            &[],
        ),
        request(
            Opcode::Write,
            [0u32, 0, 9, 0, 4, 7, 0, 0, 0, 0].as_bytes(),
            b"data",
        ),
        request(
            Opcode::Init,
            [&[7, 45, 1, 1 << 30, 1 << 9], &[0; 11][..]]
                .concat()
                .as_bytes(),
            &[],
        ),
        request(Opcode::GetLk, lock.as_bytes(), &[]),
        request(Opcode::SetLk, lock.as_bytes(), &[]),
        request(Opcode::SetLkW, lock.as_bytes(), &[]),
        request(Opcode::Ioctl, [0u32, 0, 0, 0, 0, 0, 2, 9].as_bytes(), b"in"),
    ]);
    // The others are a structure without anything behind it, of at most 88 bytes.
    for &opcode in Opcode::ALL {
        if !all.iter().any(|bytes| bytes[4] == opcode as u8) {
            all.push(request(opcode, &[0; 88], &[]));
        }
    }
    all
}

#[test]
fn well_formed_requests_of_every_kind_are_understood() {
    let samples = samples();
    for bytes in &samples {
        let decoded = decode(bytes, EXT);
        let unserved = [Opcode::Bmap, Opcode::Poll].map(|opcode| opcode as u8);
        assert_eq!(
            matches!(decoded, Err(_) | Ok(Request::Unknown)),
            unserved.contains(&bytes[4]),
            "{bytes:?} {decoded:?}"
        );
    }
    for &opcode in Opcode::ALL {
        assert!(
            samples.iter().any(|bytes| bytes[4] == opcode as u8),
            "{opcode:?} has no sample"
        );
    }
}

#[test]
fn fields_come_out_where_the_abi_has_them() {
    let set = layout::SetAttrIn {
        valid: 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 11,
        size: 77,
        mode: 0o104_755,
        atime: (-5i64).cast_unsigned(),
        atime_nsec: 9,
        ..Default::default()
    };
    let bytes = request(Opcode::SetAttr, set.as_bytes(), &[]);
    let Ok(Request::SetAttr(decoded)) = decode(&bytes, EXT) else {
        panic!()
    };
    assert_eq!(decoded.set.perm, Some(0o4755));
    assert_eq!(decoded.set.size, Some(77));
    assert_eq!(decoded.set.atime, Some(SetTime::At(Time::new(-5, 9))));
    assert_eq!(
        (decoded.set.mtime, decoded.set.uid),
        (Some(SetTime::Now), None)
    );
    assert!(decoded.kill_suidgid && decoded.fh.is_none());

    let rename = layout::Rename2In {
        newdir: 3,
        flags: 2,
        padding: 0,
    };
    let bytes = request(Opcode::Rename2, rename.as_bytes(), b"old\0new\xff\n\0");
    let Ok(Request::Rename {
        name,
        new_parent,
        new_name,
        flags,
    }) = decode(&bytes, EXT)
    else {
        panic!()
    };
    assert_eq!(
        (name, new_parent, new_name, flags),
        (&b"old"[..], Ino(3), &b"new\xff\n"[..], 2)
    );

    let lock = layout::LkIn {
        start: 1,
        end: 2,
        kind: 2,
        pid: 3,
        ..Default::default()
    };
    let bytes = request(Opcode::SetLkW, lock.as_bytes(), &[]);
    let Ok(Request::SetLkW(lock)) = decode(&bytes, EXT) else {
        panic!()
    };
    assert_eq!(
        (lock.kind, lock.pid, lock.flock),
        (LockType::Unlock, 3, false)
    );
}

#[test]
fn both_forms_of_setxattr_are_told_apart_by_what_was_agreed() {
    let short = layout::SetXattrShort { size: 3, flags: 2 };
    let bytes = request(Opcode::SetXattr, short.as_bytes(), b"user.a\0abc");
    let Ok(Request::SetXattr(set)) = decode(&bytes, Dialect::default()) else {
        panic!()
    };
    assert_eq!(
        (set.name, set.value, set.flags),
        (&b"user.a"[..], &b"abc"[..], 2)
    );
    assert!(decode(&bytes, EXT).is_err());
}

#[test]
fn the_ring_form_reads_the_same_as_the_flat_one() {
    for bytes in samples() {
        let header = Header::decode(&bytes).unwrap();
        let body = &bytes[40..];
        let flat = Request::decode(&header, Body::Flat(body), EXT).unwrap();
        // Only what stands behind the structure is payload there; where it starts follows from
        // the flat form: names and data end the request.
        for split in 0..=body.len().min(128) {
            let mut fixed = [0; 128];
            fixed[..split].copy_from_slice(&body[..split]);
            let payload = &body[split..];
            let ring = Request::decode(
                &header,
                Body::Split {
                    fixed: &fixed,
                    payload,
                },
                EXT,
            );
            if let Ok(ring) = ring
                && format!("{ring:?}") == format!("{flat:?}")
            {
                break;
            }
            assert_ne!(
                split,
                body.len().min(128),
                "no split of {flat:?} reads the same"
            );
        }
    }
}

#[test]
fn mutated_requests_never_panic() {
    let mut random = ChaCha8Rng::seed_from_u64(0xf0_5e);
    let samples = samples();
    let (mut good, mut bad) = (0u32, 0u32);
    for _ in 0..300_000 {
        let mut bytes = samples[random.random_range(0..samples.len())].clone();
        for _ in 0..random.random_range(1..5) {
            mutate(&mut random, &mut bytes);
        }
        let dialect = Dialect {
            setxattr_ext: random.random(),
        };
        match decode(&bytes, dialect) {
            Ok(_) => good += 1,
            Err(_) => bad += 1,
        }
        if let (Ok(header), Some(body)) = (Header::decode(&bytes), bytes.get(40..)) {
            let (fixed, payload) = body.split_at(body.len().min(random.random_range(0..129)));
            if let Ok(request) = Request::decode(&header, Body::Split { fixed, payload }, dialect) {
                exhaust(&request);
            }
        }
    }
    assert!(
        good > 10_000 && bad > 10_000,
        "{good} understood, {bad} refused"
    );
}

fn mutate(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    let at = random.random_range(0..bytes.len().max(1));
    match random.random_range(0..6) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << random.random_range(0..8),
        1 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)],
        2 => bytes.truncate(at),
        3 => bytes.extend((0..random.random_range(0..64)).map(|_| random.random::<u8>())),
        4 if bytes.len() > 6 => bytes[4] = random.random_range(0..60),
        // Lengths that agree with the bytes get further.
        _ if bytes.len() > 40 => {
            let len = bytes.len() as u32;
            bytes[..4].copy_from_slice(len.as_bytes());
            if random.random() {
                bytes[36] = random.random_range(0..4);
            }
        }
        _ => {}
    }
}
