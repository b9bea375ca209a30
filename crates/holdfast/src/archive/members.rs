//! The members of an archive, one after the other.
//!
//! Headers are those of the `tar` crate; its iterators are not used, because they do not read all
//! that GNU tar reads. They end at the first damaged header, and refuse signed checksums and blank
//! sizes. They read PAX headers of any size into memory, end values of PAX records at a newline,
//! and ignore maps of sparse files in PAX records. They skip data after hard links that have none.
//!
//! *Invariant.* An archive cannot make this allocate without bound. Extension headers have at most
//! [`EXTENSION_MAX`] bytes, maps of sparse files a bounded number of runs, and content is read in
//! pieces.

use std::io::{self, Read};

use tar::{EntryType, GnuExtSparseHeader, Header};

use super::header::{self, Member};
use super::pax::Records;
use super::{damaged, sparse};

const BLOCK: usize = 512;
/// Most bytes of a PAX header, of all global ones, or of a long name.
const EXTENSION_MAX: u64 = 8 << 20;
/// Where a header has its checksum.
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// Messages about the archive, found while reading the next member.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Damage before the member, or in its header.
    pub(super) wrong: Vec<String>,
    /// Remarks that are no loss.
    pub(super) warnings: Vec<String>,
}

/// A reader of an archive.
pub(super) struct Members<'a> {
    archive: &'a mut dyn Read,
    /// Records that hold for all following members.
    global: Records,
    /// Unread bytes of the last member's data.
    left: u64,
    /// Bytes after those, up to a whole block.
    padding: u64,
    /// A block that was read ahead to find out whether a link has data.
    peeked: Option<Option<Header>>,
    /// Was any header or end mark read?
    begun: bool,
}

impl<'a> Members<'a> {
    pub(super) fn new(archive: &'a mut dyn Read) -> Self {
        Self {
            archive,
            global: Records::default(),
            left: 0,
            padding: 0,
            peeked: None,
            begun: false,
        }
    }

    /// The next member; `None` at the archive's end. Then `self` reads its data.
    ///
    /// # Errors
    /// `InvalidData`; `UnexpectedEof` within a header or data; those of reading.
    pub(super) fn next(&mut self, found: &mut Found) -> io::Result<Option<Member>> {
        self.skip_rest()?;
        let (mut name, mut target, mut records) = (None, None, None);
        loop {
            let known = found.wrong.len();
            let Some(header) = self.header(found)? else {
                break;
            };
            if found.wrong.len() > known {
                // The extensions belong to a skipped header.
                (name, target, records) = (None, None, None);
            }
            match header.entry_type() {
                EntryType::XGlobalHeader => {
                    let content = self.extension(&header)?;
                    self.global
                        .add_global(Records::parse(&content, &mut found.wrong));
                    if self.global.bytes() as u64 > EXTENSION_MAX {
                        return Err(damaged("its global headers are too large"));
                    }
                }
                // Solaris uses `X` for the header of one member.
                kind if matches!(kind.as_byte(), b'x' | b'X') => {
                    let content = self.extension(&header)?;
                    records = Some(Records::parse(&content, &mut found.wrong));
                }
                EntryType::GNULongName => name = Some(without_zero(self.extension(&header)?)),
                EntryType::GNULongLink => target = Some(without_zero(self.extension(&header)?)),
                _ => {
                    let records = self.global.under(records.take().unwrap_or_default());
                    let (name, target) = (name.take(), target.take());
                    let wrong = &mut found.wrong;
                    // A header without a size is skipped like a damaged one.
                    let Some(mut member) = Member::new(header, name, target, records, wrong) else {
                        wrong.push("a header before it has no size: skipped".to_owned());
                        continue;
                    };
                    self.begin_data(&mut member)?;
                    return Ok(Some(member));
                }
            }
        }
        if name.is_some() || target.is_some() || records.is_some() {
            return Err(cut_off("in front of a member, after its name"));
        }
        Ok(None)
    }

