//! The debug information of a program or library.

use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, RunTimeEndian};
use anyhow::Result;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeMap;
use std::fs;

type Reader = EndianSlice<'static, RunTimeEndian>;

const UNNAMED: &str = "?";

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// The function as the program knows it, with its path and generics.
    pub(crate) function: String,
    /// Empty where it is not known.
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// What a file tells of its addresses.
pub(crate) struct DebugInfo {
    context: Context<Reader>,
    /// By address: length and name.
    symbols: BTreeMap<u64, (u64, String)>,
}

impl DebugInfo {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not what the system runs.
    pub(crate) fn load(path: &str) -> Result<Self> {
        // For the life of the process: there are a handful of modules, and each is read once.
        let bytes: &'static [u8] = fs::read(path)?.leak();
        let file = object::File::parse(bytes)?;
        let endian = if file.is_little_endian() {
            RunTimeEndian::Little
        } else {
            RunTimeEndian::Big
        };
        let dwarf = Dwarf::load(|id| {
            // A section that is missing, or compressed, tells nothing.
            let section = file.section_by_name(id.name());
            let data = section.and_then(|section| section.data().ok());
            Ok::<_, addr2line::gimli::Error>(Reader::new(data.unwrap_or(&[]), endian))
        })?;
        let mut symbols = BTreeMap::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if let (true, Ok(name)) = (symbol.is_definition(), symbol.name()) {
                symbols.insert(symbol.address(), (symbol.size(), name.to_owned()));
            }
        }
        Ok(Self {
            context: Context::from_dwarf(dwarf)?,
            symbols,
        })
    }

    /// What is at an address: the functions that were inlined there, innermost first.
    pub(crate) fn sites(&self, address: u64) -> Vec<Site> {
        let mut found = Vec::new();
        if let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref();
                let location = frame.location.as_ref();
                let file = location.and_then(|location| location.file);
                found.push(Site {
                    function: name
                        .and_then(|name| name.demangle().ok())
                        .map_or_else(|| UNNAMED.to_owned(), std::borrow::Cow::into_owned),
                    file: file.unwrap_or_default().to_owned(),
                    line: location.and_then(|location| location.line).unwrap_or(0),
                });
            }
        }
        // Tables of lines know inlined functions only: the one around them is a symbol.
        let around = self.symbol(address, address + 1);
        match (found.last_mut(), around) {
            (Some(last), Some(function)) if last.function == UNNAMED => last.function = function,
            (None, Some(function)) => found.push(Site {
                function,
                file: String::new(),
                line: 0,
            }),
            _ => {}
        }
        found
    }

    /// The first symbol with bytes in `start..end`.
    pub(crate) fn symbol(&self, start: u64, end: u64) -> Option<String> {
        let before = self.symbols.range(..=start).next_back();
        let (_, (_, name)) = before
            .filter(|&(&at, &(size, _))| at + size > start)
            .or_else(|| self.symbols.range(start..end).next())?;
        Some(addr2line::demangle_auto(name.into(), None).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Map;

    static MARK: [u64; 16] = [7; 16];

    #[inline(never)]
    fn some_function() -> u64 {
        MARK.iter().sum()
    }

    fn here(address: u64) -> (DebugInfo, u64) {
        let map = Map::now().expect("Linux shows it");
        let (module, offset) = map.locate(address).expect("mapped");
        let info = DebugInfo::load(&map.modules[module].0).expect("this program");
        (info, offset)
    }

    #[test]
    fn a_function_is_found_in_its_source() {
        assert_eq!(some_function(), 7 * 16);
        let (info, address) = here(some_function as *const () as u64);
        let sites = info.sites(address);
        let found = sites.iter().any(|site| {
            site.file.ends_with("audit/src/debug_info.rs")
                && site.function.ends_with("some_function")
        });
        assert!(found, "{sites:?}");
    }

    #[test]
    fn a_static_is_known_by_name_from_any_byte() {
        let (info, address) = here(std::ptr::from_ref(&MARK) as u64);
        let name = info
            .symbol(address + 100, address + 164)
            .expect("has a symbol");
        assert!(name.contains("MARK"), "{name}");
    }

    #[test]
    fn what_is_no_program_is_an_error() {
        assert!(DebugInfo::load("/proc/self/status").is_err());
        assert!(DebugInfo::load("[vdso]").is_err());
    }
}
