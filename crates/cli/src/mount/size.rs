//! Amounts in the format of tmpfs: `size=512m`, `size=25%`, `nr_inodes=10m`.

/// Parses an amount with an optional suffix k, m, g or t (powers of 1024), or a percentage of
/// `whole`.
pub(crate) fn parse_amount(text: &str, whole: Option<u64>) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let wrong = || match whole {
        Some(_) => format!("{text:?} is not a number of bytes (512m, 8g) or a percentage (25%)"),
        None => format!("{text:?} is not a number (1000000, 10m)"),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let shift = match (suffix.to_ascii_lowercase().as_str(), whole) {
        ("", _) => 0,
        ("k", _) => 10,
        ("m", _) => 20,
        ("g", _) => 30,
        ("t", _) => 40,
        ("%", Some(whole)) => {
            let part = u128::from(whole) * u128::from(number) / 100;
            return u64::try_from(part).map_err(|_| wrong());
        }
        _ => return Err(wrong()),
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| format!("{text:?} is too large"))
}

/// An amount of an argument of a command, not a percentage.
pub(crate) fn amount(text: &str) -> Result<u64, String> {
    parse_amount(text, None)
}

/// Bytes of memory of the machine.
pub(crate) fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // The fields' width depends on the processor.
    #[expect(
        clippy::useless_conversion,
        reason = "32-bit processors have narrower fields"
    )]
    u64::from(info.totalram).saturating_mul(u64::from(info.mem_unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_suffixes_of_1024_and_percentages_of_the_whole() {
        for (text, amount) in [
            ("0", 0),
            ("4096", 4096),
            ("2k", 2048),
            ("3M", 3 << 20),
            ("1g", 1 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(parse_amount(text, None), Ok(amount), "{text}");
        }
        assert_eq!(parse_amount("25%", Some(1 << 30)), Ok(1 << 28));
        assert_eq!(parse_amount("150%", Some(1000)), Ok(1500));
    }

    #[test]
    fn absurd_amounts_are_refused() {
        for text in [
            "",
            "k",
            "-1",
            "1.5g",
            "1kb",
            "10%",
            "99999999999999999999",
            "1 g",
            "0x10",
        ] {
            assert!(parse_amount(text, None).is_err(), "{text}");
        }
        assert!(
            parse_amount("17179869184g", None)
                .unwrap_err()
                .contains("too large")
        );
        assert!(parse_amount("99999999999999%", Some(u64::MAX)).is_err());
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(memory_bytes() > 1 << 24);
    }
}
