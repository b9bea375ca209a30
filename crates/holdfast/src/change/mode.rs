//! Modes as chmod(1) takes them: `755`, `u+rwX,g-w`, `a=rX`, `g=u`, `+t`.

use crate::Permissions;

/// A change of modes.
///
/// ```
/// use holdfast::{ModeChange, Permissions};
///
/// let change: ModeChange = "u+rwX,go=".parse()?;
/// let mode = |mode, is_dir| change.apply(Permissions::from_mode(mode), is_dir, 0o022).mode();
/// assert_eq!(mode(0o644, false), 0o600);
/// assert_eq!(mode(0o644, true), 0o700);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeChange(Vec<Clause>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Clause {
    /// An octal mode. A directory keeps its set-id bits unless five digits are given.
    Number {
        mode: u32,
        sets_ids: bool,
    },
    Symbol(Symbol),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Symbol {
    /// The bits that it may change: of user, group or others. If the text names none of them: all
    /// bits.
    whom: u32,
    is_masked: bool,
    operator: u8,
    bits: Bits,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Bits {
    /// The bits of letters, and whether there is an `X`.
    Letters { bits: u32, execute: bool },
    /// A copy of the bits of user, group or others: the shift to those.
    Of(u32),
}

const USER: u32 = 0o4700;
const GROUP: u32 = 0o2070;
const OTHER: u32 = 0o1007;
const EXECUTE: u32 = 0o111;
const SET_ID: u32 = 0o6000;
/// From this many digits on, a mode sets the set-id bits of a directory.
const ALL_DIGITS: usize = 5;

impl std::str::FromStr for ModeChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no mode: such as 755, u+rwX or go-w");
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            let mode = u32::from_str_radix(text, 8)
                .ok()
                .filter(|mode| *mode <= 0o7777);
            let sets_ids = text.len() >= ALL_DIGITS;
            let mode = mode.ok_or_else(wrong)?;
            return Ok(Self(vec![Clause::Number { mode, sets_ids }]));
        }
        let mut clauses = Vec::new();
        for part in text.split(',') {
            let end = part.find(['+', '-', '=']).ok_or_else(wrong)?;
            let (whom, mut rest) = part.split_at(end);
            let (whom, is_masked) = parse_whom(whom).ok_or_else(wrong)?;
            while let Some(operator) = rest.bytes().next() {
                let end = rest[1..]
                    .find(['+', '-', '='])
                    .map_or(rest.len(), |at| at + 1);
                let bits = parse_bits(&rest[1..end]).ok_or_else(wrong)?;
                let symbol = Symbol {
                    whom,
                    is_masked,
                    operator,
                    bits,
                };
                clauses.push(Clause::Symbol(symbol));
                rest = &rest[end..];
            }
        }
        Ok(Self(clauses))
    }
}

fn parse_whom(text: &str) -> Option<(u32, bool)> {
    let mut whom = 0;
    for letter in text.bytes() {
        whom |= match letter {
            b'u' => USER,
            b'g' => GROUP,
            b'o' => OTHER,
            b'a' => USER | GROUP | OTHER,
            _ => return None,
        };
    }
    Some(if text.is_empty() {
        (USER | GROUP | OTHER, true)
    } else {
        (whom, false)
    })
}

fn parse_bits(text: &str) -> Option<Bits> {
    match text {
        "u" => return Some(Bits::Of(6)),
        "g" => return Some(Bits::Of(3)),
        "o" => return Some(Bits::Of(0)),
        _ => {}
    }
    let (mut bits, mut execute) = (0, false);
    for letter in text.bytes() {
        match letter {
            b'r' => bits |= 0o444,
            b'w' => bits |= 0o222,
            b'x' => bits |= EXECUTE,
            b'X' => execute = true,
            b's' => bits |= SET_ID,
            b't' => bits |= 0o1000,
            _ => return None,
        }
    }
    Some(Bits::Letters { bits, execute })
}

impl ModeChange {
    /// The mode after the change; `umask` masks clauses that name neither user, group nor others.
    #[must_use]
    pub fn apply(&self, before: Permissions, is_dir: bool, umask: u16) -> Permissions {
        let mut mode = before.mode() & 0o7777;
        for clause in &self.0 {
            mode = match clause {
                Clause::Number {
                    mode: new,
                    sets_ids,
                } => {
                    let kept = if is_dir && !sets_ids {
                        mode & SET_ID
                    } else {
                        0
                    };
                    new | kept
                }
                Clause::Symbol(symbol) => symbol.apply(mode, is_dir, u32::from(umask)),
            };
        }
        Permissions::from_mode(mode)
    }
}

impl Symbol {
    fn apply(&self, mode: u32, is_dir: bool, umask: u32) -> u32 {
        let bits = match self.bits {
            Bits::Letters { bits, execute } => {
                let execute = execute && (is_dir || mode & EXECUTE != 0);
                bits | if execute { EXECUTE } else { 0 }
            }
            Bits::Of(shift) => (mode >> shift & 0o7) * EXECUTE,
        };
        let masked = if self.is_masked { umask } else { 0 };
        // `OTHER` includes the sticky bit, so it is kept unless only user or group are named.
        let bits = bits & self.whom & !masked;
        match self.operator {
            b'+' => mode | bits,
            b'-' => mode & !bits,
            _ => {
                // A directory keeps the set-id bits that the clause does not set.
                let kept = if is_dir { mode & SET_ID } else { 0 };
                mode & !self.whom | bits | kept
            }
        }
    }
}
