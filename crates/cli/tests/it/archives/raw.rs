//! Archives of hand-made headers, which no current program writes.

use holdfast_testkit::rng::Rng;

const BLOCK: usize = 512;
const MAGICS: [&[u8; 8]; 3] = [b"ustar\x0000", b"ustar  \0", b"\0\0\0\0\0\0\0\0"];

/// A header's fields, as they are written.
struct Header {
    name: Vec<u8>,
    mode: Vec<u8>,
    uid: Vec<u8>,
    gid: Vec<u8>,
    size: Vec<u8>,
    mtime: Vec<u8>,
    kind: u8,
    link: Vec<u8>,
    magic: [u8; 8],
    devices: [Vec<u8>; 2],
    prefix: Vec<u8>,
    signed: bool,
}

impl Header {
    fn new(name: impl Into<Vec<u8>>, kind: u8) -> Self {
        let mode: &[u8] = if kind == b'5' { b"0000755" } else { b"0000644" };
        Self {
            name: name.into(),
            mode: mode.into(),
            uid: b"0000007".into(),
            gid: b"0000010".into(),
            size: b"00000000000".into(),
            mtime: b"00000000011".into(),
            kind,
            link: Vec::new(),
            magic: *MAGICS[0],
            devices: [b"0000001".into(), b"0000002".into()],
            prefix: Vec::new(),
            signed: false,
        }
    }

    fn with(mut self, data: &[u8]) -> Vec<u8> {
        self.size = format!("{:011o}", data.len()).into_bytes();
        let mut bytes = self.bytes();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |field: &[u8], len: usize| {
            let end = bytes.len() + len;
            bytes.extend(&field[..field.len().min(len)]);
            bytes.resize(end, 0);
        };
        put(&self.name, 100);
        put(&self.mode, 8);
        put(&self.uid, 8);
        put(&self.gid, 8);
        put(&self.size, 12);
        put(&self.mtime, 12);
        put(b"        ", 8);
        put(&[self.kind], 1);
        put(&self.link, 100);
        put(&self.magic, 8);
        put(b"", 64);
        put(&self.devices[0], 8);
        put(&self.devices[1], 8);
        put(&self.prefix, 155);
        put(b"", 12);
        let value = |byte: &u8| match self.signed {
            true => i64::from(byte.cast_signed()),
            false => i64::from(*byte),
        };
        let sum: i64 = bytes.iter().map(value).sum();
        bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes
    }
}

/// A PAX header, of one member or of all that follow.
fn records(kind: u8, pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut content = Vec::new();
    for (key, value) in pairs {
        let rest = key.len() + value.len() + 3;
        let digits = (rest + 1..).find(|sum| rest + sum.to_string().len() == *sum);
        content.extend(format!("{} {key}={value}\n", digits.unwrap_or(rest)).into_bytes());
    }
    Header::new("PaxHeaders/x", kind).with(&content)
}

/// A number in one of the forms of old programs.
fn number(rng: &mut Rng, len: usize, plain: &[u8]) -> Vec<u8> {
    match rng.below(16) {
        0 => b" ".repeat(len),
        1 => Vec::new(),
        2 => [&b"  "[..], &plain[2..]].concat(),
        3 => [&plain[1..], b" "].concat(),
        4 => {
            let mut base256 = vec![0x80];
            base256.resize(len - 2, 0);
            base256.extend([rng.bits() as u8, rng.bits() as u8]);
            base256
        }
        5 => b"junk".into(),
        6 => b"0000799".into(),
        7 => [b"\0", &plain[..len - 2]].concat(),
        8 if len == 12 => vec![0xff; len],
        _ => plain.into(),
    }
}

/// Few names, so that they occur again with other types.
fn name(rng: &mut Rng) -> Vec<u8> {
    let names: [&[u8]; 13] = [
        b"a",
        b"b",
        b"c",
        b"d",
        b"d/e",
        b"d/f",
        b"./g",
        b"/abs/a",
        b"d//g",
        b"\xe4\xff",
        b"d/",
        b".",
        b"q/r/s",
    ];
    match rng.below(40) {
        0 => b"../out".into(),
        1 => b"d/../a".into(),
        _ => rng.pick(&names).to_vec(),
    }
}

