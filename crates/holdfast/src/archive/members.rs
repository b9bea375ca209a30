//! The members of an archive, one after the other.
//!
//! *Invariant.* What an archive makes this allocate is bounded, whatever it says of itself: headers beside a
//! member's own have [`EXTENSION_MAX`] bytes at most, maps of sparse files a bounded number of runs, and
//! content goes through in pieces.

use std::io::{self, Read};

use tar::{EntryType, GnuExtSparseHeader, Header};

use super::damaged;
use super::header::Member;
use super::pax::Records;
use super::sparse;

const BLOCK: usize = 512;
/// Most bytes of a PAX header, or of a long name.
const EXTENSION_MAX: u64 = 8 << 20;
/// Where a header has its checksum.
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// An archive that is read.
pub(super) struct Members<'a> {
    archive: &'a mut dyn Read,
    /// Records that hold for all that follow.
    global: Records,
    /// Bytes of the last member's data that were not read yet.
    left: u64,
    /// Bytes behind those up to a whole block.
    padding: u64,
}

impl<'a> Members<'a> {
    pub(super) fn new(archive: &'a mut dyn Read) -> Self {
        Self {
            archive,
            global: Records::default(),
            left: 0,
            padding: 0,
        }
    }

    /// The next member; its data is read from here next.
    ///
    /// # Errors
    /// `InvalidData`; `UnexpectedEof` in the middle of something; those of reading.
    pub(super) fn next(&mut self) -> io::Result<Option<Member>> {
        self.skip_rest()?;
        let (mut name, mut target, mut records) = (None, None, Records::default());
        loop {
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            match header.entry_type() {
                EntryType::XHeader => records = Records::parse(&self.extension(&header)?)?,
                EntryType::XGlobalHeader => {
                    let more = Records::parse(&self.extension(&header)?)?;
                    self.global = self.global.over(more);
                }
                EntryType::GNULongName => name = Some(without_zero(self.extension(&header)?)),
                EntryType::GNULongLink => target = Some(without_zero(self.extension(&header)?)),
                _ => {
                    let records = self.global.over(records);
                    let mut member = Member::new(header, name, target, records)?;
                    self.rest_of_map(&mut member)?;
                    return Ok(Some(member));
                }
            }
        }
    }

    /// Reads data of the last member; 0 at its end.
    ///
    /// # Errors
    /// `UnexpectedEof` if the archive ends before; those of reading.
    pub(super) fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(buf.len(), |left| left.min(buf.len()));
        if most == 0 {
            return Ok(0);
        }
        let read = self.archive.read(&mut buf[..most])?;
        if read == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the archive ends in the middle of a file",
            ));
        }
        self.left -= read as u64;
        Ok(read)
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        let skipped = self.left + self.padding;
        let found = io::copy(&mut self.archive.take(skipped), &mut io::sink())?;
        if found < self.left {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    /// The next header; none at the archive's end: a block of zeros, or no more bytes.
    fn header(&mut self) -> io::Result<Option<Header>> {
        let mut header = Header::new_old();
        let bytes = header.as_mut_bytes();
        let mut filled = 0;
        while filled < BLOCK {
            match self.archive.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(damaged("the archive ends in the middle of a header")),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let said = header.cksum();
        if !said.is_ok_and(|said| sums(header.as_bytes()).contains(&i64::from(said))) {
            return Err(damaged(
                "this is no tar archive, or damaged: the checksum of a header is wrong",
            ));
        }
        Ok(Some(header))
    }

    /// The content of a header that is about another one.
    fn extension(&mut self, header: &Header) -> io::Result<Vec<u8>> {
        let size = header.entry_size()?;
        if size > EXTENSION_MAX {
            return Err(damaged(format!(
                "a header of {size} bytes (at most {EXTENSION_MAX})"
            )));
        }
        let mut content = vec![0; size as usize];
        self.archive.read_exact(&mut content)?;
        self.padding = padding(size);
        self.skip_rest()?;
        Ok(content)
    }

    /// Reads what is still to come of a sparse member's map; the data is next then.
    fn rest_of_map(&mut self, member: &mut Member) -> io::Result<()> {
        let mut goes_on = member.map_goes_on();
        while goes_on {
            let mut block = GnuExtSparseHeader::new();
            self.archive.read_exact(block.as_mut_bytes())?;
            let runs = member.runs.get_or_insert_default();
            for piece in block.sparse().iter().filter(|piece| !piece.is_empty()) {
                sparse::add(runs, piece.offset()?, piece.length()?, member.size)?;
            }
            goes_on = block.is_extended();
        }
        (self.left, self.padding) = (member.stored, padding(member.stored));
        if member.map_in_data {
            let (runs, taken) = sparse::from_data(&mut self.archive, member.size)?;
            member.runs = Some(runs);
            let left = self.left.checked_sub(taken);
            self.left = left.ok_or_else(|| damaged("the map of a sparse file is damaged"))?;
        }
        if let Some(runs) = &member.runs {
            let all: u64 = runs.iter().map(|run| run.end - run.start).sum();
            if all > self.left {
                return Err(damaged("the map of a sparse file is damaged"));
            }
        }
        Ok(())
    }
}

fn padding(size: u64) -> u64 {
    (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64
}

/// The sum of a header's bytes, where its own is taken as blanks; and as old programs had it, with signs.
fn sums(header: &[u8]) -> [i64; 2] {
    let bytes = || {
        let blank = |(at, byte): (usize, &u8)| if CHECKSUM.contains(&at) { b' ' } else { *byte };
        header.iter().enumerate().map(blank)
    };
    [
        bytes().map(i64::from).sum(),
        bytes().map(|byte| i64::from(byte.cast_signed())).sum(),
    ]
}

fn without_zero(mut name: Vec<u8>) -> Vec<u8> {
    if let Some(end) = name.iter().position(|byte| *byte == 0) {
        name.truncate(end);
    }
    name
}