    /// Skips the rest of the last member's data.
    fn skip_rest(&mut self) -> io::Result<()> {
        let skipped = self.left + self.padding;
        let found = io::copy(&mut self.archive.take(skipped), &mut io::sink())?;
        if found < skipped {
            return Err(cut_off("in the middle of it"));
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    /// The next header with a correct checksum; other blocks are skipped. `None` at the archive's
    /// end: a block of zeros, or no more bytes.
    fn header(&mut self, found: &mut Found) -> io::Result<Option<Header>> {
        let mut skipped = 0_u64;
        let header = loop {
            match self.block()? {
                Some(header) if is_right(&header) => break Some(header),
                Some(header) if is_zero(&header) => {
                    if self.block()?.is_none_or(|second| !is_zero(&second)) {
                        let alone = "the archive ends with one block of zeros instead of two";
                        found.warnings.push(alone.to_owned());
                    }
                    self.begun = true;
                    break None;
                }
                Some(_) => skipped += 1,
                None if self.begun => {
                    if skipped == 0 {
                        let no_end = "the archive has no end mark: it may have been cut off";
                        found.warnings.push(no_end.to_owned());
                    }
                    break None;
                }
                None => return Err(damaged("this is no tar archive")),
            }
        };
        self.begun = true;
        if skipped > 0 {
            let place = if header.is_some() { "before" } else { "behind" };
            let what = format!("a header {place} it is damaged: {skipped} blocks were skipped");
            found.wrong.push(what);
        }
        Ok(header)
    }

    /// The next block; none at the end of the stream.
    fn block(&mut self) -> io::Result<Option<Header>> {
        if let Some(peeked) = self.peeked.take() {
            return Ok(peeked);
        }
        let mut header = Header::new_old();
        let bytes = header.as_mut_bytes();
        let mut filled = 0;
        while filled < BLOCK {
            match self.archive.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) if !self.begun => return Err(damaged("this is no tar archive")),
                Ok(0) => return Err(cut_off("in the middle of a header")),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(header))
    }

    /// The content of an extension header.
    fn extension(&mut self, header: &Header) -> io::Result<Vec<u8>> {
        let size = header::size(header).filter(|size| *size <= EXTENSION_MAX);
        let size = size.ok_or_else(|| damaged("a header before a member is damaged: its size"))?;
        (self.left, self.padding) = (size, padding(size));
        let mut content = vec![0; size as usize];
        self.read_exact(&mut content)?;
        self.skip_rest()?;
        Ok(content)
    }

    /// Prepares reading a member's data: reads the rest of a sparse member's map.
    fn begin_data(&mut self, member: &mut Member) -> io::Result<()> {
        let mut goes_on = member.map_goes_on();
        while goes_on {
            let mut block = GnuExtSparseHeader::new();
            (self.left, self.padding) = (BLOCK as u64, 0);
            self.read_exact(block.as_mut_bytes())?;
            let runs = member.runs.get_or_insert_default();
            let mut pieces = block.sparse().iter();
            let added = pieces.try_for_each(|piece| sparse::add_piece(runs, piece, member.size));
            member.broken = member.broken.take().or(added.err());
            goes_on = block.is_extended();
        }
        (self.left, self.padding) = (member.stored, padding(member.stored));
        if member.map_in_data {
            match sparse::from_data(self, member.size)? {
                Ok(runs) => member.runs = Some(runs),
                Err(why) => member.broken = Some(why),
            }
        }
        if let Some(runs) = &member.runs {
            let all: u64 = runs.iter().map(|run| run.end - run.start).sum();
            if all > self.left {
                member
                    .broken
                    .get_or_insert_with(|| sparse::DAMAGED.to_owned());
            }
        }
        self.skip_data_of_link(member.size_of_link())
    }

    /// Skips the data of a hard link. Old programs write the size of the file and no data. Others
    /// write the data again: then the next block is no header.
    fn skip_data_of_link(&mut self, size: u64) -> io::Result<()> {
        if size == 0 {
            return Ok(());
        }
        let peeked = self.block()?;
        if let Some(block) = &peeked
            && !is_right(block)
            && !is_zero(block)
        {
            self.left = size.saturating_sub(BLOCK as u64);
            self.padding = if self.left > 0 { padding(size) } else { 0 };
            return Ok(());
        }
        self.peeked = Some(peeked);
        Ok(())
    }
}

/// The data of the last member.
impl Read for Members<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(buf.len(), |left| left.min(buf.len()));
        if most == 0 {
            return Ok(0);
        }
        let read = self.archive.read(&mut buf[..most])?;
        if read == 0 {
            return Err(cut_off("in the middle of it"));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

fn cut_off(place: &str) -> io::Error {
    let what = format!("the archive ends {place}");
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}

fn padding(size: u64) -> u64 {
    (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64
}

fn is_zero(block: &Header) -> bool {
    block.as_bytes().iter().all(|byte| *byte == 0)
}

/// Is the checksum correct: the sum of all bytes, with blanks in the checksum field? Old programs
/// summed signed bytes.
fn is_right(header: &Header) -> bool {
    let blank = |(at, byte): (usize, &u8)| if CHECKSUM.contains(&at) { b' ' } else { *byte };
    let bytes = || header.as_bytes().iter().enumerate().map(blank);
    let unsigned: i64 = bytes().map(i64::from).sum();
    let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
    let said = header::number(&header.as_old().cksum);
    !is_zero(header) && said.is_some_and(|said| said == unsigned || said == signed)
}

fn without_zero(mut name: Vec<u8>) -> Vec<u8> {
    if let Some(end) = name.iter().position(|byte| *byte == 0) {
        name.truncate(end);
    }
    name
}