fn member(rng: &mut Rng) -> Vec<u8> {
    let kinds = b"000000001122345567DVNZM\0\0";
    let mut header = Header::new(name(rng), *rng.pick(kinds));
    header.magic = **rng.pick(&MAGICS);
    header.signed = rng.one_in(8);
    if rng.one_in(3) {
        header.uid = number(rng, 8, b"0001750");
        header.gid = number(rng, 8, b"0000012");
    }
    if rng.one_in(3) {
        header.mtime = number(rng, 12, b"01234567012");
    }
    if rng.one_in(6) {
        header.mode = number(rng, 8, b"0000640");
    }
    if rng.one_in(30) {
        header.size = number(rng, 12, b"00000000000");
        return header.bytes();
    }
    if header.magic == *MAGICS[0] && header.name != b"." && rng.one_in(10) {
        header.prefix = b"pre/fix".into();
    }
    let data = vec![b'x'; *rng.pick(&[0, 1, 512, 700])];
    match header.kind {
        b'1' => {
            header.link = name(rng);
            if header.link == b"d/" {
                header.link.pop();
            }
            // Old programs: the size of the file, and no data.
            header.size = rng.pick(&[&b"00000000000"[..], b"00000000005"]).to_vec();
            header.bytes()
        }
        b'2' => {
            header.name = format!("link{}", rng.below(3)).into_bytes();
            header.link = b"some/where".into();
            header.bytes()
        }
        b'3' | b'4' | b'6' => header.bytes(),
        b'5' => header.bytes(),
        b'D' => header.with(b"Ya\0Nb\0\0"),
        _ if header.name.ends_with(b"/") => header.bytes(),
        _ => header.with(&data),
    }
}

/// Records of a member.
const EXTENSIONS: [&[(&str, &str)]; 10] = [
    &[("path", "from/pax")],
    &[("mtime", "-1.5"), ("atime", "7")],
    &[("mtime", "1234567890.123456789"), ("comment", "none")],
    &[("uid", "70000"), ("gid", "4000000000")],
    &[("linkpath", "a")],
    &[("uid", "-1")],
    &[("mtime", "later")],
    &[("SCHILY.xattr.user.a%3Db%25c%20", "v\nw")],
    &[(
        "SCHILY.acl.access",
        "user::rw-,user:7:rwx:7,group::r--,mask::rwx,other::---",
    )],
    &[(
        "SCHILY.acl.access",
        "user::rw-\nuser:7:rwx\ngroup::r--\nmask::rwx\nother::---\n",
    )],
];

/// The headers before a member.
fn extension(rng: &mut Rng) -> Vec<u8> {
    let pairs = rng.pick(&EXTENSIONS);
    match rng.below(8) {
        0 => {
            Header::new("././@LongLink", b'L').with(&[&b"long/".repeat(30)[..], b"name\0"].concat())
        }
        1 => Header::new("././@LongLink", b'K').with(b"a\0"),
        // GNU tar decodes the names of global attributes once for each member.
        2 if !pairs[0].0.starts_with("SCHILY.xattr") => records(b'g', &pairs[..1]),
        3 => records(b'X', pairs),
        4 => Header::new("PaxHeaders/x", b'x').with(b"12 path=no\n99 a=b\n"),
        _ => records(b'x', pairs),
    }
}

/// A sparse file in one of GNU's three PAX forms, with as much data as its map says or less. (Maps
/// of no run are not written, and GNU tar forgets the size of such a file.)
fn sparse(rng: &mut Rng) -> Vec<u8> {
    let map = *rng.pick(&[
        "0,512,8192,512,20000,0",
        "4096,1024,20000,0",
        "8,512,0,512",
        "0,512,1,600",
    ]);
    let data = vec![b'x'; *rng.pick(&[1024, 1024, 1024, 700])];
    let data = &data[..];
    let numbers: Vec<&str> = map.split(',').filter(|text| !text.is_empty()).collect();
    match rng.below(3) {
        0 => {
            let pairs = [
                ("GNU.sparse.size", "20000"),
                ("GNU.sparse.numblocks", "3"),
                ("GNU.sparse.map", map),
            ];
            [
                records(b'x', &pairs),
                Header::new("sparse", b'0').with(data),
            ]
            .concat()
        }
        1 => {
            let mut pairs = vec![("GNU.sparse.size", "20000"), ("GNU.sparse.numblocks", "3")];
            for pair in numbers.chunks(2) {
                pairs.push(("GNU.sparse.offset", pair[0]));
                pairs.push(("GNU.sparse.numbytes", pair[1]));
            }
            [
                records(b'x', &pairs),
                Header::new("sparse", b'0').with(data),
            ]
            .concat()
        }
        _ => {
            let pairs = [
                ("GNU.sparse.major", "1"),
                ("GNU.sparse.minor", "0"),
                ("GNU.sparse.name", "named"),
                ("GNU.sparse.realsize", "20000"),
            ];
            let mut content =
                format!("{}\n{}\n", numbers.len() / 2, numbers.join("\n")).into_bytes();
            content.resize(BLOCK, 0);
            content.extend(data);
            [
                records(b'x', &pairs),
                Header::new("GNUSparseFile.1/x", b'0').with(&content),
            ]
            .concat()
        }
    }
}

/// An archive.
pub(crate) fn archive(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..rng.below(9) {
        match rng.below(10) {
            0..2 => {
                bytes.extend(extension(rng));
                bytes.extend(member(rng));
            }
            2 => bytes.extend(sparse(rng)),
            3 if rng.one_in(4) => bytes.extend([b'j'; BLOCK]),
            _ => bytes.extend(member(rng)),
        }
    }
    match rng.below(12) {
        0 => {}
        1 => bytes.extend([0; BLOCK]),
        2 => bytes.extend([0; 40 * BLOCK]),
        _ => bytes.extend([0; 2 * BLOCK]),
    }
    bytes
}
