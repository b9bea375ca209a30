//! Arrays and rows in the binary form that PostgreSQL gives them.

/// Bytes that are not in that form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the database sent an answer that is not well formed")]
pub(crate) struct Malformed;

/// Takes bytes off the front.
fn take<'a>(raw: &mut &'a [u8], len: usize) -> Result<&'a [u8], Malformed> {
    let (head, tail) = raw.split_at_checked(len).ok_or(Malformed)?;
    *raw = tail;
    Ok(head)
}

fn take_i32(raw: &mut &[u8]) -> Result<i32, Malformed> {
    let (head, tail) = raw.split_first_chunk().ok_or(Malformed)?;
    *raw = tail;
    Ok(i32::from_be_bytes(*head))
}

/// A value with its length before it; -1 is null.
fn take_value<'a>(raw: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    match take_i32(raw)? {
        -1 => Ok(None),
        len => {
            let len = usize::try_from(len).map_err(|_| Malformed)?;
            take(raw, len).map(Some)
        }
    }
}

/// The elements of an array of one dimension without nulls.
pub(crate) fn array(mut raw: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let dimensions = take_i32(&mut raw)?;
    let (_has_null, _type) = (take_i32(&mut raw)?, take_i32(&mut raw)?);
    if dimensions == 0 {
        return Ok(Vec::new());
    }
    let count = take_i32(&mut raw)?;
    let _first = take_i32(&mut raw)?;
    let count = usize::try_from(count).map_err(|_| Malformed)?;
    // Each element takes at least the four bytes of its length.
    if dimensions != 1 || count > raw.len() / 4 {
        return Err(Malformed);
    }
    let elements = (0..count).map(|_| take_value(&mut raw)?.ok_or(Malformed));
    elements.collect()
}

/// The fields of a row with this number of them.
pub(crate) fn fields<const N: usize>(mut raw: &[u8]) -> Result<[Option<&[u8]>; N], Malformed> {
    if usize::try_from(take_i32(&mut raw)?) != Ok(N) {
        return Err(Malformed);
    }
    let mut fields = [None; N];
    for field in &mut fields {
        let _type = take_i32(&mut raw)?;
        *field = take_value(&mut raw)?;
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[i32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn arrays_and_rows_are_read() {
        assert_eq!(array(&words(&[0, 0, 17])), Ok(Vec::new()));
        let raw = words(&[1, 0, 23, 2, 1, 4, 7, 0]);
        assert_eq!(array(&raw), Ok(vec![&[0, 0, 0, 7][..], &[]]));
        let raw = words(&[2, 23, 4, 9, 23, -1]);
        assert_eq!(fields(&raw), Ok([Some(&[0, 0, 0, 9][..]), None]));
    }

    #[test]
    fn what_is_not_well_formed_is_an_error() {
        for raw in [
            vec![],
            words(&[1, 0, 23, i32::MAX, 1, 4, 7]),
            words(&[1, 0, 23, -1, 1]),
            words(&[2, 0, 23, 1, 1, 4, 7]),
            words(&[1, 0, 23, 1, 1, -1]),
            words(&[1, 0, 23, 1, 1, 5, 7]),
            words(&[1, 0, 23, 1, 1, -2, 7]),
        ] {
            assert_eq!(array(&raw), Err(Malformed), "{raw:?}");
        }
        for raw in [vec![], words(&[1, 23, 4]), words(&[2, 23, -1, 23, -1])] {
            assert_eq!(fields::<1>(&raw), Err(Malformed), "{raw:?}");
        }
    }
}
