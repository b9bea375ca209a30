//! Where the objects of a file system are.

use super::failure::BucketError;
use std::fmt;
use std::path::{Path, PathBuf};

/// A bucket, or a folder of this machine, with a prefix of all names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) kind: Kind,
    pub(super) endpoint: Option<String>,
    pub(super) region: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    S3 { bucket: String, prefix: String },
    Folder(PathBuf),
}

impl Place {
    /// Parses `s3://BUCKET/PREFIX` or `file:///FOLDER`. An empty endpoint is Amazon's, and an empty
    /// region is that of the environment.
    ///
    /// # Errors
    /// If one of them is malformed.
    pub fn parse(bucket: &str, endpoint: &str, region: &str) -> Result<Self, BucketError> {
        let kind = kind(bucket).ok_or_else(|| BucketError::Url(bucket.into()))?;
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let host = endpoint.strip_prefix("https://");
        let host = host.or_else(|| endpoint.strip_prefix("http://"));
        // A login in it would be shown.
        let is_host = host.is_some_and(|host| !host.is_empty() && !host.contains('@'));
        if !endpoint.is_empty() && !is_host {
            return Err(BucketError::Endpoint);
        }
        Ok(Self {
            kind,
            endpoint: some(endpoint.trim_end_matches('/')),
            region: some(region),
        })
    }

    /// The name of an object below the prefix.
    pub(super) fn name(&self, rest: &str) -> object_store::path::Path {
        match &self.kind {
            Kind::S3 { prefix, .. } if !prefix.is_empty() => format!("{prefix}/{rest}").into(),
            Kind::S3 { .. } | Kind::Folder(_) => rest.into(),
        }
    }
}

fn kind(bucket: &str) -> Option<Kind> {
    if let Some(folder) = bucket.strip_prefix("file://") {
        return Path::new(folder)
            .is_absolute()
            .then(|| Kind::Folder(folder.into()));
    }
    let name = bucket.strip_prefix("s3://")?;
    let (bucket, prefix) = name.split_once('/').unwrap_or((name, ""));
    let is_letter = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    (!bucket.is_empty() && bucket.chars().all(is_letter)).then(|| Kind::S3 {
        bucket: bucket.into(),
        prefix: prefix.trim_matches('/').into(),
    })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Folder(path) => write!(f, "folder {}", path.display()),
            Kind::S3 { bucket, prefix } => {
                let slash = if prefix.is_empty() { "" } else { "/" };
                write!(f, "bucket s3://{bucket}{slash}{prefix}")?;
                match &self.endpoint {
                    Some(endpoint) => write!(f, " at {endpoint}"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_buckets_and_folders() {
        for (bucket, endpoint, shown) in [
            ("s3://team", "", "bucket s3://team"),
            (
                "s3://team/home/",
                "http://h:9/",
                "bucket s3://team/home at http://h:9",
            ),
            ("file:///srv/o", "", "folder /srv/o"),
        ] {
            let place = Place::parse(bucket, endpoint, "").unwrap();
            assert_eq!(place.to_string(), shown);
        }
        let place = Place::parse("s3://a/b", "", "").unwrap();
        assert_eq!(place.name("o/1").as_ref(), "b/o/1");
    }

    #[test]
    fn other_places_are_refused() {
        for bucket in [
            "", "team", "s3://", "s3:///x", "s3://a b", "file://x", "gs://a",
        ] {
            assert!(Place::parse(bucket, "", "").is_err(), "{bucket}");
        }
        for endpoint in ["host:9", "http://", "http://key:secret@host"] {
            let error = Place::parse("s3://a", endpoint, "").unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
